"""The two strangers a policy needs: an issuer of access tokens with keys and metadata, and a policy engine that speaks
AuthZEN, answers what it is told to and keeps what it was asked. Neither knows the program under test."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from wire import Key, b64


class _Handler(BaseHTTPRequestHandler):
    protocol_version, owner = "HTTP/1.1", None

    def do_GET(self):
        self._answer(self.owner.get(self.path))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self.owner.post(self.path, list(self.headers.items()), body))

    def _answer(self, answer):
        status, kind, body = answer
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_):
        pass


class _Served:
    def __init__(self, tls=None):
        """`tls` is the context of a server that speaks https, as localhost."""
        handler = type("Handler", (_Handler,), {"owner": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{port}"
        if tls is not None:
            # The hand is shaken by whoever reads first, and not by whoever accepts.
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            self.url = f"https://localhost:{port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def get(self, path):
        return 404, "text/plain", b"nothing here"

    def post(self, path, headers, body):
        return 404, "text/plain", b"nothing here"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def as_json(value):
    return 200, "application/json", json.dumps(value).encode()


class Issuer(_Served):
    """An OAuth authorization server as far as a resource sees one: metadata, and keys."""

    def __init__(self):
        self.key = Key()
        super().__init__()

    def get(self, path):
        if path == "/.well-known/oauth-authorization-server":
            return as_json({"issuer": self.url, "jwks_uri": self.url + "/jwks"})
        if path == "/jwks":
            return as_json({"keys": [self.key.jwk | {"kid": "k1", "alg": "EdDSA", "use": "sig"}]})
        return super().get(path)

    def token(self, audience, *, key=None, header=None, without=(), **claims):
        """A token for `u-ann` through `agent-7`; `claims` are what a test alters."""
        now = int(time.time())
        claims = {"iss": self.url, "sub": "u-ann", "client_id": "agent-7", "aud": audience, "iat": now,
                  "exp": now + 600} | claims
        claims = {name: value for name, value in claims.items() if name not in without}
        header = {"alg": "EdDSA", "typ": "at+jwt", "kid": "k1"} | (header or {})
        signed = ".".join(b64(json.dumps(part).encode()) for part in (header, claims))
        return signed + "." + b64((key or self.key).sign(signed.encode()))


class Engine(_Served):
    """A policy decision point. `answer` is called with each body and gives a decision, a whole answer, or nothing."""

    def __init__(self, tls=None):
        self.asked, self.heads, self.pause, self.answer = [], [], 0, lambda body: True
        super().__init__(tls)

    def get(self, path):
        if path == "/.well-known/authzen-configuration":
            return as_json({"policy_decision_point": self.url,
                            "access_evaluation_endpoint": self.url + "/access/v1/evaluation",
                            "access_evaluations_endpoint": self.url + "/access/v1/evaluations"})
        return super().get(path)

    def post(self, path, headers, body):
        self.heads.append(dict((name.lower(), value) for name, value in headers))
        question = json.loads(body)
        self.asked.append(question)
        time.sleep(self.pause)
        if path.endswith("/evaluations"):
            return as_json({"evaluations": [{"decision": self.answer(one)} for one in question["evaluations"]]})
        said = self.answer(question)
        return as_json({"decision": said}) if isinstance(said, bool) else said


"""A resource server's origin that publishes whatever a test tells it to, and counts who looks. It serves nothing."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from wire import Key, compact_jws, send, sign

WELL_KNOWN = "/.well-known/oauth-protected-resource"
JSON = ("Content-Type", "application/json")


class Origin:
    """One origin on a free port, with documents that hold until a test changes them."""

    def __init__(self, issuer, path="/mcp"):
        self.issuer, self.path, self.key, self.looked = issuer, path, Key(), []
        handler = type("Handler", (_Handler,), {"origin": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.resource = self.url + path
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.members, self.signed_as, self.signer, self.status, self.strip = {}, {}, self.key, 200, False

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def document(self):
        plain = {
            "resource": self.resource, "authorization_servers": [self.issuer], "jwks_uri": f"{self.url}/jwks",
            "scopes_supported": ["x:read"], "tool_surfaces": [{"tool": "look", "resource_scopes": ["x:read"]}],
            "owner_resources_endpoint": f"{self.url}/owner-resources",
        } | self.members
        header = {"typ": "oauth-protected-resource+jwt", "alg": "EdDSA", "kid": self.key.thumbprint}
        signed = compact_jws(self.signer, header, {"iss": plain["resource"], "iat": 1} | plain | self.signed_as)
        return plain if self.strip else plain | {"signed_metadata": signed}

    def answer(self, path):
        self.looked.append(path)
        if path == WELL_KNOWN + self.path:
            return self.status, self.document()
        if path == "/jwks":
            return 200, {"keys": [self.key.jwk | {"kid": self.key.thumbprint, "use": "sig", "alg": "EdDSA"}]}
        if path.split("?")[0] == "/owner-resources":
            resource = {"_id": "origin/look", "name": "look", "type": "mcp-tool", "tool": "look",
                        "resource_scopes": ["x:read"]}
            return 200, {"resources": [resource]}
        return 404, {}

    def introduce(self, owner="alice", *, key=None, resource=None, name="Origin", body=None, signed=True, extra=(),
                  without=(), replayable=None, **signing):
        """`body` replaces the bytes that are sent after signing; the rest is what an honest server would say."""
        said = json.dumps({"owner": owner, "resource_uri": resource or self.resource, "name": name}).encode()
        url, headers = f"{self.issuer}/rs/register", [JSON]
        if signed:
            headers += sign(key or self.key, "POST", url, headers, said, **signing)
        headers = [line for line in headers if line[0].lower() not in without] + list(extra)
        if replayable is not None:
            replayable.append(("POST", url, headers, said))
        return send("POST", url, headers, said if body is None else body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status, document = self.origin.answer(self.path)
        body = json.dumps(document).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", document["to"])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

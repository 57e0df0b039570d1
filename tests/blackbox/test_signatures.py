"""Every kind of request this project signs, listened to on the wire and verified by implementations of RFC 9421 that
others wrote: an agent's calls, polls and goodbyes, the owner's commands, a gateway's login, an authority's pull."""

import json
import socket
import socketserver
import subprocess
import threading
from collections import Counter

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms

import town as towns
from cast import binary, environment
from stock import NODE
from town import Town, free_port
from wire import fetch_json, unb64


DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
              "serverInfo": {"name": "canary", "version": "1"}}


class Ear:
    """Stands where somebody is published, passes everything on both ways, and keeps what was asked."""

    def __init__(self, port=0):
        self.backend, self.heard = None, []
        handler = type("Handler", (_Handler,), {"ear": self})
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", port), handler)
        self.server.daemon_threads = True
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def requests(self):
        """Each request of each connection: its line, headers and body."""
        for stream in self.heard:
            rest = bytes(stream)
            while b"\r\n\r\n" in rest:
                head, _, rest = rest.partition(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                headers = [tuple(line.split(": ", 1)) for line in lines[1:]]
                length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
                body, rest = rest[:length], rest[length:]
                verb, target, _ = lines[0].split(" ")
                yield verb, target, headers, body


class _Handler(socketserver.BaseRequestHandler):
    ear = None

    def handle(self):
        host, port = self.ear.backend.rsplit(":", 1)
        kept = bytearray()
        self.ear.heard.append(kept)
        with socket.create_connection((host, int(port))) as behind:
            back = threading.Thread(target=self.pump, args=(behind, self.request), daemon=True)
            back.start()
            self.pump(self.request, behind, kept)
            back.join(30)

    @staticmethod
    def pump(source, sink, kept=None):
        try:
            while piece := source.recv(65536):
                if kept is not None:
                    kept += piece
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Keys(HTTPSignatureKeyResolver):
    """Everybody's published keys by name."""

    def __init__(self, jwks):
        self.jwks = jwks

    def resolve_public_key(self, key_id):
        return Ed25519PublicKey.from_public_bytes(unb64(self.jwks[key_id]["x"]))


class Message:
    """A request as the verifier wants it. RFC 9421 knows no absent field; the drafts sign an absent `authorization` as an
    empty one (CORE-58), so that is what is put there."""

    def __init__(self, origin, verb, target, headers):
        self.method, self.url = verb, origin + target
        self.headers = {}
        for name, value in headers:
            name = name.lower()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self.headers.setdefault("authorization", "")


@pytest.fixture(scope="module")
def wire(tmp_path_factory):
    """All that was signed in a negotiation with everything in it, and all the keys it may have been signed with."""
    folder = tmp_path_factory.mktemp("town")
    before, towns.Valve = towns.Valve, Ear
    town = Town(folder, valve=True)
    towns.Valve = before
    # The canary of other tests answers a client that knows its tools; ours asks first which revisions there are.
    answers = town.canary._result
    town.canary._result = lambda message: DISCOVERED if message["method"] == "server/discover" else answers(message)
    gate = Ear(int(town.url.rsplit(":", 1)[1]))
    gate.backend = f"127.0.0.1:{free_port()}"
    town.gateway.write({"data": str(town.gateway.data), "gateway.listen": gate.backend, "gateway.public_url": town.url},
                       town.resource_tables())

    def type(*words):
        return subprocess.run([binary(), *map(str, words)], env=environment(folder), cwd=folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    try:
        town.start()
        hers = ("--authority", town.issuer, "--key", town.authority.ready["owner_key"])
        call = ("agent", "call", town.resource, "get_positions", "--accept-terms", "--client-id",
                "https://op.example/agent.json", "--signature-agent", "https://op.example", "--wait")
        assert type(*call, 0).returncode == 5
        (family,) = town.owner.pending()
        assert type("owner", "approve", family, *hers).returncode == 0
        assert type("owner", "ledger", *hers).returncode == 0
        done = type(*call, 20)
        assert done.returncode == 0, done
        identities = json.loads(type("agent", "id", "--json").stdout)
        jwks = {one["thumbprint"]: one["jwk"] for one in identities}
        for origin in (town.issuer, town.url):
            jwks |= {key["kid"]: key for key in fetch_json(origin + "/jwks")["keys"]}
        jwks[town.owner.key.thumbprint] = town.owner.key.jwk
        signed = [(origin, *request) for origin, ear in ((town.issuer, town.valve), (town.url, gate))
                  for request in ear.requests() if any(name.lower() == "signature" for name, _ in request[2])]
        yield signed, jwks
    finally:
        town.close()
        gate.close()


def kind(request):
    _, verb, target, headers, _ = request
    return verb, "owner" if target.startswith("/owner/") else target.partition("?")[0]


def test_every_kind_was_heard(wire):
    heard = Counter(kind(request) for request in wire[0])
    for wanted in [("POST", "/mcp"), ("POST", "/token"), ("POST", "owner"), ("GET", "owner"), ("GET", "/owner-resources")]:
        assert heard[wanted], (wanted, heard)


def test_a_python_verifier_accepts_each(wire):  # CORE-52 CORE-55 CORE-56 CORE-61
    signed, jwks = wire
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys(jwks))
    for request in signed:
        origin, verb, target, headers, body = request
        message = Message(origin, verb, target, headers)
        results = verifier.verify(message)
        covered = {str(name).strip('"') for result in results for name in result.covered_components}
        assert len(results) == 1 and {"@method", "@authority", "@path", "authorization"} <= covered, kind(request)
        if body:
            assert "content-digest" in covered, kind(request)
            verifier.verify_body(message, results, body)
        if "?" in target:
            assert "@query" in covered
        if "signature-agent" in message.headers:
            assert "signature-agent" in covered and results[0].parameters["tag"] == "web-bot-auth"
    assert any("signature-agent" in Message(*request[:4]).headers for request in signed)


def told_by_npm(jwks, messages):
    asked = {"keys": jwks, "requests": [{"method": m.method, "url": m.url, "headers": m.headers} for m in messages]}
    done = subprocess.run(["node", NODE / "verify.mjs"], input=json.dumps(asked), text=True, capture_output=True,
                          cwd=NODE, timeout=60)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_an_npm_verifier_accepts_each_and_nothing_altered(wire):  # CORE-55 CORE-56
    signed, jwks = wire
    told = told_by_npm(jwks, [Message(*request[:4]) for request in signed])
    assert told == [True] * len(signed), Counter(map(str, told))
    altered = [Message(origin, verb, target + "x", headers) for origin, verb, target, headers, _ in signed]
    assert True not in told_by_npm(jwks, altered)


def test_a_python_verifier_refuses_each_when_it_is_altered(wire):
    signed, jwks = wire
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys(jwks))
    for origin, verb, target, headers, _ in signed:
        for change in (("http://elsewhere.example", verb, target), (origin, "PUT", target), (origin, verb, target + "x")):
            with pytest.raises(Exception):
                verifier.verify(Message(*change, headers))

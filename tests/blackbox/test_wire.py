"""The client itself, against published vectors and one stub server. Without this, a fault in the client would
look like a fault of the program. It needs no binary."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import wire
from parties import Challenge
from wire import Key

RFC8037_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"


def test_thumbprint():  # BASE-12 CORE-45
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": RFC8037_X, "kid": "ignored"}
    assert wire.thumbprint(jwk) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


@pytest.mark.parametrize("value, digest", [
    ({"symbol": "AAPL", "side": "buy", "quantity": 10}, "s256:-aebGJDa5aXhae8pSrUgW2ofegRco3RpV4G3QS40wrU"),
    ({}, "s256:RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"),
    ([{
        "type": "urn:uma4agents:authorization-details:tool-call", "locations": ["https://gateway.uma.lab"],
        "identifier": "alice-vault/execute_trade", "actions": ["execute_trade"], "datatypes": ["trades:execute"],
    }], "s256:6cR6qTmCj6s0S95MxCfdfwfXJ8myLtBg-PiL8v93H0g"),
])
def test_digests(value, digest):  # CORE-27 CORE-80
    assert wire.s256(value) == digest


@pytest.mark.parametrize("number, text", [
    (1.0, "1"), (-0.0, "0"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-6, "0.000001"), (1e-7, "1e-7"),
    (333333333.33333329, "333333333.3333333"), (4.50, "4.5"), (2e-3, "0.002"), (1e-27, "1e-27"),
    (123456789012345680000.0, "123456789012345680000"), (5e-324, "5e-324"), (-1.5e300, "-1.5e+300"), (10, "10"),
])
def test_canonical_numbers(number, text):  # BASE-13
    assert wire.jcs(number).decode() == text


def test_canonical_text_and_order():  # BASE-13
    value = {"\ufb33": 1, "\U0001f600": 2, "\r": [True, None], "1": "\u20ac$\u000f\nA'B\"\\/\u007f", "": {}}
    assert wire.jcs(value).decode() == (
        '{"":{},"\\r":[true,null],"1":"\u20ac$\\u000f\\nA\'B\\"\\\\/\u007f","\U0001f600":2,"\ufb33":1}')
    for refused in (2**53, float("inf"), "\ud800"):
        with pytest.raises(ValueError):
            wire.jcs(refused)


def test_challenges():  # CORE-15
    found = wire.challenges('PoP, UMA realm="a, \\"b\\"" , as_uri=x, , Basic realm="c"')
    assert found == [("PoP", {}), ("UMA", {"realm": 'a, "b"', "as_uri": "x"}), ("Basic", {"realm": "c"})]
    with pytest.raises(AssertionError):
        wire.challenges('UMA ticket="a", ticket="b"')


def test_a_challenge_is_read_from_the_header():  # CORE-15 CORE-25
    remediation = {"ticket": "t", "authorization_server": "http://as"}
    value = ('UMA realm="r", error="insufficient_authorization", as_uri="http://as", ticket="t", '
             f'resource_metadata="m", scope="a b", authorization_remediation="{wire.b64(json.dumps(remediation).encode())}"')
    challenge = Challenge.of(wire.Response(401, [("WWW-Authenticate", value)], b"{}"))
    assert (challenge.ticket, challenge.scope, challenge.remediation) == ("t", "a b", remediation)


def test_signature_base():  # BASE-10 CORE-58
    """The base is spelled out here, so that signer and verifier of this client cannot share a mistake unseen."""
    key, url, body = Key.from_seed(b"\x04" * 32), "http://gw.test:8441/mcp?a=%20b", b'{"a":1}'
    lines = dict(wire.sign(key, "POST", url, [], body, parameters='created=1796000000;keyid="k";alg="ed25519"'))
    assert lines["Content-Digest"] == "sha-256=:AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=:"
    parameters = lines["Signature-Input"].removeprefix("sig1=")
    base = "\n".join([
        '"@method": POST', '"@authority": gw.test:8441', '"@path": /mcp', '"authorization": ', '"@query": ?a=%20b',
        f'"content-digest": {lines["Content-Digest"]}', f'"@signature-params": {parameters}',
    ])
    assert parameters == ('("@method" "@authority" "@path" "authorization" "@query" "content-digest")'
                          ';created=1796000000;keyid="k";alg="ed25519"')
    verify(key, base, lines["Signature"])
    with pytest.raises(InvalidSignature):
        verify(key, base.replace("?a", "?b"), lines["Signature"])


def verify(key, base, signature):
    raw = wire.base64.b64decode(signature.removeprefix("sig1=:").removesuffix(":"))
    Ed25519PublicKey.from_public_bytes(wire.unb64(key.jwk["x"])).verify(raw, base.encode())


def test_content_digest():  # BASE-11
    assert wire.content_digest(b"") == "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"


def test_jws_round_trip():
    key = Key()
    jws = wire.compact_jws(key, {"alg": "EdDSA", "typ": "x"}, b'{ "a" : 1 }')
    jwk = key.jwk | {"kid": "1"}
    assert wire.verify_jws(jws, {"keys": [jwk]}) == ({"alg": "EdDSA", "typ": "x"}, {"a": 1})
    with pytest.raises(AssertionError):
        wire.verify_jws(jws, {"keys": [Key().jwk]})


def test_event_stream():
    body = b': hello\n\nid: 1\ndata:\n\nevent: message\ndata: {"a":\ndata: 1}\n\n'
    assert wire.sse_messages(body) == [{"a": 1}]


def test_lines_are_sent_as_written():
    """Duplicate lines, a foreign Host and the order all arrive as given."""
    seen = []

    class Stub(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append((self.path, self.headers.items(), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("X", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.handle_request).start()
    url = f"http://127.0.0.1:{server.server_port}/a//b?c"
    response = wire.send("POST", url, [("Host", "evil.test"), ("Mcp-Name", "a"), ("mcp-NAME", "b")], b"xyz")
    server.server_close()
    assert (response.status, response.header("x")) == (200, "1")
    path, headers, body = seen[0]
    assert (path, body) == ("/a//b?c", b"xyz")
    assert headers == [("Host", "evil.test"), ("Mcp-Name", "a"), ("mcp-NAME", "b"), ("Content-Length", "3")]

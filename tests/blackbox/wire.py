"""The wire, written from the specifications alone: encodings, RFC 9421 signatures, HTTP sent exactly as asked,
MCP framing. It shares no code with the programs under test, so an error common to both sides cannot hide. It
knows no flow: who says what to whom is in parties.py."""

import base64
import contextlib
import contextvars
import hashlib
import http.client
import itertools
import json
import math
import re
import secrets
import socket
import time
from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
TIMEOUT = 20


# ---- encodings -----------------------------------------------------------------------------------------------


def b64(data):
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    """Strict base64url: no padding, no foreign characters, no stray bits."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if b64(data) != text:
        raise ValueError("not canonical base64url")
    return data


def jcs(value):
    """RFC 8785 bytes of a JSON value."""
    return _canonical(value).encode("utf-8")


def _canonical(value):
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_canonical, value)) + "]"
    # RFC 8785 orders members by UTF-16 code units, which differs from code points outside the BMP.
    members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
    return "{" + ",".join(_canonical(str(k)) + ":" + _canonical(v) for k, v in members) + "}"


def _number(value):
    """ECMAScript's Number::toString, over Python's equally shortest repr."""
    if isinstance(value, int):
        if abs(value) > 2**53 - 1:
            raise ValueError("outside I-JSON")
        return str(value)
    if not math.isfinite(value):
        raise ValueError("not a JSON number")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if len(text) <= point <= 21:
        text += "0" * (point - len(text))
    elif 0 < point <= 21:
        text = text[:point] + "." + text[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + text
    else:
        rest = "." + text[1:] if len(text) > 1 else ""
        text = f"{text[0]}{rest}e{point - 1:+d}"
    return "-" * sign + text


def s256(value):
    """The drafts' digest form: octets and strings as transmitted, anything else as canonical JSON."""
    if isinstance(value, str):
        value = value.encode()
    data = value if isinstance(value, bytes) else jcs(value)
    return "s256:" + b64(hashlib.sha256(data).digest())


def content_digest(body):
    """RFC 9530 with sha-256; the base64 is the padded, standard one."""
    return "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"


# ---- keys and JWS --------------------------------------------------------------------------------------------


class Key:
    """An Ed25519 key pair with its JWK and RFC 7638 thumbprint."""

    def __init__(self, private=None):
        self.private = private or Ed25519PrivateKey.generate()
        raw = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}
        self.thumbprint = thumbprint(self.jwk)

    @classmethod
    def from_seed(cls, seed):
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, path):
        with open(path, "rb") as file:
            return cls(load_pem_private_key(file.read(), password=None))

    def sign(self, data):
        return self.private.sign(data)


def thumbprint(jwk):
    required = {name: jwk[name] for name in ("crv", "kty", "x")}
    return b64(hashlib.sha256(jcs(required)).digest())


def compact_jws(key, header, claims):
    """Claims may be bytes, so that odd white space can be signed as it is."""
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    signed = b64(json.dumps(header).encode()) + "." + b64(payload)
    return signed + "." + b64(key.sign(signed.encode()))


def open_jws(jws):
    """Header and claims, unverified."""
    header, claims, _ = jws.split(".")
    return json.loads(unb64(header)), json.loads(unb64(claims))


def verify_jws(jws, jwks):
    """Header and claims of a JWS that a key of this set made."""
    header, claims = open_jws(jws)
    keys = [k for k in jwks["keys"] if "kid" not in header or k.get("kid") == header["kid"]]
    signed, _, signature = jws.rpartition(".")
    for jwk in keys:
        try:
            Ed25519PublicKey.from_public_bytes(unb64(jwk["x"])).verify(unb64(signature), signed.encode())
        except InvalidSignature:
            continue
        assert header["alg"] in ("EdDSA", "Ed25519"), header
        return header, claims
    raise AssertionError(f"no published key verifies {header}")


# ---- RFC 9421 ------------------------------------------------------------------------------------------------

MINIMUM = ("@method", "@authority", "@path", "authorization")


def sign(key, method, url, headers, body=None, *, cover=None, drop=(), authority=None, created=None, keyid=None,
         digest=None, parameters=None, label="sig1"):
    """The headers that sign this request. A fresh nonce keeps two equal requests of one second apart, since a signature
    seen twice is a replay. `digest` False sends none, a string sends that one."""
    added = []
    if body is not None and digest is not False:
        added.append(("Content-Digest", digest or content_digest(body)))
    if cover is None:
        cover = list(MINIMUM)
        cover += ["@query"] if urlsplit(url).query else []
        cover += ["content-digest"] if added else []
    cover = [name for name in cover if name not in drop]
    if parameters is None:
        created = int(time.time()) if created is None else created
        parameters = f'created={created};keyid="{keyid or key.thumbprint}";alg="ed25519";nonce="{secrets.token_hex(8)}"'
    listed = "(" + " ".join(f'"{name}"' for name in cover) + ");" + parameters
    base = signature_base(cover, listed, method, url, [*headers, *added], authority)
    signature = base64.b64encode(key.sign(base.encode())).decode()
    return [*added, ("Signature-Input", f"{label}={listed}"), ("Signature", f"{label}=:{signature}:")]


def signature_base(cover, listed, method, url, headers, authority=None):
    parts = urlsplit(url)
    derived = {
        "@method": method,
        "@authority": (authority or parts.netloc).lower(),
        "@path": parts.path or "/",
        "@query": "?" + parts.query,
    }
    lines = []
    for name in cover:
        # A covered field that is not sent counts as the empty string (the profile says so of `authorization`).
        sent = ", ".join(value.strip() for field_name, value in headers if field_name.lower() == name)
        lines.append(f'"{name}": {derived.get(name, sent)}')
    return "\n".join([*lines, f'"@signature-params": {listed}'])


# ---- HTTP ----------------------------------------------------------------------------------------------------


@dataclass
class Response:
    status: int
    headers: list
    body: bytes
    url: str = field(default="", repr=False)

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name):
        values = self.all(name)
        assert len(values) <= 1, f"{name} sent {len(values)} times"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)

    def message(self):
        """The JSON-RPC message, whether it came as JSON or as the last event of a stream."""
        if "text/event-stream" in (self.header("content-type") or ""):
            return sse_messages(self.body)[-1]
        return self.json()


_dialled = contextvars.ContextVar("dialled", default={})


@contextlib.contextmanager
def dialling(published, address):
    """In this block and thread, requests to the host of this URL go to that `host:port`, and still name the first."""
    token = _dialled.set(_dialled.get() | {urlsplit(published).netloc: address})
    try:
        yield
    finally:
        _dialled.reset(token)


def send(method, url, headers=(), body=None):
    """One request with exactly these header lines in this order; only a missing Host and Content-Length are added."""
    parts = urlsplit(url)
    target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
    names = {name.lower() for name, _ in headers}
    host, port = _dialled.get().get(parts.netloc, parts.netloc).rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        if "host" not in names:
            connection.putheader("Host", parts.netloc)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            connection.putheader("Content-Length", str(len(body)))
        try:
            connection.endheaders(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server may answer and close before it has read a body it refuses.
        answer = connection.getresponse()
        return Response(answer.status, answer.getheaders(), answer.read(), url)
    finally:
        connection.close()


def fetch_json(url, headers=()):
    response = send("GET", url, headers)
    assert response.status == 200, (url, response)
    return response.json()


def sse_messages(body):
    messages = []
    for event in body.decode().replace("\r\n", "\n").split("\n\n"):
        data = [line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        if any(data):
            messages.append(json.loads("\n".join(data)))
    return messages


def challenges(value):
    """RFC 9110 challenges of one WWW-Authenticate value, as (scheme, parameters) pairs."""
    found, rest = [], value.strip()
    while rest:
        word, rest = _token(rest)
        if rest.lstrip().startswith("=") and found:
            name, rest = word.lower(), rest.lstrip()[1:].lstrip()
            text, rest = _quoted(rest) if rest.startswith('"') else _token(rest)
            assert name not in found[-1][1], f"parameter {name} twice"
            found[-1][1][name] = text
        else:
            found.append((word, {}))
        rest = rest.lstrip(" \t,")
    return found


def _token(text):
    end = next((i for i, c in enumerate(text) if not (c.isalnum() or c in "!#$%&'*+-.^_`|~")), len(text))
    assert end, f"no token at {text[:20]!r}"
    return text[:end], text[end:]


def _quoted(text):
    out, characters = [], iter(range(1, len(text)))
    for i in characters:
        if text[i] == '"':
            return "".join(out), text[i + 1 :]
        out.append(text[next(characters)] if text[i] == "\\" else text[i])
    raise AssertionError("unterminated quoted string")


# ---- MCP -----------------------------------------------------------------------------------------------------

_ids = itertools.count(1)
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


def mcp_body(method, params=None, *, version=MODERN, request_id=None):
    """The bytes of one request, with the `_meta` a modern peer must send."""
    params = dict(params or {})
    if version == MODERN:
        params.setdefault("_meta", META)
    number = next(_ids) if request_id is None else request_id
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def mcp_headers(method, name=None, *, version=MODERN):
    headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", version),
    ]
    if version == MODERN:
        headers.append(("Mcp-Method", method))
        headers += [("Mcp-Name", name)] if name is not None else []
    return headers


def spoken(stream, data, wait, done=False):
    """Everything that comes back on a connection within a while, and whether it was then closed; `done` says so first."""
    answer = b""
    try:
        stream.sendall(data)
        if done:
            stream.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # Whoever answers before it has heard all may close; what it said is there to be read all the same.
    try:
        stream.settimeout(wait)
        while piece := stream.recv(65536):
            answer += piece
    except TimeoutError:
        return answer, False
    except OSError:
        pass
    return answer, True


def statuses(answer):
    """The statuses of the answers in what came back."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]

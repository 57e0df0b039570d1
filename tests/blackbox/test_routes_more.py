"""What can be wrong with an address or a credential rather than with a body, at every route: queries, spellings of a
path, heads that are too large, and doors that stay closed. The routes are those of test_routes.py."""

import socket
import time
from urllib.parse import urlsplit

import pytest

from cast import REALM
from parties import FORM, JSON, Agent
from test_routes import AUTHORITY, EVENTS, EVERY, GATEWAY, ask, clear, good, nothing_happened, town, url_of  # noqa: F401
from wire import Key, send, sign

LEDGER = next(route for route in AUTHORITY if route.path == "/owner/ledger")
PENDING = next(route for route in AUTHORITY if route.path == "/owner/pending/{family}")
TERMS = next(route for route in AUTHORITY if route.path == "{terms}")
PROTECTED = [route for route in AUTHORITY if route.who == "pat"]
HERS = [route for route in AUTHORITY if route.who == "owner"]


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=-1", "limit=x", "limit=1e2", "after=-1", "after=x",
                                   "after=9999999999999999999999", "handle=", "handle=%00", "limit=1&limit=2", "what=1",
                                   "handle=" + "x" * 5000, "=", "%ff=%fe"])
def test_odd_pages_of_the_record(town, query):  # OWN-24
    clear(ask(town, LEDGER, url=f"{town.issuer}/owner/ledger?{query}"), 400, LEDGER)


@pytest.mark.parametrize("name", ["nothing", "%FF", "%00", "..", "%2e%2e%2f", "a%2Fb", "x" * 3000, "%E2%80%AE", "'", "*"])
def test_names_nobody_has(town, name):
    """A question, unit or connection of a name that is none: 404 and a sentence, however the name is written."""
    for method, path, body in (("GET", f"/owner/pending/{name}", None),
                               ("POST", f"/owner/pending/{name}/decision", b'{"decision":"denied"}'),
                               ("PUT", f"/owner/policies/{name}", b'{"ask_me":true}'),
                               ("DELETE", f"/owner/policies/{name}", None),
                               ("POST", f"/owner/connections/{name}/revoke", None)):
        headers = [JSON] if body else []
        response = ask(town, PENDING, method, body, headers, url=town.issuer + path)
        clear(response, 404, PENDING)


@pytest.mark.parametrize("query, status", [
    ("format=pdf", 406), ("format=", 406), ("format=json&format=html", (400, 406)), ("format=%00", 406),
])
def test_terms_in_no_such_form(town, query, status):  # TERMS-14
    clear(send("GET", f"{url_of(town, TERMS)}?{query}"), status, TERMS)


@pytest.mark.parametrize("accept", ["application/pdf", "image/*;q=1", "text/html;q=0", "", "\xff", "*/*;q=0", ";;,,"])
def test_terms_for_odd_readers(town, accept):  # TERMS-14
    response = send("GET", url_of(town, TERMS), [("Accept", accept)])
    assert response.status in (200, 406), response
    if response.status == 406:
        clear(response, 406, TERMS)


@pytest.mark.parametrize("route", EVERY)
def test_other_spellings_of_a_path(town, route):
    """There is one spelling of every address; the others are nothing, for anybody."""
    url = url_of(town, route)
    parts = urlsplit(url)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path
    first = path.lstrip("/")[0]
    for other in (path + "/", "/" + path, path.upper(), path + "/..", path + "%2f", path + ";x=1",
                  path.replace("/" + first, f"/%{ord(first):02x}", 1), path + "%00", "/x/.." + path):
        if other == path:
            continue
        clear(ask(town, route, url=base + other), (400, 401, 404, 405), route)


@pytest.mark.parametrize("route", PROTECTED, ids=lambda route: route.path)
@pytest.mark.parametrize("lines", [
    [], [("Authorization", "Bearer")], [("Authorization", "Bearer ")], [("Authorization", "Bearer x")],
    [("Authorization", "PoP x")], [("Authorization", "Basic Z3c6c2VjcmV0")], [("Authorization", "Bearer " + "x" * 30000)],
    [("Authorization", "Bearer \xff")], "twice",
], ids=str)
def test_protection_calls_of_nobody(town, route, lines):  # BASE-02 CORE-81
    if lines == "twice":
        lines = [*town.server.bearer(None), ("Authorization", "Bearer x")]
    kind = JSON if route.takes == "json" else FORM
    response = clear(send("POST", url_of(town, route), [kind, *lines], good(route)), 401, route)
    assert response.header("www-authenticate").startswith("Bearer"), response
    assert response.json()["error"] == "invalid_token"


@pytest.mark.parametrize("route", HERS, ids=lambda route: route.path)
def test_her_door_stays_closed(town, route):  # OWN-03 CORE-106 CORE-107 CORE-108
    """Unsigned, signed by another, half covered, or with a bearer credential beside the signature."""
    url, method = url_of(town, route), route.method
    body = good(route) if route.takes else None
    kind = [JSON] if route.takes else []
    key = town.owner.key
    bearer = [("Authorization", "Bearer x")]
    for lines in (kind, kind + bearer, kind + sign(Key(), method, url, kind, body),
                  kind + sign(key, method, url, kind, body, drop=["@path"]),
                  kind + sign(key, method, url, kind, body, drop=["authorization"]),
                  kind + sign(key, method, url, kind, body, authority="evil.example"),
                  kind + bearer + sign(key, method, url, kind + bearer, body),
                  kind + [("Cookie", "session=x")], kind + [("Signature", "sig1=:AA==:"), ("Signature-Input", "sig1=")],
                  kind + sign(key, method, url, kind, body, parameters="created=99999999999999999999"),
                  kind + [("Signature-Input", "sig1=(" + '"@method" ' * 3000 + ")"), ("Signature", "sig1=:AA==:")]):
        clear(send(method, url, lines, body), 401, route)


def raw(address, data):
    """What comes back for bytes that are not quite HTTP; nothing, if the connection is just closed."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = b""
        try:
            while piece := peer.recv(65536):
                answer += piece
        except OSError:
            pass
        return answer


@pytest.mark.parametrize("at", ["authority", "gateway"])
@pytest.mark.parametrize("data", [
    b"", b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
    b"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999999999999999\r\n\r\nx",
    b"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\nshort",
    b"POST {path} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET {path} HTTP/1.1\r\nHost: {host}\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n",
    b"GET {path} HTTP/1.1\r\nHost: {host}\r\n" + b"X: a\r\n" * 5000 + b"\r\n",
    b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET http://evil.example{path} HTTP/1.1\r\nHost: {host}\r\n\r\n", b"GET * HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n", b"GET {path} HTTP/1.0\r\n\r\n", b"GET {path} HTTP/1.1\r\n\r\n",
    b"GET {path} HTTP/1.1\r\nHost: {host}\r\nX\x00Y: a\r\n\r\n", b"GET {path} HTTP/1.1\nHost: {host}\n\n",
], ids=lambda data: repr(data[:40]))
def test_what_is_hardly_http(town, at, data):
    """A refusal or a closed connection, never a 5xx or a success, and the process serves on."""
    address, path = (town.listens[0], b"/token") if at == "authority" else (urlsplit(town.url).netloc, b"/mcp")
    answer = raw(address, data.replace(b"{host}", address.encode()).replace(b"{path}", path))
    if answer:
        status = int(answer.split(b" ", 2)[1])
        assert 400 <= status < 500, answer[:300]
        assert b"panic" not in answer


@pytest.mark.parametrize("at", ["authority", "gateway"])
def test_those_who_never_finish(town, at):
    """Two hundred requests that stop in the middle, in the head or in the body, keep nobody else waiting."""
    address, path = (town.listens[0], "/token") if at == "authority" else (urlsplit(town.url).netloc, "/mcp")
    host, port = address.rsplit(":", 1)
    begun = f"POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n"
    unfinished = [begun.encode(), begun.encode() + b"\r\n" + b"{" * 1000]
    waiting = [socket.create_connection((host, int(port)), timeout=10) for _ in range(200)]
    try:
        for number, peer in enumerate(waiting):
            peer.sendall(unfinished[number % 2])
        started = time.monotonic()
        for _ in range(20):
            assert send("GET", f"http://{address}/health").status == 200
        assert time.monotonic() - started < 2
    finally:
        for peer in waiting:
            peer.close()


def test_after_all_of_it(town):
    """The same two processes still serve."""
    routes = [route for route in AUTHORITY + GATEWAY if route.method == "GET" and route.who == "anybody"]
    for route in routes:
        assert send("GET", url_of(town, route)).status == 200, route.path
        head = send("HEAD", url_of(town, route))
        assert (head.status, head.body) == (200, b""), route.path
    for route in HERS:
        if route.method == "GET" and route.path != EVENTS:  # That one does not end.
            assert ask(town, route).status == 200, route.path
    agent = Agent()
    negotiation = agent.negotiate(town.resource, "get_positions")
    assert negotiation.template["resource_id"] == f"{REALM}/get_positions"

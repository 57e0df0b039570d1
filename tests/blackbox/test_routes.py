"""Every route of authority and gateway, and everything that can be wrong with a request to it: each is told what is
wrong in JSON, with a sentence and a 4xx; nothing is kept, nothing falls over, nothing grows."""

import gzip
import json
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import pytest

from parties import FORM, JSON, UMA_TICKET, Agent
from town import Town
from wire import mcp_body, mcp_headers, send, sign

TEXT = ("Content-Type", "text/plain")
MIB = 1 << 20


@dataclass
class Route:
    """A path, what it takes by which method, and who may come in."""

    path: str
    methods: tuple
    who: str = "anybody"
    takes: str | None = None
    limit: int = 0
    good: dict | None = None  # A body of the right form, whose members need name nothing that exists.

    @property
    def method(self):
        return self.methods[0]


def get(path, **more):
    return Route(path, ("GET", "HEAD"), **more)


EVENTS = "/owner/events"
TOKEN = {"grant_type": UMA_TICKET, "ticket": "x"}
TERMS = {"purpose": "p", "scope": ["s"], "expires_in": 60}
PERMISSION = {"resource_id": "r", "resource_scopes": ["s"]}
AUTHORITY = [
    get("/.well-known/uma2-configuration"), get("/.well-known/oauth-authorization-server"),
    get("/.well-known/uma4agents-configuration"), get("/jwks"), get("/health"), get("/terms"), get("{terms}"),
    Route("/token", ("POST",), takes="form", limit=128 << 10, good=TOKEN),
    Route("/perm", ("POST",), who="pat", takes="json", limit=64 << 10, good=PERMISSION),
    Route("/introspect", ("POST",), who="pat", takes="form", limit=64 << 10, good={"token": "x"}),
    Route("/consume", ("POST",), who="pat", takes="form", limit=64 << 10, good={"token": "x"}),
    Route("/audit/access", ("POST",), who="pat", takes="json", limit=64 << 10, good={"family": "f", "tool": "t"}),
    Route("/rs/register", ("POST",), takes="json", limit=64 << 10,
          good={"owner": "alice", "resource_uri": "https://x.example/mcp", "name": "n"}),
    get("/owner/pending", who="owner"), get("/owner/pending/{family}", who="owner"),
    Route("/owner/pending/{family}/decision", ("POST",), who="owner", takes="json", limit=256 << 10,
          good={"decision": "approved"}),
    get("/owner/connections", who="owner"),
    Route("/owner/connections/revoke", ("POST",), who="owner", takes="json", limit=256 << 10,
          good={"handle": "jkt:x"}),
    Route("/owner/connections/nobody/revoke", ("POST",), who="owner"),
    get("/owner/resources", who="owner"), get("/owner/resource-servers", who="owner"),
    Route("/owner/resource-servers/decision", ("POST",), who="owner", takes="json", limit=256 << 10,
          good={"client_id": "https://x.example", "decision": "approved"}),
    Route("/owner/policies", ("POST", "GET", "HEAD"), who="owner", takes="json", limit=256 << 10,
          good={"id": "i", "name": "n", "resources": ["r"], "ask_me": True, "terms": TERMS}),
    Route("/owner/policies/nothing", ("PUT", "DELETE"), who="owner", takes="json", limit=256 << 10,
          good={"ask_me": True}),
    get("/owner/ledger", who="owner"), get(EVENTS, who="owner"),
    Route("/owner/sign-in-links", ("POST",), who="owner"),
]
GATEWAY = [
    Route("/mcp", ("POST",), takes="mcp", limit=4 * MIB), get("/.well-known/oauth-protected-resource/mcp"),
    get("/.well-known/oauth-protected-resource"), get("/jwks"), get("/health"), get("/owner-resources", who="reader"),
]
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get")

BROKEN_JSON = {
    "null": b"null", "a list": b"[]", "a string": b'"x"', "a number": b"7", "true": b"true",
    "deep lists": b"[" * 30000, "deep objects": b'{"a":' * 10000 + b"1" + b"}" * 10000,
    "a member twice": b'{"decision":"denied","decision":"approved","token":"a","token":"b"}',
    "a lone surrogate": b'{"handle":"\\ud800","resource_id":"\\udfff"}', "1e400": b'{"expires_in":1e400}',
    "400 digits": b'{"expires_in":' + b"9" * 400 + b"}", "NaN": b'{"a":NaN}', "a NUL": b'{"a":"\x00"}',
    "a BOM": b"\xef\xbb\xbf{}", "not UTF-8": b'{"a":"\xff\xfe"}', "trailing bytes": b"{} {}", "truncated": b'{"a":',
    "a comment": b"/* */ {}", "single quotes": b"{'a':1}", "white space": b" \n\t ",
    "many members": b"{" + b",".join(b'"k%d":0' % n for n in range(5000)) + b"}",
    "wrong members": b'{"decision":7,"handle":[],"client_id":{},"id":1,"ask_me":"yes","resource_id":3,"family":[]}',
}
BROKEN_FORM = {
    "twice": b"grant_type=a&grant_type=b&token=a&token=b", "not UTF-8": b"grant_type=\xff\xfe", "JSON": b'{"token":"x"}',
    "percents": b"%&%zz=%&token", "nameless": b"=&=&=", "a NUL": b"grant_type=%00&ticket=%00", "escaped bytes": b"%ff=%fe",
    "many members": b"&".join(b"k%d=" % n for n in range(5000)), "empty values": b"grant_type=&ticket=&token=",
}


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Town.running(tmp_path_factory.mktemp("town")) as town:
        yield prepared(town)


def prepared(town):
    """With one question that waits, and its memory weighed."""
    waiting = Agent().negotiate(town.resource, "get_positions")
    waiting.pending(waiting.commit())
    town.server = town.resource_server()
    town.names = {"family": waiting.family, "terms": urlsplit(waiting.template["terms_uri"]).path}
    town.weight = [role.memory_mb() for role in (town.authority, town.gateway)]
    return town


@pytest.fixture(autouse=True)
def nothing_happened(town):
    """No bad request writes a row, decides anything, reaches the server, ends or swells a process."""
    before = town.owner.ledger(), list(town.owner.pending()), town.canary.calls()
    yield
    assert (town.owner.ledger(), list(town.owner.pending()), town.canary.calls()) == before
    for role, weight in zip((town.authority, town.gateway), town.weight):
        assert role.process.poll() is None, role.logged()
        assert role.memory_mb() - weight < 64
        assert "panicked" not in role.logged()


def url_of(town, route, path=None):
    base = town.issuer if route in AUTHORITY else town.url
    return base + (path or route.path).replace("{terms}", town.names["terms"]).format(**town.names)


def ask(town, route, method=None, body=None, headers=None, extra=(), url=None):
    """Through the door of the route, so that nothing but what is wrong is refused."""
    method, url = method or route.method, url or url_of(town, route)
    if headers is None:
        headers = {None: [], "json": [JSON], "form": [FORM], "mcp": mcp_headers("tools/call", "get_positions")}[route.takes]
        headers = headers if body is not None else []
    if route.who == "pat":
        headers = [*headers, *town.server.bearer(None)]
    if route.who == "owner":
        headers = [*headers, *sign(town.owner.key, method, url, headers, body)]
    return send(method, url, [*headers, *extra], body)


def good(route):
    if route.takes == "form":
        return urlencode(route.good).encode()
    if route.takes == "mcp":
        return mcp_body("tools/call", {"name": "get_positions", "arguments": {}})
    return json.dumps(route.good).encode()


def clear(response, status, route, method="POST"):
    """JSON, a sentence, kept by nobody, and no more said than that."""
    statuses = status if isinstance(status, tuple) else (status,)
    assert response.status in statuses, (route.path, response)
    assert response.header("cache-control") == "no-store", response
    assert response.header("content-type") == "application/json", response
    assert response.all("access-control-allow-origin") == []
    if method == "HEAD":
        return response
    answer = response.json()
    if "jsonrpc" in answer:
        sentence = answer["error"]["message"]
    elif "/owner/" in urlsplit(response.url).path[:7]:  # OWN-04
        sentence = answer["detail"]
    else:
        assert isinstance(answer["error"], str) and answer["error"]
        sentence = answer["error_description"]
    assert len(sentence) > 15 and " " in sentence, sentence
    assert "panic" not in sentence and ".rs:" not in sentence and "::" not in sentence, sentence
    return response


def named(routes, takes=None):
    return [pytest.param(route, id=f"{'as' if route in AUTHORITY else 'gw'} {route.path}") for route in routes
            if takes is None or route.takes in takes]


EVERY = named(AUTHORITY + GATEWAY)
BODIES = named(AUTHORITY + GATEWAY, ("json", "form", "mcp"))


@pytest.mark.parametrize("route", EVERY)
def test_wrong_method(town, route):  # BASE-08
    for method in METHODS:
        if method in route.methods:
            continue
        response = clear(ask(town, route, method), 405, route, method)
        allowed = {name.strip() for name in response.header("allow").split(",")}
        assert allowed == set(route.methods), response.headers


@pytest.mark.parametrize("route", named([route for route in AUTHORITY + GATEWAY if route.who != "reader"]))
def test_wrong_host(town, route):  # D-16
    """421 for every host but the published one, whatever else is right with the request. What her authority reads at
    the gateway is read by signature, and that is made for the configured host."""
    url = url_of(town, route)
    port = urlsplit(url).port
    for hosts in (["evil.example"], [f"localhost:{port}"], ["127.0.0.1"], [f"127.0.0.1:{port + 1}"], [""],
                  [f"127.0.0.1:{port}", "evil.example"], [f"127.0.0.1:{port}@evil.example"], ["\xff"]):
        lines = [("Host", host) for host in hosts]
        body = good(route) if route.takes else None
        clear(ask(town, route, body=body, extra=lines), (400, 421), route)


@pytest.mark.parametrize("route", EVERY)
def test_foreign_origin(town, route):  # D-16 CORE-21
    own = town.issuer if route in AUTHORITY else town.url
    for origins in (["https://evil.example"], ["null"], [""], [own, "https://evil.example"], [own + "/"]):
        lines = [("Origin", origin) for origin in origins]
        body = good(route) if route.takes else None
        response = clear(ask(town, route, body=body, extra=lines), (400, 403), route)
        if route.who != "owner":
            assert response.json()["error"] == "invalid_origin", response
        preflight = send("OPTIONS", url_of(town, route), [*lines, ("Access-Control-Request-Method", "POST")])
        assert preflight.status in (403, 405) and preflight.all("access-control-allow-methods") == [], preflight


@pytest.mark.parametrize("route", BODIES)
def test_no_body(town, route):
    for body in (None, b""):
        clear(ask(town, route, body=body), (400, 415), route)


@pytest.mark.parametrize("route", BODIES)
def test_wrong_media_type(town, route):
    """The right body under any other name, or wrapped, is not read."""
    other = FORM if route.takes == "json" else JSON
    body, right = good(route), {"json": JSON, "form": FORM, "mcp": JSON}[route.takes]
    others = [[TEXT], [other], [], [("Content-Type", "")], [right, TEXT], [("Content-Type", "application/jsonp")],
              [("Content-Type", "\xff")]]
    if route.takes == "mcp":
        rest = mcp_headers("tools/call", "get_positions")[1:]
        others = [[*lines, *rest] for lines in others if lines != [JSON]]
    for lines in others:
        clear(ask(town, route, body=body, headers=lines), (400, 415), route)
    for coding in ("gzip", "br", "identity, gzip"):
        response = ask(town, route, body=gzip.compress(body), extra=[("Content-Encoding", coding)])
        clear(response, 415, route)


@pytest.mark.parametrize("route", BODIES)
def test_over_the_limit(town, route):  # CORE-116
    """By declared length, by what arrives without one, and by a length that is no number."""
    big = good(route).rstrip(b"}") + b" " * (route.limit + 1)
    response = clear(ask(town, route, body=big), 413, route)
    if route.who != "owner":
        assert response.json()["error"] == "request_body_too_large"
    if route.who != "owner":
        chunks = b"".join(b"10000\r\n" + b"A" * 65536 + b"\r\n" for _ in range(route.limit // 65536 + 2)) + b"0\r\n\r\n"
        response = ask(town, route, body=chunks, extra=[("Transfer-Encoding", "chunked")])
        clear(response, 413, route)


@pytest.mark.parametrize("route", named(AUTHORITY, ("json",)))
@pytest.mark.parametrize("body", BROKEN_JSON.values(), ids=BROKEN_JSON)
def test_hostile_json(town, route, body):
    clear(ask(town, route, body=body), 400, route)


@pytest.mark.parametrize("route", named(AUTHORITY, ("form",)))
@pytest.mark.parametrize("body", BROKEN_FORM.values(), ids=BROKEN_FORM)
def test_hostile_forms(town, route, body):
    response = ask(town, route, body=body)
    if response.status == 200:  # A form after all, with a token that is none.
        answer = response.json()
        assert answer.get("active", answer.get("consumed")) is False and answer["error"], response
    else:
        clear(response, 400, route)


@pytest.mark.parametrize("body", BROKEN_JSON.values(), ids=BROKEN_JSON)
def test_hostile_json_at_the_resource(town, body):  # CORE-84 MCP-09
    response = clear(ask(town, GATEWAY[0], body=body), 400, GATEWAY[0])
    assert response.json()["error"]["code"] in (-32700, -32600), response
    assert response.json()["id"] is None and response.all("www-authenticate") == []

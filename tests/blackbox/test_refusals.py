"""What must be refused at the enforcement point, one row each: the request, the status, the code, the shape of
the body. Around every row stands `Untouched`: nothing spent, nothing recorded, nothing forwarded. Altered
terms, hostile bodies and the owner's own door have files of their own."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from cast import Armed, SCOPES, TRADE, holding, result
from parties import Agent, Challenge
from wire import LEGACY, Key, content_digest, mcp_body, mcp_headers, send

STRANGER = Key()
OTHER_AUTHORITY = "gateway.elsewhere.test:8441"


@dataclass
class Row:
    """`shape` is how the refusal is written: plain JSON, a JSON-RPC error, or a challenge. `error` may list
    alternatives."""

    id: str
    send: object
    status: int
    error: str | tuple
    shape: str = "plain"
    code: int | None = None


def routed(method="tools/call", name="get_positions", version="2026-07-28", *extra):
    """MCP headers with a value changed; None leaves the line out."""
    values = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"),
              ("MCP-Protocol-Version", version), ("Mcp-Method", method), ("Mcp-Name", name)]
    return [(header, value) for header, value in values if value is not None] + list(extra)


def legacy(s, method, params):
    return s.agent.request(s.resource, method, params, version=LEGACY)


POSSESSION = [
    Row("no token", lambda s: s.read(token=None), 401, "insufficient_authorization", "challenge"),  # CORE-84 MCP-07
    Row("no token, single use", lambda s: s.spend(token=None), 401, "insufficient_authorization",
        "challenge"),  # CORE-16
    Row("unsigned", lambda s: s.read(signed=False), 401, "invalid_token"),  # CORE-55
    Row("unsigned, single use", lambda s: s.spend(signed=False), 401, "invalid_token"),  # CORE-55 CORE-89
    Row("signed by another key", lambda s: s.read(key=STRANGER), 401, "invalid_token"),  # CORE-55 CORE-87
    Row("signed by another key under the right keyid",
        lambda s: s.spend(key=STRANGER, keyid=s.agent.key.thumbprint), 401, "invalid_token"),  # CORE-87 CORE-89
    Row("made two minutes ago", lambda s: s.spend(created=int(time.time()) - 120), 401, "invalid_token"),
    Row("made two minutes from now", lambda s: s.spend(created=int(time.time()) + 120), 401, "invalid_token"),
    Row("no creation time", lambda s: s.spend(parameters=f'keyid="{s.agent.key.thumbprint}";alg="ed25519"'),
        401, "invalid_token"),
    Row("expired by its own word",
        lambda s: s.spend(parameters=f"created={int(time.time()) - 10};expires={int(time.time()) - 5};"
                                     f'keyid="{s.agent.key.thumbprint}";alg="ed25519"'), 401, "invalid_token"),
    Row("method uncovered", lambda s: s.spend(drop=["@method"]), 401, "invalid_token"),  # CORE-56
    Row("authority uncovered", lambda s: s.spend(drop=["@authority"]), 401, "invalid_token"),  # CORE-56
    Row("path uncovered", lambda s: s.spend(drop=["@path"]), 401, "invalid_token"),  # CORE-56
    Row("authorization uncovered", lambda s: s.spend(drop=["authorization"]), 401, "invalid_token"),  # CORE-56
    Row("digest uncovered", lambda s: s.spend(drop=["content-digest"]), 401, "invalid_token"),  # CORE-61
    Row("digest not sent", lambda s: s.spend(digest=False), 401, "invalid_token"),  # CORE-62 CORE-63
    Row("digest not sent, reusable", lambda s: s.read(digest=False), 401, "invalid_token"),  # CORE-62
    Row("digest of another body", lambda s: s.spend(digest=content_digest(b"{}")), 401, "invalid_token"),  # CORE-61
    Row("covered twice", lambda s: s.spend(cover=["@method", "@method", "@authority", "@path", "authorization",
                                                  "content-digest"]), 401, "invalid_token"),  # BASE-10
    Row("unknown component", lambda s: s.spend(cover=["@method", "@authority", "@path", "authorization",
                                                      "content-digest", "@moon"]), 401, "invalid_token"),  # BASE-10
    Row("for another authority", lambda s: s.spend(authority=OTHER_AUTHORITY), 401, "invalid_token"),  # CORE-59
    Row("for another authority, Host to match",
        lambda s: s.spend(authority=OTHER_AUTHORITY, extra=[("Host", OTHER_AUTHORITY)]), 401,
        "invalid_token"),  # CORE-59
    Row("Bearer with a good token", lambda s: s.read(scheme="Bearer"), 401, "invalid_token"),  # CORE-66
    Row("Bearer, single use", lambda s: s.spend(scheme="Bearer"), 401, "invalid_token"),  # CORE-66
]

OPERATION = [
    Row("other arguments", lambda s: s.spend(TRADE | {"quantity": 4}), 403, "operation_mismatch"),  # CORE-19 CORE-88
    Row("an argument more", lambda s: s.spend(TRADE | {"limit": 1}), 403, "operation_mismatch"),  # CORE-88
    Row("an argument less", lambda s: s.spend({"symbol": "VTI", "side": "buy"}), 403,
        "operation_mismatch"),  # CORE-88
    Row("no arguments", lambda s: s.spend({}), 403, "operation_mismatch"),  # CORE-88
    Row("another tool with a reusable grant", lambda s: s.spend(token=s.positions.token), 401,
        "insufficient_authorization", "challenge"),  # CORE-86
    Row("another tool with a single-use grant", lambda s: s.read(token=s.trade.token), 401,
        "insufficient_authorization", "challenge"),  # CORE-86 CORE-90
    Row("a token nobody issued", lambda s: s.read(token="e30.e30.AAAA"), 401, ("insufficient_authorization",
        "invalid_token"), "any"),  # CORE-96
    Row("unknown tool", lambda s: s.agent.call(s.resource, "wire_money"), 403, "unknown_tool"),  # CORE-84
    Row("unknown tool with a grant", lambda s: s.agent.call(s.resource, "wire_money", token=s.positions.token),
        403, "unknown_tool"),  # CORE-84
    Row("unknown method", lambda s: s.agent.request(s.resource, "vault/open"), 404, "unknown_method", "jsonrpc",
        -32601),  # MCP-06
    Row("a method not served", lambda s: s.agent.request(s.resource, "resources/read", {"uri": "file:///x"},
        name="file:///x"), 404, "unknown_method", "jsonrpc", -32601),  # MCP-06
    Row("tasks", lambda s: s.agent.request(s.resource, "tasks/get", {"taskId": "1"}, name="1"), 404,
        "unknown_method", "jsonrpc", -32601),  # MCP-06
    Row("unknown method, older peer", lambda s: legacy(s, "vault/open", {}), 403, "unknown_method", "jsonrpc",
        -32601),  # MCP-06
    Row("no token, older peer", lambda s: legacy(s, "tools/call", {"name": "get_positions", "arguments": {}}), 401,
        "insufficient_authorization", "challenge"),  # CORE-84
]

LIE, ABSENT = "header_body_mismatch", "missing_routing_headers"
HEADERS = [
    Row("open method over a protected body", lambda s: s.spend(headers=routed("tools/list", None)), 400, LIE,
        "jsonrpc", -32020),  # MCP-14 MCP-25
    Row("method in another case", lambda s: s.spend(headers=routed("Tools/Call", "execute_trade")), 400, LIE,
        "jsonrpc", -32020),  # MCP-25
    Row("another tool's name", lambda s: s.spend(headers=routed(name="get_positions")), 400, LIE, "jsonrpc",
        -32020),  # MCP-26
    Row("another tool's name, no token", lambda s: s.spend(token=None, headers=routed(name="get_positions")), 400,
        LIE, "jsonrpc", -32020),  # MCP-26
    Row("name that does not decode", lambda s: s.spend(headers=routed(name="=?base64?!!?=")), 400, LIE, "jsonrpc",
        -32020),  # MCP-26
    Row("older version than the body's", lambda s: s.spend(headers=routed(name="execute_trade", version=LEGACY)),
        400, LIE, "jsonrpc", -32020),  # MCP-27
    Row("no method header", lambda s: s.spend(headers=routed(None, "execute_trade")), 400, ABSENT, "jsonrpc",
        -32020),  # MCP-27
    Row("no name header", lambda s: s.spend(headers=routed(name=None)), 400, ABSENT, "jsonrpc", -32020),  # MCP-27
    Row("neither header", lambda s: s.spend(headers=routed(None, None)), 400, ABSENT, "jsonrpc", -32020),  # MCP-27
    Row("no header at all, not even a version", lambda s: s.spend(headers=routed(None, None, None)), 400,
        (LIE, ABSENT), "jsonrpc", -32020),  # MCP-27
    Row("method twice", lambda s: s.spend(headers=routed("tools/call", "execute_trade", "2026-07-28",
        ("Mcp-Method", "tools/list"))), 400, (LIE, ABSENT), "jsonrpc", -32020),  # MCP-25
    Row("method twice, open one first", lambda s: s.spend(headers=routed("tools/list", "execute_trade",
        "2026-07-28", ("Mcp-Method", "tools/call"))), 400, (LIE, ABSENT), "jsonrpc", -32020),  # MCP-25
    Row("name twice, spelled in another case", lambda s: s.spend(headers=routed("tools/call", "execute_trade",
        "2026-07-28", ("mcp-NAME", "get_positions"))), 400, (LIE, ABSENT), "jsonrpc", -32020),  # MCP-26
    Row("version twice", lambda s: s.spend(headers=routed("tools/call", "execute_trade", "2026-07-28",
        ("MCP-Protocol-Version", LEGACY))), 400, (LIE, ABSENT), "jsonrpc", -32020),  # MCP-27
]

ORIGINS = ["https://evil.example", "null", "", "http://127.0.0.1.evil.example", "file://"]


@pytest.mark.parametrize("row", [*POSSESSION, *OPERATION, *HEADERS], ids=lambda row: row.id)
def test_refused(armed, row):
    with armed.untouched():
        assert_refused(row.send(armed), row)


def assert_refused(response, row):
    expected = (row.error,) if isinstance(row.error, str) else row.error
    assert response.status == row.status, response
    body = response.json()  # CORE-23
    if row.shape == "jsonrpc":
        assert body["jsonrpc"] == "2.0" and body["error"]["code"] == row.code, body
        assert body["error"]["data"]["error"] in expected and "result" not in body, body  # MCP-09
    else:
        assert body["error"] in expected and "jsonrpc" not in body, body  # MCP-08
        assert isinstance(body.get("error_description", ""), str)
    if row.shape == "challenge":
        assert Challenge.of(response).scope in SCOPES.values()
    elif row.shape != "any":
        # CORE-16: a refusal that negotiating cannot cure offers no negotiation.
        assert not any("UMA" in value for value in response.all("www-authenticate")), response.headers
        assert "ticket" not in body and "ticket" not in body.get("data", {})


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE", "OPTIONS"])
def test_a_foreign_origin(armed, origin, verb):  # CORE-20 MCP-28
    with armed.untouched():
        if verb == "POST":
            response = armed.spend(extra=[("Origin", origin)])
        else:
            response = send(verb, armed.resource, [("Origin", origin)])
        assert (response.status, response.json()["error"]) == (403, "invalid_origin")
        assert response.all("access-control-allow-origin") == []
        assert response.all("www-authenticate") == []


def test_two_authorization_lines(armed):
    with armed.untouched():
        for other in ("Bearer abc", "PoP " + armed.positions.token):
            response = armed.spend(extra=[("Authorization", other)])
            assert response.status in (400, 401) and response.json()["error"], response


def test_a_replayed_signature(armed):
    """The very same bytes twice, with a grant that would allow a second call freshly signed."""
    sent = []
    result(armed.read(replayable=sent))
    with armed.untouched():
        response = send(*sent[0])
        assert_refused(response, Row("replay", None, 401, "invalid_token"))


def test_a_replay_of_a_refused_call_spends_nothing(armed):  # CORE-89
    sent = []
    with armed.untouched():
        for response in (armed.spend(TRADE | {"quantity": 9}, replayable=sent), send(*sent[0])):
            assert response.status in (401, 403)


def test_a_signature_may_cover_more(armed):  # CORE-57 CORE-60 MCP-26
    more = ["content-type", "@method", "content-digest", "@path", "authorization", "@authority"]
    tag = f'tag="x";keyid="{armed.agent.key.thumbprint}";created={int(time.time())};alg="ed25519"'
    result(armed.read(cover=more, parameters=tag))
    result(armed.read(headers=routed(name="=?base64?Z2V0X3Bvc2l0aW9ucw==?=")))


def test_host_is_not_believed(armed):  # CORE-59
    """A signed request is judged by the configured authority; an unsigned one for a foreign Host is misdirected."""
    body, lines = mcp_body("tools/list"), mcp_headers("tools/list")
    with armed.untouched():
        assert send("POST", armed.resource, [("Host", OTHER_AUTHORITY), *lines], body).status == 421
    result(armed.read(extra=[("Host", OTHER_AUTHORITY)]))


def test_a_query_is_not_served(armed):
    with armed.untouched():
        params = {"name": "execute_trade", "arguments": TRADE}
        response = armed.agent.request(armed.resource + "?a=1", "tools/call", params, armed.trade.token,
                                       name="execute_trade")
        assert response.status == 400 and response.json()["error"], response


def test_sixteen_spend_one_grant(house):  # CORE-18 CORE-94 CORE-95
    racer = Armed(house)
    before = holding(result(racer.read()))
    with ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(lambda _: racer.spend(), range(16)))
    assert Counter(response.status for response in responses) == {200: 1, 403: 15}
    assert {r.json()["error"] for r in responses if r.status == 403} == {"already_consumed"}
    assert holding(result(racer.read())) == before + TRADE["quantity"]
    assert racer.owner.kinds(racer.trade.family).count("touched") == 1


def test_revoked(house):  # CORE-17 CORE-85 CORE-103
    ended, other = Armed(house), Armed(house)
    reply = house.owner.revoke(ended.agent.handle)
    assert (reply["connections_revoked"], reply["rpts_deactivated"]) == (1, 2)  # OWN-11
    rows = ended.rows()
    for response in (ended.read(), ended.spend(), ended.spend(signed=False), ended.spend(key=STRANGER)):
        assert_refused(response, Row("revoked", None, 403, "access_revoked"))
        assert response.all("www-authenticate") == []  # CORE-98
    assert ended.rows() == rows
    with other.untouched():  # Nobody else is touched by it.
        assert ended.read().status == 403


def test_a_stranger_stays_a_stranger(house):
    """A good token in another agent's hands, signed with that agent's own key."""
    holder, thief = Armed(house), Agent()
    with holder.untouched():
        response = thief.call(house.resource, "execute_trade", TRADE, token=holder.trade.token)
        assert_refused(response, Row("thief", None, 401, "invalid_token"))  # CORE-87


def test_what_was_refused_is_still_good(armed):  # CORE-89
    """Last in this file: after every refusal above, the grants do what they were given for, once and again."""
    before = holding(result(armed.read()))
    result(armed.spend())
    assert holding(result(armed.read())) == before + TRADE["quantity"]
    response = armed.spend()
    assert (response.status, response.json()["error"]) == (403, "already_consumed")

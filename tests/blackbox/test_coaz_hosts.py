"""A policy in the hosts: alone before a server whose callers show access tokens of a real issuer, and beside an owner
whose grants it may take away from and never add to. Nothing is forwarded, and nothing spent, on any refusal."""

import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import canary
from canary import Canary
from cast import SCOPES, TRADE, binary, environment, result
from engine import Engine, Issuer
from parties import Agent, Challenge
from town import Role, Town, free_port
from wire import LEGACY, Key, challenges, fetch_json, mcp_body, mcp_headers, send, verify_jws

DECLARED = {"evaluation": {
    "subject": {"type": "identity", "id": "$token.sub"}, "action": {"name": "pay"},
    "resource": {"type": "account", "id": "$params.arguments.account"},
    "context": {"amount": "$params.arguments.amount", "agent": "$token.?client_id"},
}}


HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


class Shop(Canary):
    """A server of the newest revision, one of whose tools declares a mapping."""

    listed = True

    def _result(self, message):
        if message["method"] == "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
        if message["method"] == "tools/list":
            if not self.listed:
                return {"tools": "none of your business"}
            return {"tools": [
                {"name": "look", "inputSchema": {"type": "object"}},
                {"name": "pay", "inputSchema": {"type": "object", "x-authzen-mapping": DECLARED}},
                {"name": "odd", "inputSchema": {"type": "object", "x-authzen-mapping": None}},
            ], "ttlMs": 300}
        return super()._result(message)


class Stand:
    """A gateway, or an external authorizer, before the shop, with its issuer and its policy engine."""

    def __init__(self, folder, kind="gateway", *, wishes=None, settings=None, shop=None):
        self.shop, self.issuer, self.engine = shop or Shop(), Issuer(), Engine()
        self.url = f"http://127.0.0.1:{free_port()}"
        self.resource = f"{self.url}/mcp"
        table = {"path": "/mcp", "enforce": ["coaz"]} | (wishes or {})
        base = {"pdp.url": self.engine.url, "pdp.timeout": 700, "oauth.issuers": [self.issuer.url]}
        if kind == "gateway":
            if "upstream_stdio" not in table:
                table["upstream"] = self.shop.url
            base["gateway.listen"] = self.url.removeprefix("http://")
        else:
            base |= {"ext_authz.public_url": self.url, "ext_authz.listen": "127.0.0.1:0",
                     "ext_authz.grpc.listen": "127.0.0.1:0", "ext_authz.partial_body_flag": True}
        self.role = Role(kind, folder / kind, base | (settings or {}), [("resource", table)])

    def __enter__(self):
        self.role.start()
        return self

    def __exit__(self, *_):
        self.role.end()
        self.shop.stop()
        self.issuer.close()
        self.engine.close()

    def token(self, **changes):
        audience = changes.pop("aud", self.resource)
        return self.issuer.token(audience, **changes)

    def ask(self, method="tools/call", name="look", params=None, token=None, *, bare=False, extra=(), to=None,
            version="2026-07-28", request_id=7, verb="POST", body=None):
        if method == "tools/call" and params is None:
            params = {"name": name, "arguments": {}}
        body = mcp_body(method, params, version=version, request_id=request_id) if body is None else body
        named = name if method == "tools/call" else None
        lines = mcp_headers(method, named, version=version) + list(extra)
        if not bare:
            lines.append(("Authorization", f"Bearer {token or self.token()}"))
        return send(verb, to or self.resource, lines, body)

    def forgotten(self):
        self.engine.asked.clear()
        self.engine.heads.clear()


@pytest.fixture(scope="module")
def stand(tmp_path_factory):
    with Stand(tmp_path_factory.mktemp("stand")) as stand:
        yield stand


@pytest.fixture(autouse=True)
def fresh(request):
    yield
    if "stand" in request.fixturenames:
        stand = request.getfixturevalue("stand")
        stand.engine.answer, stand.engine.pause, stand.shop.listed = (lambda body: True), 0, True
        stand.forgotten()


def refused(response, code, category, request_id=None):
    assert response.status == 200, response
    assert response.header("content-type") == "application/json"
    answer = response.json()
    assert request_id in (None, answer["id"]) and "result" not in answer, answer
    assert (answer["error"]["code"], answer["error"]["data"]["coaz"]["category"]) == (code, category), answer
    assert response.all("www-authenticate") == []
    return answer["error"]


def challenged(response, shown):
    assert response.status == 401, response
    ((scheme, params),) = challenges(response.header("www-authenticate"))
    assert scheme == "Bearer" and ("error" in params) == shown, params
    assert not shown or params["error"] == "invalid_token"
    assert response.header("cache-control") == "no-store"
    return params["resource_metadata"]


def test_whoever_shows_no_token_learns_where_one_is_to_be_had(stand):  # COAZ-MCP-70 COAZ-MCP-81
    before = stand.shop.calls()
    for method, name in (("tools/call", "look"), ("tools/list", None), ("no/such", None)):
        where = challenged(stand.ask(method, name, bare=True), shown=False)
        assert where == f"{stand.url}/.well-known/oauth-protected-resource/mcp"
    document = fetch_json(where)
    assert document["resource"] == stand.resource and document["authorization_servers"] == [stand.issuer.url]
    assert document["bearer_methods_supported"] == ["header"]
    assert not {"tool_surfaces", "owner_resources_endpoint", "scopes_supported"} & set(document), document
    _, signed = verify_jws(document["signed_metadata"], fetch_json(document["jwks_uri"]))
    assert signed["authorization_servers"] == [stand.issuer.url]
    assert send("GET", stand.url + "/.well-known/aauth-resource.json").status == 404
    assert stand.engine.asked == [] and stand.shop.calls() == before


def test_a_permitted_call_is_forwarded_as_it_came(stand):  # COAZ-MCP-03 COAZ-MCP-71 COAZ-MCP-73
    before = stand.shop.calls("look")
    response = stand.ask(extra=[("Cookie", "a=b")])
    assert result(response)["structuredContent"]["tool"] == "look"
    assert stand.shop.calls("look") == before + 1
    assert json.loads(stand.shop.bodies[-1])["id"] == 7
    heads = {name.lower() for name, _ in stand.shop.heads[-1]}
    assert not heads & {"authorization", "cookie"}, heads
    assert stand.engine.asked == [{
        "subject": {"type": "identity", "id": "u-ann"}, "action": {"name": "tools/call"},
        "resource": {"type": "tool", "id": "look"}, "context": {"agent": "agent-7"},
    }]
    assert stand.engine.heads[0]["x-request-id"]


def test_a_declared_mapping_governs_its_tool(stand):  # COAZ-MCP-04 COAZ-MCP-23
    arguments = {"account": "acc-9", "amount": 12}
    result(stand.ask(name="pay", params={"name": "pay", "arguments": arguments}))
    (asked,) = stand.engine.asked
    assert asked["action"] == {"name": "pay"} and asked["resource"] == {"type": "account", "id": "acc-9"}
    assert asked["context"] == {"amount": 12, "agent": "agent-7"}
    before = stand.shop.calls()
    stand.forgotten()
    error = refused(stand.ask(name="pay", params={"name": "pay", "arguments": {}}), -32602, "mapping_error")
    assert "acc-9" not in error["message"] and error["data"]["coaz"]["path"]
    refused(stand.ask(name="odd", params={"name": "odd"}), -32602, "mapping_error")
    assert stand.engine.asked == [] and stand.shop.calls() == before


def test_a_denial_reaches_nobody(stand):  # COAZ-FW-41 COAZ-MCP-49 COAZ-MCP-75 COAZ-MCP-77
    stand.engine.answer = lambda body: False
    before = len(stand.shop.bodies)
    for request_id in (7, "7", "é", 9007199254740993):
        refused(stand.ask("resources/list", request_id=request_id), -32001, "denied", request_id)
    asked = len(stand.engine.asked)
    for method in ("server/discover", "resources/templates/list", "no/such", "sampling/createMessage"):
        refused(stand.ask(method), -32001, "denied")
    assert len(stand.engine.asked) == asked, "what nothing maps is denied without asking"
    assert len(stand.shop.bodies) == before


@pytest.mark.parametrize("status, kind, body", [
    (200, "application/json", b'{"decision":"true"}'), (200, "application/json", b'{"decision":1}'),
    (200, "application/json", b'{"decision":null}'), (200, "application/json", b"{}"),
    (200, "application/json", b"[true]"), (200, "application/json", b"true"),
    (200, "application/json", b'{"decision":false,"decision":true}'), (200, "application/json", b'{"Decision":true}'),
    (200, "application/json", b'{"result":true}'), (200, "application/json", b""), (200, "text/html", b"<html>"),
    (200, "application/json", b'{"decision":true'), (200, "application/json", b'{"decision":true}{"decision":false}'),
    (200, "text/plain", b'{"decision":true}'), (201, "application/json", b'{"decision":true}'),
    (403, "application/json", b'{"decision":true}'), (401, "application/json", b""), (404, "application/json", b""),
    (429, "application/json", b""), (500, "application/json", b'{"decision":true}'), (302, "text/plain", b""),
])
def test_what_is_no_decision_permits_nothing(stand, status, kind, body):  # COAZ-FW-42 COAZ-MCP-80 COAZ-MCP-85
    before = stand.shop.calls()
    stand.engine.answer = lambda asked: (status, kind, body)
    error = refused(stand.ask(), -32603, "pdp_unavailable")
    assert stand.engine.url not in json.dumps(error)
    assert stand.shop.calls() == before


def test_a_policy_engine_that_is_slow_is_not_waited_for(stand):  # COAZ-MCP-80 COAZ-FW-46
    before, began = stand.shop.calls(), time.monotonic()
    stand.engine.pause = 3
    refused(stand.ask(), -32603, "pdp_unavailable")
    assert time.monotonic() - began < 2.5
    assert stand.shop.calls() == before


def test_tokens_that_are_not_good_here(stand):  # COAZ-MCP-81, case 35, TOK-02 TOK-03 TOK-04 TOK-05 TOK-06 TOK-07 TOK-08 AUD-11
    now, other = int(time.time()), Key()
    resource = stand.resource
    control = [stand.token(), stand.token(aud=[resource]), stand.token(aud=["https://evil.example.test", resource])]
    for token in control:
        result(stand.ask(token=token))
    asked, before = len(stand.engine.asked), stand.shop.calls()
    bad = {
        "longer": stand.token(aud=resource + "2"), "shorter": stand.token(aud=resource[:-1]),
        "origin": stand.token(aud=stand.url), "slash": stand.token(aud=resource + "/"),
        "case": stand.token(aud=resource.replace("mcp", "MCP")), "none": stand.token(without=("aud",)),
        "empty": stand.token(aud=""), "list": stand.token(aud=[]), "number": stand.token(aud=5),
        "object": stand.token(aud={"aud": resource}), "nested": stand.token(aud=[[resource]]),
        "joined": stand.token(aud=f"https://evil.example.test,{resource}"), "wildcard": stand.token(aud="*"),
        "expired": stand.token(exp=now - 300), "no exp": stand.token(without=("exp",)),
        "early": stand.token(nbf=now + 600), "issuer": stand.token(iss=stand.issuer.url + "/"),
        "no issuer": stand.token(without=("iss",)), "key": stand.token(key=other),
        "unsigned": stand.token(header={"alg": "none"}), "kid": stand.token(header={"kid": "k2"}),
        "bound": stand.token(cnf={"jkt": other.thumbprint}), "opaque": "opaque", "cut": stand.token()[:-4],
    }
    for name, token in bad.items():
        print(name)
        challenged(stand.ask(token=token), shown=True)
    doubled = stand.ask(extra=[("Authorization", f"Bearer {stand.token()}")])
    assert doubled.status in (400, 401), doubled
    assert len(stand.engine.asked) == asked and stand.shop.calls() == before
    # The identity of the server is one string, whichever audience stands first.
    result(stand.ask("tools/list", token=control[2]))
    assert stand.engine.asked[-1]["resource"] == {"type": "mcp_server", "id": resource}


def test_without_a_listing_no_call_is_mapped(stand):  # D-36 LST-03
    stand.shop.listed = False
    time.sleep(1.2)  # Longer than the last one holds.
    stand.forgotten()
    before = stand.shop.calls()
    refused(stand.ask(), -32603, "mapping_unavailable")
    assert stand.engine.asked == [] and stand.shop.calls() == before
    result(stand.ask("prompts/list"))
    stand.shop.listed = True
    result(stand.ask())


def test_a_listing_that_hardly_holds_is_a_listing(tmp_path):  # LST-08
    class Hasty(Shop):
        def _result(self, message):
            said = super()._result(message)
            return said | {"ttlMs": 1} if message["method"] == "tools/list" else said

    with Stand(tmp_path, shop=Hasty()) as stand:
        stand.engine.pause = 0.03
        for _ in range(6):
            result(stand.ask())


def test_every_decision_is_told_once_and_no_value_with_it(stand):
    stand.forgotten()
    secret = "acc-very-secret"
    result(stand.ask(name="pay", params={"name": "pay", "arguments": {"account": secret, "amount": 1}}))
    (head,) = stand.engine.heads
    told = [json.loads(line) for line in stand.role.logged().splitlines() if line.startswith("{")]
    told = [line.get("fields", line) for line in told]
    (one,) = [line for line in told if line.get("request_id") == head["x-request-id"]]
    assert (one["method"], one["tool"], one["source"], one["decision"]) == ("tools/call", "pay", "declared", "permit")
    assert one["mapping"].startswith("s256:") and isinstance(one["latency_ms"], int)
    assert secret not in stand.role.logged() and stand.token() not in stand.role.logged()
    metrics = send("GET", stand.role.ready["metrics"] + "/metrics").body.decode()
    assert 'sayso_policy_decisions_total{decision="permit"}' in metrics


def test_a_list_shows_what_may_be_called(tmp_path):
    with Stand(tmp_path, wishes={"filter_lists": True}) as stand:
        def tools():
            response = stand.ask("tools/list")
            return [tool["name"] for tool in result(response)["tools"]]

        assert tools() == ["look", "pay"], "one whose mapping is malformed cannot be called"
        stand.engine.answer = lambda body: body["resource"]["id"] != "pay"
        assert tools() == ["look"]
        stand.engine.answer = lambda body: body["resource"]["type"] == "mcp_server"
        assert tools() == []
        stand.engine.answer = lambda body: True if body["resource"]["type"] == "mcp_server" else "no decision"
        refused(stand.ask("tools/list"), -32603, "pdp_unavailable")


def test_a_list_is_cut_or_refused(tmp_path):  # COAZ-FW-43 D-36
    """Marked as its reader's alone, with no word beside it of what was cut; and without mappings no list at all."""
    class Frank(Shop):
        unlisted = False

        class Handler(canary.Handler):
            def answer(self, body, headers=()):
                super().answer(body, [*headers, ("ETag", '"three"'), ("X-Total-Count", "3")])

        def __init__(self):
            super().__init__(handler=self.Handler)

        def _result(self, message):
            if message["method"] == "tools/list" and self.unlisted and message["id"] != 7:
                return {"tools": "none of your business"}
            said = super()._result(message)
            return said | {"cacheScope": "public", "total": 3} if message["method"] == "tools/list" else said

    with Stand(tmp_path, shop=Frank(), wishes={"filter_lists": True}) as stand:
        stand.engine.answer = lambda body: body["resource"]["id"] != "pay"
        response = stand.ask("tools/list")
        assert [tool["name"] for tool in result(response)["tools"]] == ["look"]
        assert set(result(response)) == {"tools", "ttlMs", "cacheScope"}
        assert result(response)["cacheScope"] == "private"
        assert response.header("etag") is None and response.header("x-total-count") is None
        stand.shop.unlisted = True
        time.sleep(1.2)  # Longer than the last listing holds.
        refused(stand.ask("tools/list"), -32603, "mapping_unavailable")


class Remembering(Shop):
    """The same, with sessions for older clients."""

    class Handler(canary.Handler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = self.canary.take(list(self.headers.items()), body)
            named = [("Mcp-Session-Id", "theirs")] if json.loads(body)["method"] == "initialize" else []
            self.answer(answer, named)

        def do_DELETE(self):
            self.canary.ended.append(self.headers["Mcp-Session-Id"])
            self.answer(b"")

    def __init__(self):
        self.ended = []
        super().__init__(handler=self.Handler)

    def _result(self, message):
        if message["method"] == "initialize":
            return {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": {"name": "shop", "version": "1"}}
        return super()._result(message)


def test_a_session_is_whose_token_began_it(tmp_path):  # COAZ-MCP-87 MSG-16
    with Stand(tmp_path, shop=Remembering()) as stand:
        first = stand.ask("initialize", params={"protocolVersion": LEGACY, "capabilities": {}}, version=LEGACY)
        session = first.header("mcp-session-id")
        assert first.status == 200 and session not in (None, "theirs"), first
        inside = [("Mcp-Session-Id", session)]
        result(stand.ask(version=LEGACY, extra=inside))
        assert dict((n.lower(), v) for n, v in stand.shop.heads[-1])["mcp-session-id"] == "theirs"
        before, asked = len(stand.shop.bodies), len(stand.engine.asked)
        strangers = [stand.token(sub="u-bob"), stand.token(client_id="agent-8")]
        for verb, body in (("POST", None), ("GET", b""), ("DELETE", b"")):
            sent = {"verb": verb, "version": LEGACY, "extra": inside} | ({} if body is None else {"body": body})
            for token in strangers:
                no = stand.ask(token=token, **sent)
                assert (no.status, no.json()["error"]) == (403, "session_bound"), no
            challenged(stand.ask(bare=True, **sent), shown=False)
            challenged(stand.ask(token="eve", **sent), shown=True)
        assert stand.ask(version=LEGACY, extra=[("Mcp-Session-Id", "theirs")]).status == 404
        assert (len(stand.shop.bodies), len(stand.engine.asked), stand.shop.ended) == (before, asked, [])
        assert stand.ask(verb="DELETE", version=LEGACY, extra=inside, body=b"").status == 200
        assert stand.shop.ended == ["theirs"]
        assert stand.ask(version=LEGACY, extra=inside).status == 404


class Streaming(Remembering):
    """The same, and whoever listens is told one thing and kept waiting for the next."""

    class Handler(Remembering.Handler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"id: 1\ndata: {}\n\n")
            self.wfile.flush()
            self.canary.left.wait(30)
            self.close_connection = True

    def __init__(self):
        self.left = threading.Event()
        super().__init__()


def test_a_stream_ends_with_the_token_that_opened_it(tmp_path):  # D-13 COAZ-MCP-87
    with Stand(tmp_path, shop=Streaming()) as stand:
        hello = {"protocolVersion": LEGACY, "capabilities": {}}
        session = stand.ask("initialize", params=hello, version=LEGACY).header("mcp-session-id")

        def listen(token):
            lines = {"Mcp-Session-Id": session, "Accept": "text/event-stream", "MCP-Protocol-Version": LEGACY,
                     "Authorization": f"Bearer {token}"}
            opened = http.client.HTTPConnection(stand.url.removeprefix("http://"), timeout=20)
            opened.request("GET", "/mcp", headers=lines)
            response = opened.getresponse()
            assert response.status == 200 and response.readline() == b"id: 1\n"
            return response

        # Clocks may differ by a minute, so that these are good for some seconds more.
        soon, later = (stand.token(exp=int(time.time()) - 60 + left) for left in (3, 600))
        brief, lasting = listen(soon), listen(later)
        began = time.monotonic()
        assert b"data: {}" in brief.read()
        assert 1 < time.monotonic() - began < 9
        assert stand.ask(token=soon, version=LEGACY, extra=[("Mcp-Session-Id", session)]).status == 401
        assert stand.ask(token=later, version=LEGACY, extra=[("Mcp-Session-Id", session)]).status == 200
        stand.shop.left.set()
        assert b"data: {}" in lasting.read(), "the other was open all the time"
def test_a_session_is_of_the_subject_that_is_designated(tmp_path):  # COAZ-MCP-09 MSG-16
    with Stand(tmp_path, wishes={"subject_claim": "obo"}, shop=Remembering()) as stand:
        ann, bob = stand.token(sub="agent-7", obo="u-ann"), stand.token(sub="agent-7", obo="u-bob")
        first = stand.ask("initialize", params=HELLO, version=LEGACY, token=ann)
        assert stand.engine.asked[-1]["subject"]["id"] == "u-ann"
        inside, asked = [("Mcp-Session-Id", first.header("mcp-session-id"))], len(stand.engine.asked)
        for token in (bob, stand.token(sub="agent-7"), stand.token(without=("sub",))):
            for verb, body in (("POST", None), ("GET", b""), ("DELETE", b"")):
                no = stand.ask(verb=verb, body=body, version=LEGACY, extra=inside, token=token)
                assert (no.status, no.json()["error"]) == (403, "session_bound"), no
        assert (len(stand.engine.asked), stand.shop.ended) == (asked, [])
        result(stand.ask(version=LEGACY, extra=inside, token=ann))


def test_one_token_does_not_take_every_child(tmp_path):  # D-31 MSG-16
    command = f"{sys.executable} {Path(__file__).parent / 'servers/plain.py'}"
    with Stand(tmp_path, wishes={"upstream_stdio": command}) as stand:
        eve, ann = stand.token(sub="u-eve"), stand.token(sub="u-ann")

        def begin(token):
            return stand.ask("initialize", params=HELLO, version=LEGACY, token=token).header("mcp-session-id")

        def lives(session, token):
            return stand.ask("ping", version=LEGACY, extra=[("Mcp-Session-Id", session)], token=token).status == 200

        eves = [begin(eve) for _ in range(40)]
        anns = [begin(ann) for _ in range(2)]
        assert None not in eves + anns, "nobody is refused"
        assert [lives(session, eve) for session in eves] == [False] * 18 + [True] * 22
        assert all(lives(session, ann) for session in anns)


def test_an_external_authorizer_never_says_yes_to_a_no(tmp_path):  # D-3 COAZ-MCP-02
    with Stand(tmp_path, "ext-authz", wishes={"mappings": "none"}) as stand:
        check = stand.role.ready["check"] + "/mcp"
        host = [("Host", stand.url.removeprefix("http://")), ("X-Envoy-Auth-Partial-Body", "false")]

        def asked(**changes):
            return stand.ask(to=check, extra=host, **changes)

        yes = asked()
        assert yes.status == 200 and "authorization" in yes.header("x-envoy-auth-headers-to-remove")
        for said, code in ((False, -32001), ((500, "text/plain", b""), -32603)):
            stand.engine.answer = lambda body, said=said: said
            no = asked()
            assert no.status == 403, no
            assert no.json()["error"]["code"] == code and no.json()["id"] == 7
        assert asked(method="no/such", name=None).status == 403
        assert asked(bare=True).status == 401
        assert asked(token="eve").status == 401


def ended(folder, kind, settings, tables):
    role = Role(kind, folder, settings, tables)
    done = subprocess.run([binary(), kind, "--config", role.file, "--json"], cwd=folder, capture_output=True,
                          timeout=30, env=environment(folder), check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("settings, wishes, word", [
    ({}, {}, "policy engine"),
    ({"pdp.url": "https://pdp.example.test"}, {}, "issuer"),
    ({"pdp.url": "http://pdp.example.test", "oauth.issuers": ["https://idp.example.test"]}, {}, "https"),
    ({"pdp.url": "https://pdp.example.test", "oauth.issuers": ["https://idp.example.test"]},
     {"open_methods": ["resources/read"]}, "opened"),
    ({"pdp.url": "https://pdp.example.test", "oauth.issuers": ["https://idp.example.test"]},
     {"extra_defaults": ["tools/run"]}, "extra_defaults"),
])
def test_what_names_a_policy_and_has_none_does_not_start(tmp_path, settings, wishes, word):  # COAZ-MCP-50 COAZ-MCP-86
    table = {"path": "/mcp", "enforce": ["coaz"], "upstream": "http://127.0.0.1:9/mcp"} | wishes
    status, said = ended(tmp_path / "g", "gateway", {"gateway.listen": "127.0.0.1:0"} | settings, [("resource", table)])
    assert status != 0 and word in said, said


def test_start_up_says_what_a_newest_client_needs(stand):  # D-6
    assert "server/discover" in stand.role.logged()


# ---- beside an owner ---------------------------------------------------------------------------------------


class Market(Canary):
    """The canary of a town, in the newest revision."""

    def _result(self, message):
        if message["method"] == "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return super()._result(message)


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    town = Town(tmp_path_factory.mktemp("both"))
    town.canary.stop()
    town.canary = Market()
    town.canary.tools = SCOPES
    town.engine = Engine()
    tables = town.resource_tables()
    tables[0][1]["enforce"] = ["uma", "coaz"]
    town.gateway.write(town.gateway.settings | {"pdp.url": town.engine.url, "pdp.timeout": 10000}, tables)
    try:
        yield town.start()
    finally:
        town.close()
        town.engine.close()


def test_a_policy_takes_from_a_grant_and_spends_nothing(town):  # D-5 D-7 FED-49
    agent, before = Agent(), town.canary.calls()
    grant = agent.obtain(town.resource, "execute_trade", TRADE, owner=town.owner)
    town.engine.answer = lambda body: False
    refused(agent.call(town.resource, "execute_trade", TRADE, token=grant.token), -32001, "denied")
    asked = town.engine.asked[-1]
    assert asked["resource"] == {"type": "tool", "id": "execute_trade"}
    name = asked["subject"]["id"]
    assert name.startswith("pw:") and asked["context"]["agent"] == name and agent.key.thumbprint not in json.dumps(asked)
    town.engine.answer = lambda body: (500, "text/plain", b"")
    response = agent.call(town.resource, "execute_trade", TRADE, token=grant.token)
    assert response.json()["error"]["code"] == -32603
    assert town.canary.calls() == before
    town.engine.answer = lambda body: True
    result(agent.call(town.resource, "execute_trade", TRADE, token=grant.token))
    assert town.canary.calls("execute_trade") == 1, "the refusals did not spend it"
    assert town.engine.asked[-1]["subject"]["id"] == name, "the name is stable"


def test_what_she_leaves_open_asks_no_policy(town):  # D-6
    asked = len(town.engine.asked)
    town.engine.answer = lambda body: False
    agent = Agent()
    assert agent.request(town.resource, "tools/list").status == 200
    Challenge.of(agent.call(town.resource, "get_positions"))
    assert len(town.engine.asked) == asked


@pytest.mark.parametrize("tool", ["get_positions", "execute_trade"])
def test_what_she_ends_while_a_policy_thinks_has_ended(town, tool):  # D-5 D-21
    agent = Agent()
    arguments = TRADE if tool == "execute_trade" else {}
    town.engine.answer, town.engine.pause = (lambda body: True), 0
    grant = agent.obtain(town.resource, tool, arguments, owner=town.owner)
    before, asked, said = town.canary.calls(), len(town.engine.asked), []
    town.engine.pause = 3
    calling = threading.Thread(target=lambda: said.append(
        agent.call(town.resource, tool, arguments, token=grant.token)))
    calling.start()
    time.sleep(1)
    assert len(town.engine.asked) == asked + 1 and not said, "the policy is thinking"
    town.owner.revoke(agent.handle)
    calling.join(15)
    town.engine.pause = 0
    (response,) = said
    assert (response.status, response.json()["error"]) == (403, "access_revoked"), response
    assert town.canary.calls() == before

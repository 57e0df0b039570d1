"""`sayso ext-authz` behind a real Envoy, over gRPC and over HTTP, with the configurations of docs/ext-authz: what an
agent and the server behind Envoy see of every kind of decision, and of none."""

import http.client
import json
import socketserver
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from cast import SCOPES, TRADE, Process, binary, environment, result
from envoy import FOLDER, KINDS, PATIENCE, Envoy, EnvoyTown
from parties import Agent, Challenge, Owner
from stock import HERE, serving
from test_metrics import moved, scrape
from town import Role, free_port
from wire import Key, fetch_json, mcp_body, mcp_headers, send, sign

OURS = ("authorization", "signature", "signature-input", "content-digest", "cookie", "x-uma-owner")


@pytest.fixture(scope="module", params=KINDS)
def town(request, tmp_path_factory):
    with EnvoyTown.running(tmp_path_factory.mktemp("envoy"), request.param) as town:
        town.kind = request.param
        yield town


def refused(response, status, error):
    assert (response.status, response.json()["error"]) == (status, error), response
    return response


def heads(town):
    return {name.lower() for name, _ in town.canary.heads[-1]}


def test_the_story_through_envoy(town):  # CORE-82 CORE-85 CORE-90 MCP-08 MCP-18
    agent, before = Agent(), town.canary.calls()
    listed = agent.request(town.resource, "tools/list", extra=[("Cookie", "a=b"), ("X-Uma-Owner", "bob")])
    assert listed.status == 200 and {tool["name"] for tool in listed.message()["result"]["tools"]} == set(SCOPES)
    assert not heads(town) & set(OURS), heads(town)
    challenged = agent.call(town.resource, "get_positions")
    challenge = Challenge.of(challenged)
    assert challenge.as_uri == town.issuer and challenge.body["ticket"] == challenge.ticket
    assert challenged.header("content-type") == "application/json"
    assert challenged.header("cache-control") == "no-store"
    agent.corroborate(town.resource, challenge)

    grant, sent = agent.obtain(town.resource, "get_positions", owner=town.owner), []
    result(agent.call(town.resource, "get_positions", token=grant.token, replayable=sent, extra=[("Cookie", "a=b")]))
    assert town.canary.calls() == before + 1 and town.canary.bodies[-1] == sent[0][3]
    assert not heads(town) & set(OURS), heads(town)
    assert {"mcp-method", "mcp-name", "content-type"} <= heads(town)
    refused(send(*sent[0]), 401, "invalid_token")  # D-9

    trade = agent.obtain(town.resource, "execute_trade", TRADE, owner=town.owner)
    other = agent.call(town.resource, "execute_trade", TRADE | {"quantity": 4}, token=trade.token)
    refused(other, 403, "operation_mismatch")
    result(agent.call(town.resource, "execute_trade", TRADE, token=trade.token))
    refused(agent.call(town.resource, "execute_trade", TRADE, token=trade.token), 403, "already_consumed")
    assert town.canary.calls() == before + 2
    assert town.owner.kinds(trade.family)[-1] == "touched"

    town.owner.revoke(agent.handle)
    ended = refused(agent.call(town.resource, "get_positions", token=grant.token), 403, "access_revoked")
    assert ended.all("www-authenticate") == [] and town.canary.calls() == before + 2


def test_one_request_asked_by_many_passes_once(town):  # CORE-90
    agent = Agent()
    for tool, arguments in (("execute_trade", TRADE), ("get_positions", {})):
        token = agent.obtain(town.resource, tool, arguments, owner=town.owner).token
        before, body = town.canary.calls(tool), mcp_body("tools/call", {"name": tool, "arguments": arguments})
        lines = [*mcp_headers("tools/call", tool), ("Authorization", f"PoP {token}")]
        lines += sign(agent.key, "POST", town.resource, lines, body)
        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(lambda _: send("POST", town.resource, lines, body).status, range(32)))
        assert answers.count(200) == 1 and set(answers) <= {200, 401, 403}, answers
        assert town.canary.calls(tool) == before + 1


def test_what_needs_a_channel_is_refused(town):  # D-15
    agent = Agent()
    for verb in ("GET", "DELETE"):
        answer = send(verb, town.resource, [("Mcp-Session-Id", "s"), ("Accept", "text/event-stream")])
        assert (answer.status, answer.header("allow")) == (405, "POST"), answer
    resumed = agent.request(town.resource, "tools/list", extra=[("Last-Event-ID", "7")])
    refused(resumed, 400, "invalid_request")


def test_a_stranger_takes_nothing_back(town):  # D-13 D-15
    """What an older client takes back or answers is refused unless it is known whose session it is; nothing gets there."""
    older = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"),
             ("MCP-Protocol-Version", "2025-11-25")]
    said = {"cancelled": {"method": "notifications/cancelled", "params": {"requestId": 1}}, "answer": {"id": 1, "result": {}}}
    before = len(town.canary.bodies)
    for session in ([], [("Mcp-Session-Id", "somebodys")]):
        for message in said.values():
            answer = send("POST", town.resource, older + session, json.dumps({"jsonrpc": "2.0"} | message).encode())
            assert answer.status == 403 and answer.json()["error"]["data"]["error"] == "unknown_method", answer
    assert len(town.canary.bodies) == before


def test_other_spellings_reach_nobody(town):
    before, body = len(town.canary.bodies), mcp_body("tools/list")
    for path in ("//mcp", "/mcp/", "/%6dcp", "/mcp;x", "/x/../mcp", "/MCP", "/mcp?x=1", "/check/mcp", "/./mcp", "/mcp%2f"):
        answer = send("POST", town.url + path, mcp_headers("tools/list"), body)
        assert answer.status in (400, 404), (path, answer)
    assert len(town.canary.bodies) == before


def test_header_lines_that_are_there_twice(town):  # MCP-25 MCP-26
    agent, before = Agent(), len(town.canary.bodies)
    for extra in (("Mcp-Method", "tools/list"), ("Mcp-Name", "get_positions"), ("MCP-Protocol-Version", "2026-07-28")):
        answer = agent.call(town.resource, "execute_trade", TRADE, extra=[extra])
        assert answer.status == 400 and answer.all("www-authenticate") == [], (extra, answer)
    assert len(town.canary.bodies) == before


def test_the_hosts_and_origins_are_ours(town):  # D-16 CORE-20
    body, before = mcp_body("tools/list"), len(town.canary.bodies)
    lines = mcp_headers("tools/list")
    refused(send("POST", town.resource, [("Host", "evil.example"), *lines], body), 421, "misdirected_request")
    refused(send("POST", town.resource, [*lines, ("Origin", "https://evil.example")], body), 403, "invalid_origin")
    assert len(town.canary.bodies) == before


def test_a_flag_of_the_agents_own_changes_nothing(town):  # MCP-29
    agent = Agent()
    for flag in ("false", "true"):
        answer = agent.request(town.resource, "tools/list", extra=[("X-Envoy-Auth-Partial-Body", flag)])
        assert answer.status == 200, (flag, answer)


def test_a_body_without_a_length_is_whole_by_the_flag(town):
    parts = urlsplit(town.resource)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    body = mcp_body("tools/call", {"name": "get_positions", "arguments": {}})
    headers = dict(mcp_headers("tools/call", "get_positions"))
    connection.request("POST", parts.path, iter([body[:20], body[20:]]), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 401 and answer.getheader("www-authenticate").startswith("UMA"), answer.read()


def test_a_large_body_passes_and_a_larger_is_refused(town):
    agent = Agent()
    body = mcp_body("tools/list")
    large = body + b" " * (3 * (1 << 20))
    assert agent.request(town.resource, "tools/list", body=large).status == 200
    assert town.canary.bodies[-1] == large
    assert agent.request(town.resource, "tools/list", body=body + b" " * (1 << 22)).status == 413


def test_documents_are_open_and_the_rest_is_not(town):  # CORE-117
    document = fetch_json(f"{town.url}/.well-known/oauth-protected-resource/mcp")
    assert document["resource"] == town.resource
    assert fetch_json(document["jwks_uri"])["keys"]
    assert send("GET", document["owner_resources_endpoint"]).status == 401
    assert send("GET", town.url + "/health").status == 404
    assert send("POST", f"{town.checks}/mcp", mcp_headers("tools/list"), mcp_body("tools/list")).status in (404, 421)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bytes_", ["true", "false"])
def test_a_cut_body_is_refused_by_that_name(tmp_path, kind, bytes_):  # MCP-29 MCP-30 CORE-21 CORE-116
    """An Envoy that was told to pass on a part, as bytes or as text."""
    changes = [("allow_partial_message: false", "allow_partial_message: true"),
               ("max_request_bytes: 4194304", "max_request_bytes: 512"),
               ("pack_as_bytes: true", f"pack_as_bytes: {bytes_}")]
    with EnvoyTown.running(tmp_path, kind, changes) as town:
        agent = Agent()
        grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
        before = len(town.canary.bodies)
        whole = agent.request(town.resource, "tools/list")
        assert whole.status == 200, whole
        padded = mcp_body("tools/list") + b" " * 600
        for answer in (agent.request(town.resource, "tools/list", body=padded),
                       agent.call(town.resource, "execute_trade", TRADE | {"note": "x" * 600}),
                       agent.call(town.resource, "get_positions", {"note": "x" * 600}, token=grant.token)):
            cut = refused(answer, 413, "request_body_too_large")
            assert "truncated" in cut.json()["error_description"] and cut.all("www-authenticate") == []
        assert len(town.canary.bodies) == before + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_at_the_ceiling_is_refused(tmp_path, kind):  # CORE-21
    """However the gateway names what it did: one as long as it cuts at may have been longer."""
    length = len(mcp_body("tools/list")) + 100
    changes = [("max_request_bytes: 4194304", f"max_request_bytes: {length}")]
    with EnvoyTown.running(tmp_path, kind, changes, body_limit=length) as town:
        agent, body = Agent(), mcp_body("tools/list")
        fill = lambda size: body + b" " * (size - len(body))
        assert agent.request(town.resource, "tools/list", body=fill(length - 1)).status == 200
        refused(agent.request(town.resource, "tools/list", body=fill(length)), 413, "request_body_too_large")
        assert agent.request(town.resource, "tools/list", body=fill(length + 1)).status == 413


@pytest.mark.parametrize("kind", KINDS)
def test_no_body_passed_on_is_no_decision(tmp_path, kind):  # CORE-64
    """An Envoy that was not told to pass bodies on."""
    body = "with_request_body: { max_request_bytes: 4194304, allow_partial_message: false, pack_as_bytes: true }"
    with EnvoyTown.running(tmp_path, kind, [(body, "")]) as town:
        agent = Agent()
        for answer in (agent.request(town.resource, "tools/list"), agent.call(town.resource, "get_positions")):
            refused(answer, 413, "request_body_too_large")
        assert town.canary.bodies == []


def test_joined_header_lines_are_refused_over_grpc_too(tmp_path):  # MCP-25
    with EnvoyTown.running(tmp_path, "grpc", [("encode_raw_headers: true", "encode_raw_headers: false")]) as town:
        agent = Agent()
        assert agent.request(town.resource, "tools/list").status == 200
        twice = agent.request(town.resource, "tools/list", extra=[("Mcp-Session-Id", "a"), ("Mcp-Session-Id", "b")])
        refused(twice, 400, "invalid_request")
        grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
        result(agent.call(town.resource, "get_positions", token=grant.token))


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_to_ask_is_a_503(tmp_path, kind):  # CORE-22
    with EnvoyTown.running(tmp_path, kind) as town:
        agent, sent = Agent(), []
        grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
        town.authority.kill()
        gone = agent.call(town.resource, "get_positions", token=grant.token, replayable=sent)
        assert gone.status == 503, gone
        if kind == "grpc":  # Over HTTP Envoy keeps the body of a 5xx to itself.
            assert refused(gone, 503, "temporarily_unavailable").header("retry-after") == "1"
        town.authority.start()
        result(send(*sent[0]))  # Nothing was spent, the signature neither.
        before = len(town.canary.bodies)
        town.gateway.kill()
        for answer in (agent.request(town.resource, "tools/list"), agent.call(town.resource, "get_positions"),
                       agent.call(town.resource, "get_positions", token=grant.token)):
            assert answer.status == 503, answer
        assert len(town.canary.bodies) == before
        town.gateway.start()
        assert agent.request(town.resource, "tools/list").status == 200
        result(agent.call(town.resource, "get_positions", token=grant.token))
        assert town.gateway.stop() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_unmodified_server_and_our_agent(tmp_path, kind):
    """The files of docs/ext-authz as they are but for addresses, a server of the Python SDK, `sayso agent call`."""
    listen, public, plain, grpc = (free_port() for _ in range(4))
    issuer, url = f"http://127.0.0.1:{listen}", f"http://127.0.0.1:{public}"
    text = (FOLDER / "sayso.toml").read_text()
    for old, new in (("127.0.0.1:8440", f"127.0.0.1:{listen}"), ("127.0.0.1:10000", f"127.0.0.1:{public}"),
                     ("127.0.0.1:8442", f"127.0.0.1:{plain}"), ("127.0.0.1:8443", f"127.0.0.1:{grpc}")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "sayso.toml").write_text(text)
    authority = Role("authority", tmp_path / "authority", {
        "authority.listen": f"127.0.0.1:{listen}", "authority.interval": 1,
    }, [("owner", {"name": "alice"}),
        ("resource_server", {"client_id": url, "owner": "alice", "resource_uri": url + "/mcp"})])
    port, checks = free_port(), Process(tmp_path, tmp_path / "checks.log")
    proxy = Envoy(tmp_path / "envoy", kind, {10000: public, 8000: port, 8442: plain, 8443: grpc})
    with serving([sys.executable, str(HERE / "servers/wordbook.py"), str(port)], port):
        try:
            checks.launch("ext-authz", "--config", tmp_path / "sayso.toml", "--json")
            assert checks.ready["resource"] == url + "/mcp" and checks.ready["check"].endswith(f":{plain}/check")
            proxy.start()
            authority.start()
            owner = Owner(issuer, Key.from_pem(authority.ready["owner_key"]))
            govern(owner, "look_up", ["look_up:read"], False)
            govern(owner, "add_word", ["add_word:call"], True)

            def call(tool, arguments, wait=0):
                words = ("agent", "call", url + "/mcp", tool, "--args", json.dumps(arguments), "--accept-terms",
                         "--wait", str(wait))
                return subprocess.run([binary(), *words], env=environment(tmp_path), cwd=tmp_path, text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

            for tool, arguments, answer in (("look_up", {"word": "say"}, "sagen"),
                                            ("add_word", {"word": "ja", "meaning": "yes"}, "ja: yes, now 3 words")):
                waiting = call(tool, arguments)
                if waiting.returncode == 5:
                    (family,) = owner.pending()
                    owner.decide(family, "approved")
                    waiting = call(tool, arguments, wait=20)
                assert waiting.returncode == 0 and answer in waiting.stdout, waiting
            owner.revoke(next(iter(owner.connections())))
            assert call("look_up", {"word": "say"}).returncode == 6
        finally:
            proxy.end()
            authority.end()
            if checks.process is not None and checks.process.poll() is None:
                checks.kill()


def govern(owner, tool, scopes, per_operation):
    deadline = time.monotonic() + PATIENCE
    while f"word-book/{tool}" not in {row["_id"] for row in owner.read("/resources")}:
        assert time.monotonic() < deadline, "the authority never read the listing"
        time.sleep(0.05)
    terms = {"purpose": tool, "scope": scopes, "expires_in": 900, "prohibited": ["marketing"],
             "per_operation": per_operation}
    unit = {"id": tool.replace("_", "-"), "name": tool, "resources": [f"word-book/{tool}"], "ask_me": per_operation,
            "rules": [], "terms": terms}
    response = owner.request("POST", "/policies", unit)
    assert response.status == 201, response



@pytest.mark.parametrize("kind", KINDS)
def test_a_call_is_forwarded_once_whatever_the_agent_asks_for(tmp_path, kind):  # D-14
    """Envoy retries for peers in its own network that name what for; what they name does not get that far."""
    inside = ("use_remote_address: true", "use_remote_address: true\n                "
              "internal_address_config: { cidr_ranges: [{ address_prefix: 127.0.0.0, prefix_len: 8 }] }")
    with EnvoyTown.running(tmp_path, kind, [inside]) as town, Silent(town.canary) as silent:
        agent = Agent()
        grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
        again = [("X-Envoy-Retry-On", "5xx,reset,connect-failure"), ("X-Envoy-Max-Retries", "3"),
                 ("X-Envoy-Retry-Grpc-On", "internal"), ("X-Envoy-Hedge-On-Per-Try-Timeout", "true")]
        for answer in (agent.call(town.resource, "get_positions", token=grant.token, extra=again),
                       agent.request(town.resource, "tools/list", extra=again)):
            assert answer.status == 503, answer
        assert silent.requests == 2


class Silent(socketserver.ThreadingTCPServer):
    """A server that takes a request and hangs up, where a canary was."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, canary):
        canary.stop()
        self.requests, self.canary = 0, canary
        super().__init__(("127.0.0.1", canary.port), None)

    def finish_request(self, request, client_address):
        if request.recv(1 << 16):
            self.requests += 1

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
        self.canary.start()


@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_counted_and_nothing_of_theirs_is_logged(tmp_path, kind):
    with EnvoyTown.running(tmp_path, kind) as town:
        agent, before = Agent(), scrape(town.gateway)
        grant = agent.obtain(town.resource, "get_positions", {"note": "of-nobodys-business"}, owner=town.owner)
        result(agent.call(town.resource, "get_positions", {"note": "of-nobodys-business"}, token=grant.token))
        agent.request(town.resource, "tools/list")
        agent.request(town.resource, "tools/list", extra=[("Last-Event-ID", "7")])
        send("POST", f"{town.checks}/check/elsewhere", mcp_headers("tools/list"), mcp_body("tools/list"))
        counted = "sayso_decisions_total"
        for outcome, reason, times in (("allowed", "reusable", 1), ("allowed", "open", 1), ("denied", "invalid_request", 1),
                                       ("denied", "not_found", 1), ("challenged", "insufficient_authorization", 1)):
            assert moved(town.gateway, before, counted, outcome=outcome, reason=reason) == times, (outcome, reason)
        logged = town.gateway.logged()
        assert "access.allowed" in logged and "access.denied" in logged
        for secret in (grant.token, grant.negotiation.tickets[0], "of-nobodys-business"):
            assert secret not in logged

"""The story through processes of their own: `sayso authority`, `sayso gateway`, nothing shared but the wire. What
one does while the other is gone, and that neither has to be started first."""

import json
import time

import pytest

from cast import REALM, SCOPES, TRADE, result
from parties import Agent, Challenge, Negotiation
from test_story import assert_grant
from town import UNITS, Town, healthy, unit
from wire import Key, fetch_json, s256, send, sign, verify_jws

EDITIONS = {
    "2026-09-11": ("urn:uma4agents:authorization-details:tool-call", "urn:uma4agents:claim:myterms-agreement",
                   "urn:uma4agents:format:myterms-agreement-v1+jws"),
    "2026-09-15": ("https://u4a.ai/spec/core/1.0#tool-call", "https://u4a.ai/spec/terms/1.0#myterms-agreement",
                   "https://u4a.ai/spec/terms/1.0#myterms-agreement-v1+jws"),
}


@pytest.fixture(scope="module", params=EDITIONS)
def town(request, tmp_path_factory):
    with Town.running(tmp_path_factory.mktemp("town"), edition=request.param) as town:
        town.edition = request.param
        yield town


@pytest.fixture
def lone_town(tmp_path):
    town = Town(tmp_path)
    yield town
    town.close()


def refused(response, status, error):
    assert (response.status, response.json()["error"]) == (status, error), response
    assert response.json()["error_description"], response
    assert response.all("www-authenticate") == [] or status == 401
    return response


def as_house(town):
    """What assert_grant asks of a house."""
    town.authority.authority, town.gateway.gateway = town.issuer, town.url
    return type("AsHouse", (), {"metadata": town.metadata, "authority": town.issuer, "gateway": town.url,
                                "owner_name": "alice"})


def test_the_whole_story_between_processes(town, agent):
    # BASE-02 BASE-04 BASE-05 CORE-07 CORE-09 CORE-84 CORE-88 CORE-89 FED-13
    detail, claim, format_ = EDITIONS[town.edition]
    challenge = Challenge.of(agent.call(town.resource, "get_positions"))
    assert challenge.as_uri == town.issuer and challenge.realm == REALM
    (shown,) = challenge.remediation["authorization_details"]
    assert shown["type"] == detail and shown["locations"] == [town.url]
    assert challenge.remediation["authorization_reference"] == s256([shown])
    agent.corroborate(town.resource, challenge)

    first = Negotiation(agent, challenge.as_uri, challenge.ticket, {"tool": "get_positions", "params": {}})
    (demanded,) = first.ask().json()["required_claims"]
    assert demanded["claim_type"] == claim
    assert demanded["claim_token_format"][0] == format_
    first.pending(first.commit())
    town.owner.decide(first.family, "approved")
    grant = first.grant(first.poll())
    assert_grant(as_house(town), grant, "get_positions")
    before = town.canary.calls()
    result(agent.call(town.resource, "get_positions", token=grant.token))
    assert town.canary.calls() == before + 1
    assert not any(name.lower() in ("authorization", "signature", "signature-input", "content-digest")
                   for name, _ in town.canary.heads[-1])

    second = agent.negotiate(town.resource, "execute_trade", TRADE)
    second.pending(second.commit())
    town.owner.decide(second.family, "approved")
    trade = second.grant(second.poll())
    operation = {"tool": "execute_trade", "params_s256": s256(TRADE)}
    assert_grant(as_house(town), trade, "execute_trade", operation=operation)
    sent = []
    result(agent.call(town.resource, "execute_trade", TRADE, token=trade.token, replayable=sent))
    assert town.canary.bodies[-1] == sent[0][3], "the upstream got other bytes than were signed"
    refused(agent.call(town.resource, "execute_trade", TRADE, token=trade.token), 403, "already_consumed")
    assert town.canary.calls("execute_trade") == 1
    assert town.owner.kinds(trade.family) == ["promised", "approved", "touched"]

    town.owner.revoke(agent.handle)
    refused(agent.call(town.resource, "get_positions", token=grant.token), 403, "access_revoked")
    assert town.canary.calls() == before + 2


@pytest.mark.parametrize("format_", [names[2] for names in EDITIONS.values()])
def test_both_editions_are_taken_by_either(town, agent, format_):
    """D-1: what is emitted is a setting, what is accepted is not."""
    assert sorted(town.metadata["claim_token_formats_supported"]) == sorted(names[2] for names in EDITIONS.values())
    negotiation = agent.negotiate(town.resource, "get_positions")
    negotiation.pending(negotiation.commit(format=format_))
    town.owner.decide(negotiation.family, "approved")
    result(agent.call(town.resource, "get_positions", token=negotiation.grant(negotiation.poll()).token))


def test_registry_and_metadata_say_the_same(town):  # FED-03 FED-13 FED-16 MCP-02
    document = fetch_json(f"{town.url}/.well-known/oauth-protected-resource/mcp")
    assert document["resource"] == town.resource and document["authorization_servers"] == [town.issuer]
    _, signed = verify_jws(document["signed_metadata"], fetch_json(document["jwks_uri"]))
    assert signed["tool_surfaces"] == document["tool_surfaces"]
    surfaces = {row["tool"]: row["resource_scopes"] for row in document["tool_surfaces"]}
    registered = {row["_id"]: row for row in town.owner.read("/resources")}
    assert {f"{REALM}/{tool}": scopes for tool, scopes in surfaces.items()} == \
           {key: row["resource_scopes"] for key, row in registered.items()}
    assert surfaces == {tool: [scope] for tool, scope in SCOPES.items()}
    assert sorted(document["scopes_supported"]) == sorted(SCOPES.values())
    assert {row["client_id"] for row in registered.values()} == {town.url}
    agent = Agent()
    for tool in SCOPES:  # Whatever is published can be asked for, and the challenge asks for what is published.
        challenge = Challenge.of(agent.call(town.resource, tool, TRADE if tool == "execute_trade" else {}))
        assert challenge.scope.split() == surfaces[tool]
    response = agent.call(town.resource, "wire_money", {})
    assert response.status in (403, 404) and response.all("www-authenticate") == [], response


def test_the_listing_is_for_her_authority_alone(town):  # FED-10 FED-11
    endpoint = fetch_json(f"{town.url}/.well-known/oauth-protected-resource/mcp")["owner_resources_endpoint"]
    plain = send("GET", endpoint)
    assert plain.status == 401 and plain.json()["error"] == "invalid_signature", plain
    stranger = send("GET", endpoint, sign(Key(), "GET", endpoint, []))
    assert stranger.status == 401, stranger
    asked = sign(Key.from_pem(town.authority.data / "keys/requests.pem"), "GET", endpoint, [])
    listed = send("GET", endpoint, asked)
    assert {row["tool"] for row in listed.json()["resources"]} == set(SCOPES), listed
    assert send("GET", endpoint, asked).status == 401  # A signature counts once.


def test_no_authority_no_answer(lone_town):  # CORE-22
    """It is gone: 503 for whoever has a token and whoever has none, nothing forwarded; then it is back, and the gateway
    finds it by itself."""
    town, agent = lone_town.start(), Agent()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    trade = agent.obtain(town.resource, "execute_trade", TRADE, owner=town.owner)
    result(agent.call(town.resource, "get_positions", token=grant.token))
    before = town.canary.calls()
    town.authority.kill()
    for response in (agent.call(town.resource, "get_positions"),
                     agent.call(town.resource, "get_positions", token=grant.token),
                     agent.call(town.resource, "execute_trade", TRADE, token=trade.token),
                     agent.call(town.resource, "get_positions", token="no.such.token")):
        gone = refused(response, 503, "temporarily_unavailable")
        assert gone.header("cache-control") == "no-store" and gone.header("retry-after"), gone
        assert gone.json().get("spent") is not True
    assert town.canary.calls() == before
    listed = agent.request(town.resource, "tools/list")  # What needs no authority is served without one.
    assert listed.status == 200 and listed.message()["result"]["tools"]
    town.authority.start()
    assert Challenge.of(agent.call(town.resource, "get_positions")).as_uri == town.issuer
    result(agent.call(town.resource, "get_positions", token=grant.token))
    result(agent.call(town.resource, "execute_trade", TRADE, token=trade.token))
    assert town.canary.calls() == before + 2


def test_the_same_signed_request_after_an_outage(lone_town):  # CORE-22
    """A refusal for want of an authority spends neither the grant nor the signature: the agent may send the very same
    request again (D-9)."""
    town, agent, sent = lone_town.start(), Agent(), []
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    town.authority.kill()
    refused(agent.call(town.resource, "get_positions", token=grant.token, replayable=sent), 503,
            "temporarily_unavailable")
    town.authority.start()
    result(send(*sent[0]))
    assert send(*sent[0]).status == 401  # Now it was used.


def test_a_withdrawn_resource_server(lone_town):  # FED-34 FED-35 FED-37 FED-53
    """She withdraws the gateway's admission: every call fails closed at once, with or without a token, and stays so."""
    town, agent = lone_town.start(), Agent()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    waiting = agent.negotiate(town.resource, "get_transactions", {"account": "brokerage-main"})
    server = town.resource_server()
    pat = server.pat
    before = town.canary.calls()
    response = town.owner.request("POST", "/resource-servers/decision", {"client_id": town.url, "decision": "revoked"})
    assert response.status == 200, response
    for token in (None, grant.token):
        refused(agent.call(town.resource, "get_positions", token=token), 503, "temporarily_unavailable")
    assert server.introspect(grant.token, pat).status == 401
    assert server.consume(grant.token, pat).status == 401
    assert server.perm(f"{REALM}/get_positions", ["positions:read"], pat).status == 401
    again = server.ask_token()
    assert (again.status, again.json()["error"]) == (403, "access_denied"), again
    assert waiting.commit().status == 403 and waiting.family not in town.owner.pending()
    assert town.canary.calls() == before
    (row,) = [row for row in town.owner.ledger() if row["kind"] == "revoked"]
    assert row["entry"]["resource_server"] == town.url and "owner" in row["author"]
    town.authority.restart()
    town.gateway.restart()
    refused(agent.call(town.resource, "get_positions", token=grant.token), 503, "temporarily_unavailable")
    (standing,) = town.owner.read("/resource-servers")
    assert standing["status"] == "revoked"  # Naming it in the configuration does not restore it.


def test_the_authority_starts_alone(lone_town):  # FED-18
    """With its resource server down it is healthy and serves its keys, and reads the listing once there is one."""
    town = lone_town
    town.authority.start()
    assert healthy(town.listens[0], town.issuer)
    assert fetch_json(f"{town.issuer}/jwks")["keys"]
    town.gateway.start()
    started = time.monotonic()
    town.settle()
    assert time.monotonic() - started < 15  # FED-19: neither waits for the other.
    agent = Agent()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    result(agent.call(town.resource, "get_positions", token=grant.token))


def test_the_gateway_starts_alone(lone_town):  # FED-18 FED-19 CORE-22
    town, agent = lone_town, Agent()
    town.gateway.start()
    assert send("GET", f"{town.url}/health").status == 200
    assert fetch_json(f"{town.url}/jwks")["keys"]
    assert fetch_json(f"{town.url}/.well-known/oauth-protected-resource/mcp")["resource"] == town.resource
    refused(agent.call(town.resource, "get_positions"), 503, "temporarily_unavailable")
    town.authority.start()
    started = time.monotonic()
    town.settle()
    assert time.monotonic() - started < 10
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    result(agent.call(town.resource, "get_positions", token=grant.token))


def test_an_agent_need_not_wait_for_the_next_pull(lone_town):  # FED-17
    """A resource the authority does not know yet is asked about before the agent is turned away."""
    town, agent = lone_town, Agent()
    town.authority.start()
    town.gateway.start()
    challenge = Challenge.of(agent.call(town.resource, "get_positions"))
    answer = Negotiation(agent, challenge.as_uri, challenge.ticket, {}).present()
    assert (answer.status, answer.json()["error"]) == (403, "request_denied")  # Known, and under no unit of hers. POL-03
    town.settle([UNITS[0]])
    agent.obtain(town.resource, "get_positions", owner=town.owner)


def test_a_tool_that_is_no_longer_served(lone_town):  # FED-16
    """The gateway comes back with one tool less: its grants stop with it, at the authority too once it has read the
    listing, and the published document says so at once."""
    town, agent = lone_town.start(), Agent()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    town.gateway.kill()
    tables = [table for table in town.gateway.tables if table[1].get("name") != "get_positions"]
    town.gateway.write(town.gateway.settings, tables)
    town.gateway.start()
    document = fetch_json(f"{town.url}/.well-known/oauth-protected-resource/mcp")
    assert "get_positions" not in json.dumps(document)
    before = town.canary.calls()
    response = agent.call(town.resource, "get_positions", token=grant.token)
    assert response.status in (403, 404) and response.all("www-authenticate") == [], response
    town.authority.restart()
    deadline = time.monotonic() + 10
    while len(town.owner.read("/resources")) == len(SCOPES):
        assert time.monotonic() < deadline, "the authority still lists it"
        time.sleep(0.05)
    assert town.resource_server().state(grant.token) == "revoked"
    assert town.canary.calls() == before


def test_a_polite_stop_of_either(lone_town):
    """SIGTERM ends each with status 0 and nothing on stdout but the ready line."""
    town, agent = lone_town.start(), Agent()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    assert town.gateway.stop() == 0 and town.authority.stop() == 0
    town.authority.start()
    town.gateway.start()
    result(agent.call(town.resource, "get_positions", token=grant.token))


def test_a_unit_for_a_stranger(lone_town):  # POL-02 OWN-19
    """What she posts is what is proffered, to the member."""
    town, agent = lone_town.start([unit("mine", "get_positions", expires_in=77, purpose="just looking")]), Agent()
    template = agent.negotiate(town.resource, "get_positions").template
    assert (template["purpose"], template["expires_in"]) == ("just looking", 77)
    assert template["proffered_by"] == town.issuer and template["terms_uri"].startswith(town.issuer + "/terms/")
    assert "alice" not in template["template_id"]  # TERMS-46

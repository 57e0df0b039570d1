"""The whole story against the built binary: a stranger is refused with a challenge, takes the owner's terms,
she decides, the call goes through, a trade executes once, and what she ends stays ended. One row of the
register per step; refusals have their own file."""

import html
import json
import re
import time

import pytest

from cast import REALM, SCOPES, TRADE, holding, result
from parties import Agent, Challenge, Negotiation
from wire import MODERN, fetch_json, open_jws, s256, send, verify_jws

HOLDINGS_PROHIBITS = ["retention-after-review", "marketing", "model-training"]
TRADING_PROHIBITS = ["orders-beyond-approved-parameters", "discretionary-reuse-of-authority"]


def assert_challenge(house, response, tool):
    """All seven parameters, twice over: as header parameters and as the JSON body."""
    challenge = Challenge.of(response)  # CORE-07 CORE-15 MCP-07
    assert challenge.realm == REALM  # CORE-06
    assert challenge.as_uri == house.authority  # CORE-08
    assert challenge.scope == SCOPES[tool]  # CORE-12
    details = [{
        "type": "urn:uma4agents:authorization-details:tool-call", "locations": [house.gateway],
        "identifier": f"{REALM}/{tool}", "actions": [tool], "datatypes": [SCOPES[tool]],
    }]
    assert challenge.remediation == {  # CORE-13 CORE-26..29
        "authorization_details": details, "authorization_reference": s256(details),
        "authorization_server": house.authority, "ticket": challenge.ticket,
    }
    assert challenge.body == {  # CORE-14 MCP-08 MCP-11 MCP-12
        "realm": challenge.realm, "error": "insufficient_authorization", "as_uri": challenge.as_uri,
        "ticket": challenge.ticket, "resource_metadata": challenge.resource_metadata, "scope": challenge.scope,
        "authorization_remediation": challenge.remediation,
    }
    return challenge


def assert_grant(house, grant, tool, *, operation=None):
    """The token and the counter-signed receipt, verified with the keys the authority publishes."""
    agent, negotiation = grant.negotiation.agent, grant.negotiation
    assert grant.answer["token_type"] == "PoP"  # CORE-65
    assert grant.response.header("cache-control") == "no-store"  # BASE-08
    assert "refresh_token" not in grant.answer
    jwks = fetch_json(house.metadata["jwks_uri"])
    header, claims = verify_jws(grant.token, jwks)
    assert header["typ"] == "at+jwt"  # CORE-67
    assert (claims["iss"], claims["aud"]) == (house.authority, house.gateway)  # CORE-68
    assert claims["jti"] and claims["iat"] <= time.time() + 1
    assert claims["sub"] == claims["client_id"] == agent.handle  # CORE-45 CORE-69
    assert claims["cnf"] == {"jwk": agent.key.jwk}  # CORE-70 TERMS-25
    assert claims["owner"] == house.owner_name  # CORE-72 CORE-111
    assert claims["contract"] == grant.agreement_digest  # CORE-73 TERMS-43
    (permission,) = claims["permissions"]
    assert permission["resource_id"] == f"{REALM}/{tool}"  # CORE-71
    assert permission["resource_scopes"] == [SCOPES[tool]]
    agreed = claims["iat"] + negotiation.template["expires_in"]
    assert time.time() < claims["exp"] <= min(claims["iat"] + 3600, agreed)  # TERMS-31
    assert permission.get("exp", 0) <= agreed
    assert grant.answer["expires_in"] == pytest.approx(claims["exp"] - time.time(), abs=3)
    assert claims.get("single_use", False) is (operation is not None)  # CORE-79
    assert claims.get("operation") == operation  # CORE-78 CORE-80

    header, receipt = verify_jws(grant.receipt, jwks)  # TERMS-36
    assert header["typ"] == "myterms-receipt+jws"  # TERMS-37
    assert receipt["terms_uri"] == negotiation.template["terms_uri"]
    assert receipt["template_id"] == negotiation.template["template_id"]
    assert receipt["family"] == negotiation.family  # POL-43
    assert receipt["agreement"] == grant.agreement_digest  # TERMS-38
    assert receipt["agreement_jws"] == negotiation.agreement  # TERMS-39


def assert_terms(house, template, unit_terms):
    """What is demanded is what the public document says, in both of its forms."""
    document = fetch_json(template["terms_uri"], [("Accept", "application/json")])  # TERMS-01 TERMS-14
    assert {name: template[name] for name in document} == document  # TERMS-18
    assert document["proffered_by"] == house.authority  # TERMS-07
    assert re.fullmatch(rf"{house.owner_name}/[^/]+/v\d+", document["template_id"])  # TERMS-02
    assert isinstance(document["purpose"], str) and document["purpose"]  # TERMS-03
    assert {name: document[name] for name in unit_terms} == unit_terms  # TERMS-04..06
    page = send("GET", template["terms_uri"], [("Accept", "text/html")])  # TERMS-15
    assert page.header("content-type").startswith("text/html") and "accept" in page.header("vary").lower()
    for text in (document["purpose"], *document["scope"], *document["prohibited"]):
        assert text in html.unescape(page.body.decode())


def test_the_whole_story(house, agent):
    resource, owner = house.resource, house.owner

    # A stranger calls, is refused, and is told whose authority decides.
    challenge = assert_challenge(house, agent.call(resource, "get_positions"), "get_positions")  # CORE-84
    document = agent.corroborate(resource, challenge)  # CORE-10 CORE-30..32 FED-07 MCP-01 MCP-04
    assert {entry["tool"]: entry["resource_scopes"] for entry in document["tool_surfaces"]} == \
           {tool: [scope] for tool, scope in SCOPES.items()}  # FED-03
    assert agent.handle not in str(owner.ledger())

    # The authority answers with her terms, and she is not bothered yet.
    first = Negotiation(agent, challenge.as_uri, challenge.ticket, {"tool": "get_positions", "params": {}})
    response = first.ask()  # CORE-09 CORE-33 BASE-04
    assert response.header("cache-control") == "no-store"  # BASE-08
    claim = response.json()["required_claims"][0]  # TERMS-17 TERMS-20
    assert claim["claim_type"] == "urn:uma4agents:claim:myterms-agreement"
    assert first.template["resource_id"] == f"{REALM}/get_positions" and first.template["nonce"]
    assert_terms(house, first.template, {
        "scope": ["positions:read"], "expires_in": 172800, "prohibited": HOLDINGS_PROHIBITS})
    assert first.family not in owner.pending()

    # It signs them. Nobody knows it, so she is asked whatever her policy says.
    answer = first.pending(first.commit())  # BASE-05 CORE-101
    assert answer["interval"] >= 1
    item = owner.pending()[first.family]
    assert item["kind"] == "connection"  # CORE-39
    assert item["purpose"] == first.template["purpose"]  # OWN-05
    assert item["prohibited"] == HOLDINGS_PROHIBITS
    assert agent.handle not in owner.connections()
    first.pending(first.present())  # A poll before she answers: still waiting, new ticket.

    # She approves; the agent's poll brings token and receipt.
    owner.decide(first.family, "approved")  # OWN-07
    grant = first.grant(first.poll())
    assert_grant(house, grant, "get_positions")
    assert owner.pending() == {}
    connection = owner.connections()[agent.handle]  # CORE-102 OWN-10
    assert connection["status"] == "active" and connection["first_seen"]

    # The signed call goes through, as often as it likes.
    before = holding(result(agent.call(resource, "get_positions", token=grant.token)))  # CORE-55 MCP-18
    assert holding(result(agent.call(resource, "get_positions", token=grant.token))) == before

    # A trade asks about the operation, not about the agent.
    second = agent.negotiate(resource, "execute_trade", TRADE)
    assert second.template["per_operation"] is True  # TERMS-09
    assert_terms(house, second.template, {
        "scope": ["trades:execute"], "expires_in": 900, "prohibited": TRADING_PROHIBITS, "per_operation": True})
    second.pending(second.commit())
    item = owner.pending()[second.family]
    assert item["kind"] == "operation"  # CORE-39
    assert item["operation"] == {"tool": "execute_trade", "params": TRADE}
    owner.decide(second.family, "approved")
    trade = second.grant(second.poll())
    assert_grant(house, trade, "execute_trade",
                 operation={"tool": "execute_trade", "params_s256": s256(TRADE)})

    # It executes once. The arguments' member order is not theirs to change the meaning with.
    reordered = dict(reversed(TRADE.items()))
    result(agent.call(resource, "execute_trade", reordered, token=trade.token))  # CORE-88
    replay = agent.call(resource, "execute_trade", TRADE, token=trade.token)
    assert (replay.status, replay.json()["error"]) == (403, "already_consumed")  # CORE-18
    assert replay.all("www-authenticate") == []  # CORE-16
    after = holding(result(agent.call(resource, "get_positions", token=grant.token)))
    assert after == before + TRADE["quantity"]

    # She ends it. The very next call is refused, and no negotiation is offered.
    revoked = owner.revoke(agent.handle)
    assert revoked["connections_revoked"] == 1 and revoked["rpts_deactivated"] >= 1  # OWN-11
    refused = agent.call(resource, "get_positions", token=grant.token)
    assert (refused.status, refused.json()["error"]) == (403, "access_revoked")  # CORE-17 CORE-85 CORE-103
    assert refused.all("www-authenticate") == []  # CORE-98
    assert owner.connections()[agent.handle]["status"] != "active"

    # Her record tells all of it, in order, and the logs tell no secret.
    rows = owner.ledger(agent.handle)  # OWN-24 POL-45
    assert {row["handle"] for row in rows} == {agent.handle}
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    assert {row["owner"] for row in rows} == {house.owner_name}
    story = [(row["kind"], row["family"]) for row in rows]
    assert story.count(("touched", first.family)) == 3  # FED-48
    assert story.count(("touched", second.family)) == 1
    for step in (("promised", first.family), ("connected", first.family), ("promised", second.family),
                 ("approved", second.family)):
        assert story.count(step) == 1, step
    assert story.index(("connected", first.family)) < story.index(("touched", first.family))
    assert "revoked" in [kind for kind, _ in story]
    log = house.logged()
    for secret in (grant.token, trade.token, *first.tickets, *second.tickets, grant.token.split(".")[2]):
        assert secret not in log


def test_tickets_rotate_and_burn(house, agent):
    """BASE-03 BASE-05 CORE-33 CORE-94: every presentation spends its ticket and brings another."""
    negotiation = agent.negotiate(house.resource, "get_positions")
    negotiation.pending(negotiation.commit())
    negotiation.pending(negotiation.present())
    assert len(set(negotiation.tickets)) == 4
    for spent in negotiation.tickets[:-1]:
        response = negotiation.present(ticket=spent)
        assert (response.status, response.json()["error"]) == (400, "invalid_grant")
    house.owner.decide(negotiation.family, "approved")
    negotiation.grant(negotiation.poll())
    response = negotiation.present()
    assert (response.status, response.json()["error"]) == (400, "invalid_grant")


def test_a_second_decision_finds_nothing(house, agent):  # OWN-08
    negotiation = agent.negotiate(house.resource, "get_positions")
    negotiation.pending(negotiation.commit())
    house.owner.decide(negotiation.family, "approved")
    assert house.owner.answer(negotiation.family, "denied").status == 404
    negotiation.grant(negotiation.poll())


def test_she_says_no(house, agent):  # BASE-06 POL-44
    negotiation = agent.negotiate(house.resource, "get_positions")
    negotiation.pending(negotiation.commit())
    house.owner.decide(negotiation.family, "denied")
    response = negotiation.poll()
    assert (response.status, response.json()["error"]) == (403, "request_denied")
    assert "ticket" not in response.json()
    again = negotiation.present()
    assert (again.status, again.json()["error"]) == (400, "invalid_grant")
    assert agent.handle not in {h for h, c in house.owner.connections().items() if c["status"] == "active"}
    assert "denied" in house.owner.kinds(negotiation.family)


def test_the_agent_declines(house, agent):
    """A declined offer ends the negotiation and is held against the terms, not against anybody."""
    negotiation = agent.negotiate(house.resource, "get_positions")
    response = negotiation.present(decline="true")  # TERMS-40
    assert (response.status, response.json()["error"]) == (403, "request_denied")
    assert "ticket" not in response.json()
    again = negotiation.present()
    assert (again.status, again.json()["error"]) == (400, "invalid_grant")
    (row,) = [row for row in house.owner.ledger() if row["family"] == negotiation.family]
    assert (row["kind"], row["handle"]) == ("refused", None)  # TERMS-42 POL-46
    assert row["entry"]["terms_uri"] == negotiation.template["terms_uri"]  # TERMS-41
    assert agent.handle not in str(row)


def test_a_known_agent_is_not_asked_about_again(house, agent):
    """Holdings are hers to open once; afterwards the unit's policy answers by itself."""
    agent.obtain(house.resource, "get_positions", owner=house.owner)
    negotiation = agent.negotiate(house.resource, "get_positions")
    assert_grant(house, negotiation.grant(negotiation.commit()), "get_positions")
    asked = agent.negotiate(house.resource, "get_transactions", {"account": "brokerage-main"})
    asked.pending(asked.commit())
    assert house.owner.pending()[asked.family]["kind"] == "operation"
    house.owner.decide(asked.family, "approved")
    grant = asked.grant(asked.poll())
    assert_grant(house, grant, "get_transactions")  # Asked about, yet not bound to one operation.
    for _ in range(2):
        result(agent.call(house.resource, "get_transactions", {"account": "brokerage-main"}, token=grant.token))


def test_the_agreement_is_kept_to_the_octet(house, agent):  # TERMS-38 TERMS-39
    agent.obtain(house.resource, "get_positions", owner=house.owner)
    negotiation = agent.negotiate(house.resource, "get_positions")
    odd = json.dumps(negotiation.claims(), indent=3).encode() + b"\n "
    grant = negotiation.grant(negotiation.commit(odd))
    receipt = open_jws(grant.receipt)[1]
    assert receipt["agreement_jws"] == negotiation.agreement
    assert receipt["agreement"] == grant.claims["contract"] == s256(negotiation.agreement)


def test_less_than_offered_may_be_agreed(house, agent):
    agent.obtain(house.resource, "get_positions", owner=house.owner)
    negotiation = agent.negotiate(house.resource, "get_positions")
    claims = negotiation.claims()
    claims |= {"expires_in": 60, "prohibited": claims["prohibited"] + ["resale"]}  # TERMS-27 TERMS-29
    claims |= {"reason": "<b>quarterly</b> review", "unheard_of": {"assurance": 9}}  # TERMS-32 TERMS-33
    grant = negotiation.grant(negotiation.commit(claims))
    assert grant.claims["exp"] <= time.time() + 61  # TERMS-31
    assert grant.claims["permissions"][0].get("exp", 0) <= time.time() + 61


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_discovery_is_open(house, method):  # MCP-05
    response = Agent().request(house.resource, method)
    assert response.status == 200 and "result" in response.message(), response


def test_published_documents(house):
    for name in ("oauth-authorization-server", "uma2-configuration", "uma4agents-configuration"):
        assert fetch_json(f"{house.authority}/.well-known/{name}") == house.metadata  # BASE-01
    profiles = house.metadata["uma_profiles_supported"]
    for profile in ("core", "terms", "fedauthz"):  # CORE-01 CORE-02
        assert f"https://u4a.ai/spec/{profile}/1.0" in profiles
    for absent in ("lineage", "multiparty"):
        assert f"https://u4a.ai/spec/{absent}/1.0" not in profiles
    roster = send("GET", house.metadata["terms_endpoint"])  # CORE-05 TERMS-21
    assert roster.status == 200
    root = fetch_json(f"{house.gateway}/.well-known/oauth-protected-resource")
    assert root["resource"] == house.resource  # BASE-09 FED-01
    root.pop("signed_metadata")
    assert house.owner_name not in json.dumps(root).replace(REALM, "")  # FED-02 CORE-118
    assert root["owner_resources_endpoint"].startswith(house.gateway)  # FED-06


def test_the_newest_protocol_version_is_what_is_spoken(house):
    response = Agent().request(house.resource, "server/discover")
    assert MODERN in response.message()["result"]["supportedVersions"]

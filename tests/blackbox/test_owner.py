"""The owner's own door: only her device key opens it, her answer is one and final, and what she changes in her
policy holds from the next negotiation on."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from cast import REALM, SCOPES, TRADE, result
from parties import JSON, Challenge, Negotiation
from wire import Key, content_digest, send

READS = ["/pending", "/connections", "/ledger", "/policies", "/resources"]


@pytest.fixture
def waiting(house, agent):
    """A stranger at her door, turned away afterwards if the test left it there."""
    negotiation = agent.negotiate(house.resource, "get_positions")
    negotiation.pending(negotiation.commit())
    yield negotiation
    if negotiation.family in house.owner.pending():
        house.owner.decide(negotiation.family, "denied")


@pytest.mark.parametrize("path", READS)
def test_the_door_is_shut(house, path):  # OWN-02 CORE-106
    owner = house.owner
    attempts = {
        "unsigned": send("GET", owner.endpoint + path),
        "another key": owner.request("GET", path, key=Key()),
        "another key under her name": owner.request("GET", path, key=Key(), keyid=owner.key.thumbprint),
        "stale": owner.request("GET", path, created=int(time.time()) - 120),
        "from the future": owner.request("GET", path, created=int(time.time()) + 120),
        "authorization uncovered": owner.request("GET", path, drop=["authorization"]),  # CORE-58
        "path uncovered": owner.request("GET", path, drop=["@path"]),
        "query uncovered": owner.request("GET", path + "?limit=1", drop=["@query"]),
        "for another authority": owner.request("GET", path, authority="other.test"),  # CORE-59
        "a bad bearer beside it": owner.request("GET", path, extra=[("Authorization", "Bearer x")]),  # CORE-107
    }
    assert {name: response.status for name, response in attempts.items()} == dict.fromkeys(attempts, 401)
    assert all(isinstance(response.json(), dict) for response in attempts.values())
    assert owner.request("GET", path).status == 200


def test_a_request_of_hers_counts_once(house):
    sent = []
    assert house.owner.request("GET", "/pending", replayable=sent).status == 200
    assert send(*sent[0]).status == 401


@pytest.mark.parametrize("how", [
    dict(digest=False), dict(drop=["content-digest"]), dict(digest=content_digest(b'{"decision": "denied"}')),
    dict(key=Key()),
], ids=["no digest", "digest uncovered", "digest of another answer", "another key"])
def test_an_answer_not_hers(house, waiting, how):  # OWN-03 CORE-61 CORE-62
    assert house.owner.answer(waiting.family, "approved", **how).status == 401
    assert waiting.family in house.owner.pending()
    waiting.pending(waiting.present())


def test_an_answer_changed_on_the_way(house, waiting):  # OWN-03
    sent = []
    path = f"/pending/{quote(waiting.family, safe='')}/decision"
    house.owner.request("POST", path, {"decision": "maybe"}, replayable=sent)
    verb, url, headers, _ = sent[0]
    assert send(verb, url, headers, b'{"decision": "approved"}').status == 401
    assert waiting.family in house.owner.pending()


@pytest.mark.parametrize("body", [
    {"decision": "maybe"}, {"decision": "APPROVED"}, {"decision": True}, {}, [], "approved",
    {"decision": ["approved"]}, {"Decision": "approved"},
])
def test_an_answer_that_is_none(house, waiting, body):  # OWN-04 OWN-07
    response = house.owner.request("POST", f"/pending/{quote(waiting.family, safe='')}/decision", body)
    assert 400 <= response.status < 500 and response.json()["detail"], response
    assert waiting.family in house.owner.pending()


def test_nobody_else_s_question(house):  # OWN-08
    assert house.owner.answer("neg_nowhere", "approved").status == 404


def test_thirty_two_answers_are_one(house, waiting):  # OWN-08 CORE-94
    answers = ["approved", "denied"] * 16
    with ThreadPoolExecutor(32) as pool:
        responses = list(pool.map(lambda answer: house.owner.answer(waiting.family, answer), answers))
    statuses = [response.status for response in responses]
    assert Counter(status == 404 for status in statuses) == {True: 31, False: 1}, statuses
    decision = next(answer for answer, status in zip(answers, statuses) if status != 404)
    response = waiting.poll()
    assert (response.status == 200) is (decision == "approved"), response
    kinds = house.owner.kinds(waiting.family)
    assert ("connected" in kinds, "denied" in kinds) == (decision == "approved", decision == "denied")


def test_what_she_sees_of_a_request(house, agent):  # OWN-05 OWN-06
    negotiation = agent.negotiate(house.resource, "get_positions")
    negotiation.pending(negotiation.commit(negotiation.claims() | {"reason": "<b>x</b> \u202etxet"}))
    item = house.owner.pending()[negotiation.family]
    assert item["reason"] == "<b>x</b> \u202etxet"
    for member in ("family", "kind", "tier", "purpose", "prohibited", "operation", "mission", "identity", "assurance",
                   "assurance_notes", "because", "handle"):
        assert member in item, member
    house.owner.decide(negotiation.family, "denied")


def test_her_things(house):  # OWN-17 OWN-18
    resources = {row["_id"]: row for row in house.owner.read("/resources")}
    assert {f"{REALM}/{tool}": [scope] for tool, scope in SCOPES.items()} == \
           {key: row["resource_scopes"] for key, row in resources.items()}
    governed = [name for unit in house.owner.read("/policies").values() for name in unit["resources"]]
    assert sorted(governed) == sorted(resources)  # POL-02


def unit_of(house, tool):
    policies = house.owner.read("/policies")
    return next(key for key, unit in policies.items() if f"{REALM}/{tool}" in unit["resources"])


def test_an_edit_is_a_new_version(house, agent):
    """TERMS-12 TERMS-13 OWN-20 OWN-21: old terms stay as they were, the next negotiation meets the new ones."""
    owner, unit = house.owner, unit_of(house, "get_transactions")
    agent.obtain(house.resource, "get_positions", owner=owner)
    before = agent.negotiate(house.resource, "get_transactions", {"account": "brokerage-main"})
    old = send("GET", before.template["terms_uri"])
    response = owner.request("PUT", f"/policies/{quote(unit, safe='')}", {"ask_me": False})
    assert response.status == 200, response
    after = agent.negotiate(house.resource, "get_transactions", {"account": "brokerage-main"})
    assert after.template["template_id"] != before.template["template_id"]
    assert send("GET", before.template["terms_uri"]).body == old.body
    grant = after.grant(after.commit())  # No longer asked about.
    result(agent.call(house.resource, "get_transactions", {"account": "brokerage-main"}, token=grant.token))
    assert owner.request("PUT", f"/policies/{quote(unit, safe='')}", {"ask_me": True}).status == 200


def test_a_unit_taken_away(house, agent):
    """POL-03 OWN-22: its things are ungoverned, which is denied, and its live grants end; published terms stay."""
    owner, unit = house.owner, unit_of(house, "execute_trade")
    agent.obtain(house.resource, "get_positions", owner=owner)
    stored = owner.read("/policies")[unit]
    held = agent.obtain(house.resource, "execute_trade", TRADE, owner=owner)
    terms = agent.negotiate(house.resource, "execute_trade", {}).template["terms_uri"]
    response = owner.request("DELETE", f"/policies/{quote(unit, safe='')}")
    assert response.status == 200 and f"{REALM}/execute_trade" in response.body.decode(), response
    assert send("GET", terms).status == 200  # TERMS-01
    assert house.resource_server().state(held.token) == "revoked"
    assert agent.call(house.resource, "execute_trade", TRADE, token=held.token).status in (401, 403)
    call = agent.call(house.resource, "execute_trade", {"symbol": "VTI", "side": "buy", "quantity": 1})
    assert call.status in (401, 403), call
    if call.status == 401:
        challenge = Challenge.of(call)
        denied = Negotiation(agent, challenge.as_uri, challenge.ticket, {}).present()
        assert (denied.status, denied.json()["error"]) == (403, "request_denied")
    body = {"id": "trading-again", "name": "Trading", "resources": stored["resources"], "ask_me": True, "rules": []}
    terms = {name: stored["terms"][name] for name in ("purpose", "expires_in", "prohibited", "scope", "per_operation")}
    response = owner.request("POST", "/policies", body | {"terms": terms})
    assert response.status in (200, 201), response  # OWN-19
    taken = owner.request("POST", "/policies", body | {"id": "twice", "terms": terms})
    assert 400 <= taken.status < 500 and taken.json()["detail"], taken  # POL-02
    nothing = owner.request("POST", "/policies", body | {"id": "x", "resources": [f"{REALM}/nothing"], "terms": terms})
    assert 400 <= nothing.status < 500 and nothing.json()["detail"], nothing  # OWN-19


def test_browsers_get_nothing_here(house):
    """A page of another site may send a request, but it gets neither her authority nor a readable answer."""
    for path in READS:
        lines = [("Origin", "https://evil.example"), ("Cookie", "session=x")]
        response = send("GET", house.owner.endpoint + path, lines)
        assert response.status in (401, 403)
        assert response.all("access-control-allow-origin") == []
    wrong = send("POST", house.metadata["token_endpoint"], [("Host", "evil.example"), JSON], b"{}")
    assert wrong.status == 421, wrong

"""The protection API, spoken to with the gateway's own key: how it proves itself, what a ticket may be asked
for, what introspection tells and keeps to itself, and that spending is one indivisible step. Every address is
the metadata's."""

import base64
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from cast import REALM, SCOPES, TRADE, holding, result
from parties import JSON, Agent, Negotiation
from wire import Key, fetch_json, s256, send

HELD = f"{REALM}/get_positions"


@pytest.fixture(scope="module")
def server(house):
    return house.resource_server()


@pytest.fixture(scope="module")
def known(house):
    known = Agent()
    known.read = known.obtain(house.resource, "get_positions", owner=house.owner)
    return known


def trade_grant(house, known, quantity):
    return known.obtain(house.resource, "execute_trade", TRADE | {"quantity": quantity}, owner=house.owner)


def test_a_protection_token(house, server):  # FED-30 CORE-81
    response = server.ask_token()
    assert response.status == 200, response
    answer = response.json()
    assert answer["token_type"].lower() == "bearer" and answer["expires_in"] > 0
    assert answer.get("scope", "uma_protection") == "uma_protection"
    assert response.header("cache-control") == "no-store"  # BASE-08
    assert "refresh_token" not in answer
    assert server.key.jwk["x"] in json.dumps(fetch_json(f"{house.gateway}/jwks"))


@pytest.mark.parametrize("how, status, error", [
    (dict(signed=False), 401, "invalid_client"),  # FED-30
    (dict(key=Key()), 401, "invalid_client"),  # FED-30
    (dict(created=int(time.time()) - 3600), 401, "invalid_client"),
    (dict(created=int(time.time()) + 3600), 401, "invalid_client"),
    (dict(drop=["content-digest"]), 401, "invalid_client"),  # CORE-62
    (dict(digest=False), 401, "invalid_client"),  # CORE-62
    (dict(authority="other.test"), 401, "invalid_client"),  # CORE-59
    (dict(form={"client_id": "https://nobody.example"}), 401, "invalid_client"),
    (dict(scope="openid"), 400, "invalid_scope"),  # FED-30
    (dict(scope="uma_protection openid"), 400, "invalid_scope"),  # FED-30
    (dict(scope=""), 400, "invalid_scope"),  # FED-30
])
def test_who_gets_no_protection_token(server, how, status, error):
    response = server.ask_token(**how)
    assert (response.status, response.json()["error"]) == (status, error), response
    assert "access_token" not in response.json()


@pytest.mark.parametrize("signed", [True, False])
def test_no_secret_is_ever_taken(server, signed):  # FED-31
    basic = base64.b64encode(b"gateway:secret").decode()
    for how in (dict(form={"client_secret": "secret"}), dict(extra=[("Authorization", f"Basic {basic}")])):
        response = server.ask_token(signed=signed, **how)
        assert response.status in (400, 401), response
        assert response.json()["error"] in ("invalid_client", "invalid_request"), response


def test_a_signed_request_counts_once(server):
    sent = []
    assert server.ask_token(replayable=sent).status == 200
    again = send(*sent[0])
    assert (again.status, again.json()["error"]) == (401, "invalid_client")


def test_permission_tickets(house, server, agent):  # BASE-02 CORE-82
    response = server.perm(HELD, ["positions:read"])
    assert response.status == 201, response
    negotiation = Negotiation(agent, house.authority, response.json()["ticket"], {})
    negotiation.ask()
    assert negotiation.template["resource_id"] == HELD  # TERMS-18


@pytest.mark.parametrize("resource, scopes, error", [
    (f"{REALM}/wire_money", ["positions:read"], "invalid_resource_id"),  # BASE-02 FED-17
    ("someone-else/get_positions", ["positions:read"], "invalid_resource_id"),
    (HELD + "/x", ["positions:read"], "invalid_resource_id"),
    (HELD, ["trades:execute"], "invalid_scope"),  # BASE-02
    (HELD, ["positions:read", "trades:execute"], "invalid_scope"),
])
def test_tickets_for_nothing(server, resource, scopes, error):
    response = server.perm(resource, scopes)
    assert (response.status, response.json()["error"]) == (400, error), response
    assert "ticket" not in response.json()


def test_malformed_permission_requests(server):
    bodies = [b"", b"null", b"{}", b'{"resource_id":1}', b'{"resource_id":"a","resource_id":"b","resource_scopes":[]}',
              b"[" * 100_000, b'{"resource_id":"x","resource_scopes":"positions:read"}']
    many = {"resource_id": HELD, "resource_scopes": ["positions:read"]}
    bodies.append(json.dumps([many] * 100_000).encode())
    for body in bodies:
        response = send("POST", server.metadata["permission_endpoint"], [JSON, *server.bearer(None)], body)
        assert response.status in (400, 413) and response.json()["error"], (body[:40], response)


def test_every_protection_call_needs_the_token(house, server, known):  # BASE-02 BASE-07 FED-45
    grant = known.read
    wrong = ("", "AAAA", "e30.e30.AAAA", grant.token, server.pat[:-4] + "AAAA")
    for pat in wrong:
        for call in (lambda: server.perm(HELD, ["positions:read"], pat), lambda: server.introspect(grant.token, pat),
                     lambda: server.consume(grant.token, pat)):
            response = call()
            assert response.status == 401, (pat[:10], response)
            assert "ticket" not in response.body.decode() and b"active" not in response.body
    assert server.state(grant.token) is True


def test_what_introspection_says(house, server, known):  # BASE-07 CORE-99
    trade = trade_grant(house, known, 11)
    for grant in (known.read, trade):
        response = server.introspect(grant.token)
        answer = response.json()
        assert response.status == 200 and answer["active"] is True
        for member in ("cnf", "permissions", "single_use", "operation", "contract"):
            assert (answer.get(member) or None) == (grant.claims.get(member) or None), member
        assert "scope" not in answer
        assert response.header("cache-control") == "no-store"
        text = response.body.decode()
        assert known.handle not in text and grant.token not in text  # FED-49
    (permission,) = server.introspect(trade.token).json()["permissions"]
    assert (permission["resource_id"], permission["resource_scopes"]) == (
        f"{REALM}/execute_trade", [SCOPES["execute_trade"]])


def test_asking_spends_nothing_and_spending_is_once(house, server, known):  # FED-43 FED-44 FED-46 FED-47
    trade = trade_grant(house, known, 12)
    assert {server.state(trade.token) for _ in range(100)} == {True}
    before = holding(result(known.call(house.resource, "get_positions", token=known.read.token)))
    first, second = server.consume(trade.token), server.consume(trade.token)
    assert first.status == 200 and first.json()["consumed"] is True
    assert second.status == 200
    assert (second.json()["consumed"], second.json()["error"]) == (False, "already_consumed")
    assert server.state(trade.token) == "already_consumed"  # FED-38
    response = known.call(house.resource, "execute_trade", TRADE | {"quantity": 12}, token=trade.token)
    assert (response.status, response.json()["error"]) == (403, "already_consumed")  # CORE-18
    assert holding(result(known.call(house.resource, "get_positions", token=known.read.token))) == before


def test_thirty_two_spend_at_once(house, server, known):  # CORE-94 FED-46
    trade = trade_grant(house, known, 13)
    pat = server.pat
    with ThreadPoolExecutor(32) as pool:
        answers = [r.json() for r in pool.map(lambda _: server.consume(trade.token, pat), range(32))]
    assert Counter(answer["consumed"] for answer in answers) == {True: 1, False: 31}
    assert {answer["error"] for answer in answers if not answer["consumed"]} == {"already_consumed"}


def test_reasons(house, server, known, agent):  # FED-38 FED-46 CORE-96 CORE-97
    reusable = known.read.token
    assert server.consume(reusable).json() == {"consumed": False, "error": "not_single_use"}
    assert server.state(reusable) is True
    assert server.state("AAAA") == "unknown_token"
    assert server.consume("AAAA").json() == {"consumed": False, "error": "unknown_token"}
    head, claims, signature = reusable.split(".")
    forged = f"{head}.{claims}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
    assert server.state(forged) in ("invalid_signature", "unknown_token")

    # A grant of one second, then its end.
    short = known.negotiate(house.resource, "get_positions")
    brief = short.grant(short.commit(short.claims() | {"expires_in": 1}))
    time.sleep(2.5)
    assert server.state(brief.token) == "expired"
    assert known.call(house.resource, "get_positions", token=brief.token).status == 401  # FED-40

    # She ends a connection; coming back does not bring its grants back.
    held = agent.obtain(house.resource, "get_positions", owner=house.owner)
    trade = agent.obtain(house.resource, "execute_trade", TRADE, owner=house.owner)
    house.owner.revoke(agent.handle)
    assert server.state(held.token) == server.state(trade.token) == "connection_revoked"
    assert server.consume(trade.token).json() == {"consumed": False, "error": "connection_revoked"}
    again = agent.obtain(house.resource, "get_positions", owner=house.owner)
    assert server.state(again.token) is True
    assert server.state(held.token) == server.state(trade.token) == "revoked"  # CORE-104 CORE-105
    assert agent.call(house.resource, "get_positions", token=held.token).status == 401
    result(agent.call(house.resource, "get_positions", token=again.token))


def test_the_token_opens_no_door_of_hers(house, server):  # CORE-117 CORE-121 FED-52
    doors = ["/pending", "/connections", "/ledger", "/policies", "/resources", "/resource-servers", "/operators"]
    for path in doors:
        response = send("GET", house.metadata["owner_endpoint"] + path, server.bearer(None))
        assert response.status in (401, 403, 404), (path, response)
        signed = house.owner.request("GET", path, key=server.key)
        assert signed.status in (401, 403, 404), (path, signed)
    assert fetch_json(house.metadata["jwks_uri"])["keys"]


def test_nothing_is_advertised_that_is_refused(house, server):  # CORE-03 CORE-04
    assert set(house.metadata["grant_types_supported"]) == {
        "urn:ietf:params:oauth:grant-type:uma-ticket", "client_credentials"}
    response = server.ask_token(form={"grant_type": "authorization_code"})
    assert (response.status, response.json()["error"]) == (400, "unsupported_grant_type")


def test_the_owner_listing_is_for_the_authority_alone(house, server):  # FED-06 FED-10 CORE-118
    listing = fetch_json(f"{house.gateway}/.well-known/oauth-protected-resource/mcp")["owner_resources_endpoint"]
    for attempt in (send("GET", listing), house.owner.request("GET", listing),
                    house.owner.request("GET", listing, key=server.key),
                    house.owner.request("GET", listing, key=Key())):
        assert (attempt.status, attempt.json()["error"]) == (401, "invalid_signature"), attempt
        assert REALM not in attempt.body.decode()


def test_digests_are_what_the_agreement_says(house, server, known):  # CORE-73 CORE-80 TERMS-43
    trade = trade_grant(house, known, 14)
    answer = server.introspect(trade.token).json()
    assert answer["contract"] == s256(trade.negotiation.agreement)
    assert answer["operation"] == {"tool": "execute_trade", "params_s256": s256(TRADE | {"quantity": 14})}

"""The agreement must be the owner's terms, signed, and nothing else. Each alteration is refused, ends its
negotiation, and leaves no promise, no question and no grant. The agent is one she knows, so that what is
refused here would otherwise have been granted at once or put to her."""

import time
from dataclasses import dataclass

import pytest

from cast import TRADE, result
from parties import Agent, Negotiation
from wire import Key, b64, compact_jws

OTHER = Key()
TYP = "myterms-agreement-v1+jws"


@pytest.fixture(scope="module")
def known(house):
    known = Agent()
    known.obtain(house.resource, "get_positions", owner=house.owner)
    return known


@dataclass
class Altered:
    """`claims` are laid over the honest agreement, None removes one; `header` and `key` replace its signature's."""

    id: str
    claims: dict | None = None
    tool: str = "get_positions"
    header: object = None
    key: Key | None = None


def header(**changes):
    """A header builder: the honest one with members changed, None removes one."""
    def build(agent):
        whole = {"typ": TYP, "alg": "EdDSA", "jwk": agent.key.jwk} | changes
        return {name: value for name, value in whole.items() if value is not None}
    return build


CLAIMS = [
    Altered("another template", {"template_id": "alice/holdings/v999"}),  # TERMS-26
    Altered("no template", {"template_id": None}),  # TERMS-26
    Altered("another document", {"terms_uri": "https://evil.example/terms"}),  # TERMS-26
    Altered("no document", {"terms_uri": None}),  # TERMS-26
    Altered("another purpose", {"purpose": "anything at all"}),  # TERMS-26
    Altered("no purpose", {"purpose": None}),  # TERMS-26
    Altered("another nonce", {"nonce": "AAAAAAAAAAAAAAAAAAAAAA"}),  # TERMS-19 TERMS-26
    Altered("no nonce", {"nonce": None}),  # TERMS-26
    Altered("another negotiation", {"family": "neg_elsewhere"}),  # TERMS-26
    Altered("no negotiation", {"family": None}),  # TERMS-26
    Altered("for another authority", {"aud": "https://evil.example"}),  # TERMS-26
    Altered("for several authorities", {"aud": ["https://evil.example"]}),  # TERMS-26
    Altered("for no authority", {"aud": None}),  # TERMS-26
    Altered("no lifetime", {"expires_in": None}),  # TERMS-27
    Altered("lifetime 0", {"expires_in": 0}),  # TERMS-27
    Altered("lifetime -1", {"expires_in": -1}),  # TERMS-27
    Altered("a second more", {"expires_in": 172801}),  # TERMS-27
    Altered("a lifetime in words", {"expires_in": "172800"}),  # TERMS-27
    Altered("half a second", {"expires_in": 0.5}),  # TERMS-27
    Altered("no end", {"expires_in": 1e300}),  # TERMS-27
    Altered("a scope more", {"scope": ["positions:read", "trades:execute"]}),  # TERMS-28
    Altered("another scope", {"scope": ["transactions:read"]}),  # TERMS-28
    Altered("scope in a string", {"scope": "positions:read"}),  # TERMS-28
    Altered("a prohibition dropped", {"prohibited": ["retention-after-review", "marketing"]}),  # TERMS-29
    Altered("prohibitions emptied", {"prohibited": []}),  # TERMS-29
    Altered("no prohibitions", {"prohibited": None}),  # TERMS-29
    Altered("an overlong reason", {"reason": "x" * 513}),  # TERMS-33
    Altered("a reason that is no text", {"reason": {"why": "because"}}),  # TERMS-33
    Altered("a mission approved over http", {"mission": {"approver": "http://a.example",
                                                         "s256": "s256:" + "A" * 43}}),  # TERMS-34
    Altered("no operation", {"operation": None}, "execute_trade"),  # TERMS-09 TERMS-30
    Altered("operation in a string", {"operation": "execute_trade"}, "execute_trade"),  # TERMS-30
    Altered("operation without a tool", {"operation": {"params": TRADE}}, "execute_trade"),  # TERMS-30
    Altered("operation without parameters", {"operation": {"tool": "execute_trade"}}, "execute_trade"),  # TERMS-30
    Altered("tool that is no text", {"operation": {"tool": 1, "params": TRADE}}, "execute_trade"),  # TERMS-30
    Altered("parameters in a list", {"operation": {"tool": "execute_trade", "params": [TRADE]}},
            "execute_trade"),  # TERMS-30
    Altered("parameters null", {"operation": {"tool": "execute_trade", "params": None}}, "execute_trade"),  # TERMS-30
]

SIGNATURES = [
    Altered("signed by another key", key=OTHER),  # TERMS-24
    Altered("another typ", header=header(typ="JWT")),  # TERMS-22
    Altered("no typ", header=header(typ=None)),  # TERMS-22
    Altered("no key", header=header(jwk=None)),  # TERMS-23
    Altered("both a key and a credential", header=header(agent_token="e30.e30.AAAA")),  # TERMS-23
    Altered("alg none", header=header(alg="none")),  # TERMS-24
    Altered("alg of a shared secret", header=header(alg="HS256")),  # TERMS-24
    Altered("a small-order key", header=header(jwk={"kty": "OKP", "crv": "Ed25519", "x": "A" * 43})),  # TERMS-24
    Altered("a key of another kind", header=header(jwk={"kty": "EC", "crv": "P-256", "x": "A" * 43, "y": "A" * 43})),
    Altered("an extension it must know", header=header(crit=["x"], x=1)),  # TERMS-24
]


def assert_ended(house, negotiation, response):
    """Refused, over, and nothing of it with the owner."""
    assert (response.status, response.json()["error"]) == (403, "request_denied"), response  # TERMS-20
    assert not {"ticket", "access_token", "required_claims"} & set(response.json())
    assert response.header("cache-control") == "no-store"  # BASE-08
    again = negotiation.present()
    assert (again.status, again.json()["error"]) == (400, "invalid_grant"), again  # BASE-06
    assert negotiation.family not in house.owner.pending()
    assert not {"promised", "approved", "connected", "touched"} & set(house.owner.kinds(negotiation.family))


@pytest.mark.parametrize("altered", [*CLAIMS, *SIGNATURES], ids=lambda altered: altered.id)
def test_altered(house, known, altered):
    arguments = TRADE if altered.tool == "execute_trade" else {}
    negotiation = known.negotiate(house.resource, altered.tool, arguments)
    claims = negotiation.claims() | (altered.claims or {})
    claims = {name: value for name, value in claims.items() if value is not None}
    built = altered.header(known) if altered.header else None
    assert_ended(house, negotiation, negotiation.commit(claims, header=built, key=altered.key))


def test_the_honest_agreement_is_accepted(house, known):
    """What the rows above prove nothing without: the same agent, the same terms, unaltered."""
    negotiation = known.negotiate(house.resource, "get_positions")
    grant = negotiation.grant(negotiation.commit())
    result(known.call(house.resource, "get_positions", token=grant.token))
    trade = known.negotiate(house.resource, "execute_trade", TRADE)
    trade.pending(trade.commit())
    house.owner.decide(trade.family, "denied")


@pytest.mark.parametrize("form", ["raw", "padded", "four parts", "two parts", "empty", "not base64url"])
def test_the_claim_token_is_the_whole_jws_once_more_encoded(house, known, form):  # TERMS-22
    negotiation = known.negotiate(house.resource, "get_positions")
    jws = negotiation.sign_agreement(negotiation.claims())
    token = {
        "raw": jws, "padded": b64(jws.encode()).rstrip("=") + "====", "four parts": b64((jws + ".AAAA").encode()),
        "two parts": b64(jws.rpartition(".")[0].encode()), "empty": b64(b".."), "not base64url": "+/" * 50,
    }[form]
    assert_ended(house, negotiation, negotiation.commit(claim_token=token))


def test_a_stranger_with_altered_terms_gets_no_connection(house, agent):
    negotiation = agent.negotiate(house.resource, "get_positions")
    assert_ended(house, negotiation, negotiation.commit(negotiation.claims() | {"prohibited": []}))
    assert agent.handle not in house.owner.connections()


def test_an_agreement_is_good_for_one_negotiation(house, known):  # TERMS-19 TERMS-26
    first = known.negotiate(house.resource, "get_positions")
    first.grant(first.commit())
    second = known.negotiate(house.resource, "get_positions")
    assert second.template["nonce"] != first.template["nonce"] and second.family != first.family
    assert_ended(house, second, second.commit(claim_token=b64(first.agreement.encode())))


def test_another_format_is_asked_again(house, known):
    """Nothing was agreed, so nothing was refused: the terms come back on a fresh ticket and can still be taken."""
    negotiation = known.negotiate(house.resource, "get_positions")
    response = negotiation.commit(format="urn:example:other")
    assert (response.status, response.json()["error"]) == (403, "need_info"), response
    (claim,) = response.json()["required_claims"]
    negotiation.template = claim["terms_template"]
    negotiation.grant(negotiation.commit())


def test_both_editions_name_the_same_format(house, known):
    negotiation = known.negotiate(house.resource, "get_positions")
    negotiation.grant(negotiation.commit(format="https://u4a.ai/spec/terms/1.0#myterms-agreement-v1+jws"))


def test_tickets_from_nowhere(house, known):  # BASE-03 CORE-09 CORE-110
    issuer = house.authority
    for ticket in ("x", "A" * 43, "tkt_" + "A" * 32, "A" * 5000, "..", "\u00e9"):
        negotiation = Negotiation(known, issuer, "unused", {})
        response = negotiation.present(ticket=ticket)
        assert (response.status, response.json()["error"]) == (400, "invalid_grant"), (ticket, response)


def test_a_tampered_ticket(house, known):  # BASE-03
    negotiation = known.negotiate(house.resource, "get_positions")
    live = negotiation.ticket
    flipped = live[:-2] + ("A" if live[-2] != "A" else "B") + live[-1]
    assert negotiation.present(ticket=flipped).status == 400
    negotiation.grant(negotiation.commit())  # The live one was not spent by it.


def test_other_grants_are_not_offered(house, known):  # CORE-03 CORE-36
    for grant_type in ("authorization_code", "refresh_token", "password",
                       "urn:ietf:params:oauth:grant-type:jwt-bearer"):
        negotiation = Negotiation(known, house.authority, "unused", {})
        response = negotiation.present(grant_type=grant_type)
        assert (response.status, response.json()["error"]) == (400, "unsupported_grant_type")
        assert grant_type not in house.metadata["grant_types_supported"]


def test_a_poll_signed_by_another_key_is_not_spent(house, agent):
    negotiation = agent.negotiate(house.resource, "get_positions")
    negotiation.pending(negotiation.commit())
    house.owner.decide(negotiation.family, "approved")
    response = negotiation.present(signer=OTHER)
    assert response.status in (400, 401, 403) and "access_token" not in response.json(), response
    negotiation.grant(negotiation.poll(signer=agent.key))


def test_lapsed_agreements_are_still_dated(house, known):
    """`iat` is the agent's own word and decides nothing, but a token lives from her decision, never from it."""
    negotiation = known.negotiate(house.resource, "get_positions")
    response = negotiation.commit(negotiation.claims() | {"iat": int(time.time()) + 10**6, "expires_in": 60})
    if response.status == 200:
        assert negotiation.grant(response).claims["exp"] <= time.time() + 61  # TERMS-31
    else:
        assert_ended(house, negotiation, response)


def test_a_receipt_cannot_be_presented_as_an_agreement(house, known):  # TERMS-22 TERMS-24
    first = known.negotiate(house.resource, "get_positions")
    grant = first.grant(first.commit())
    second = known.negotiate(house.resource, "get_positions")
    assert_ended(house, second, second.commit(claim_token=b64(grant.receipt.encode())))
    third = known.negotiate(house.resource, "get_positions")
    unsigned = compact_jws(known.key, {"typ": TYP, "alg": "EdDSA", "jwk": known.key.jwk}, third.claims())
    stripped = unsigned.rpartition(".")[0] + "."
    assert_ended(house, third, third.commit(claim_token=b64(stripped.encode())))

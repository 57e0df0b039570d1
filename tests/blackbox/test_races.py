"""Two authority processes on one store, and thirty-two callers split over both, at every intent that only one may win.
What each was told is held against the record by checker.py."""

import time

import pytest

from cast import REALM, TRADE, result
from checker import Race, row_of
from parties import Agent, Challenge, Negotiation
from town import Town
from wire import b64, dialling, fetch_json

ROUNDS = 3
TRANSACTIONS = {"account": "brokerage-main"}
LOST_TICKET = "invalid_grant"


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Town.running(tmp_path_factory.mktemp("town"), replicas=2) as town:
        yield town


def race_in(town):
    return Race(town.owner, lambda number: dialling(town.issuer, town.listens[number]))


def hers(town):
    return "owner", town.owner.key.thumbprint


def theirs(town):
    return "resource_server", town.url


def known_agent(town):
    agent = Agent()
    agent.read = agent.obtain(town.resource, "get_positions", owner=town.owner)
    return agent


quantities = iter(range(1, 100000))


def order():
    """Two orders are never one: an equal request would take the place of the one that waits (D-19)."""
    return TRADE | {"quantity": next(quantities)}


def asking(town, agent, tool="get_transactions", arguments=TRANSACTIONS):
    negotiation = agent.negotiate(town.resource, tool, arguments)
    negotiation.pending(negotiation.commit())
    return negotiation


def approved(town, agent, **asked):
    negotiation = asking(town, agent, **asked)
    town.owner.decide(negotiation.family, "approved")
    return negotiation


def later(delay, act, *arguments, **named):
    time.sleep(delay)
    return act(*arguments, **named)


def ended_by(town, agent, delay):
    """Her revocation, a moment later."""
    return later(delay, town.owner.request, "POST", "/connections/revoke", {"handle": agent.handle})


def lost_ticket(told):
    return (told.status, told.error) == (400, LOST_TICKET)


def test_they_are_replicas(town):
    """The same keys, the same terms, the same record through either; a protection token of one is good at the other."""
    seen = []
    for listen in town.listens:
        with dialling(town.issuer, listen):
            seen.append((fetch_json(town.metadata["jwks_uri"]), town.owner.read("/policies"), town.owner.ledger(),
                         fetch_json(town.metadata["terms_endpoint"])))
    assert seen[0] == seen[1]
    server = town.resource_server()
    with dialling(town.issuer, town.listens[0]):
        pat = server.pat
    with dialling(town.issuer, town.listens[1]):
        assert server.perm(f"{REALM}/get_positions", ["positions:read"], pat).status == 201


@pytest.mark.parametrize("_", range(ROUNDS))
def test_first_presentation(town, _):  # CORE-94
    """One sealed ticket at both processes, which have never heard of it: one negotiation."""
    agent = Agent()
    challenge = Challenge.of(agent.call(town.resource, "get_positions"))
    race = race_in(town)
    callers = [Negotiation(agent, challenge.as_uri, challenge.ticket, {}) for _ in range(race.callers)]
    race.run(lambda number: ("open", challenge.ticket, callers[number].present))
    (winner,) = race.one_winner("open", lambda told: told.error == "need_info", lost_ticket).values()
    race.accounts()
    negotiation = callers[winner.caller]
    negotiation.template = winner.json()["required_claims"][0]["terms_template"]
    negotiation.format = winner.json()["required_claims"][0]["claim_token_format"][0]
    negotiation.pending(negotiation.commit())
    assert town.owner.kinds(negotiation.family) == ["promised"]
    town.owner.decide(negotiation.family, "denied")


@pytest.mark.parametrize("_", range(ROUNDS))
def test_commit_or_decline(town, _):  # CORE-94
    """One ticket, half of the callers agreeing and half declining: one of them spoke, and the record says which."""
    agent = Agent()
    negotiation = agent.negotiate(town.resource, "get_positions")
    ticket, race = negotiation.ticket, race_in(town)
    claim = negotiation.sign_agreement(negotiation.claims())
    commit = {"claim_token": b64(claim.encode()), "claim_token_format": negotiation.format}

    def plan(number):
        form = commit if number % 4 < 2 else {"decline": "true"}
        return "step", ticket, lambda: negotiation.present(ticket=ticket, **form)

    race.run(plan)
    (winner,) = race.one_winner(
        "step", lambda told: told.error in ("request_submitted", "request_denied"), lost_ticket).values()
    if winner.error == "request_submitted":
        winner.rows = [row_of("promised", family=negotiation.family, handle=agent.handle, by="agent")]
        assert negotiation.family in town.owner.pending()
        town.owner.decide(negotiation.family, "denied")
        race.told[0].rows += [row_of("denied", family=negotiation.family, handle=agent.handle, by=hers(town))]
    else:
        winner.rows = [row_of("refused", family=negotiation.family, by="agent")]
        assert negotiation.family not in town.owner.pending()
    race.accounts()


@pytest.mark.parametrize("_", range(ROUNDS))
def test_polls_of_one_ticket(town, _):  # CORE-94
    """She approved; everybody claims with the one live ticket: one grant, one receipt, and no row for the losers."""
    agent = known_agent(town)
    negotiation = approved(town, agent)
    ticket, race = negotiation.ticket, race_in(town)
    race.run(lambda number: ("claim", ticket, lambda: negotiation.present(ticket=ticket)))
    (winner,) = race.one_winner("claim", lambda told: told.status == 200, lost_ticket).values()
    race.accounts()
    assert town.resource_server().state(winner.json()["access_token"]) is True
    again = negotiation.present(ticket=ticket)
    assert (again.status, again.json()["error"]) == (400, LOST_TICKET)


@pytest.mark.parametrize("first_contact", [True, False, True])
def test_her_decision(town, first_contact):  # OWN-08 CORE-94
    """Approve and deny from thirty-two of her windows at once: one answer is taken, and it is the one that holds."""
    agent = Agent() if first_contact else known_agent(town)
    negotiation = asking(town, agent)
    race = race_in(town)
    answers = ["approved", "denied"]

    def plan(number):
        answer = answers[number // 2 % 2]
        return "decide", negotiation.family, lambda: town.owner.answer(negotiation.family, answer)

    race.run(plan)
    (winner,) = race.one_winner("decide", lambda told: told.status in (200, 204),
                                lambda told: told.status == 404 and told.json()["detail"]).values()
    answer = answers[winner.caller // 2 % 2]
    kinds = (["connected"] if first_contact else []) + ["approved"] if answer == "approved" else ["denied"]
    winner.rows = [row_of(kind, family=negotiation.family, handle=agent.handle, by=hers(town)) for kind in kinds]
    race.accounts()
    assert (negotiation.poll().status == 200) is (answer == "approved")
    assert (agent.handle in town.owner.connections()) is (answer == "approved" or not first_contact)


@pytest.mark.parametrize("shared", [1, 1, 2])
def test_one_spend(town, shared):  # CORE-94 CORE-89
    """Different attempts at one single-use grant: one is told yes, and the same attempt is told so again."""
    agent = known_agent(town)
    grant = approved(town, agent, tool="execute_trade", arguments=TRADE)
    grant = grant.grant(grant.poll())
    server, race = town.resource_server(), race_in(town)
    server.pat

    def plan(number):
        attempt = f"attempt-{number // shared}"
        return "consume", attempt, lambda: server.consume(grant.token, attempt=attempt)

    race.run(plan)
    won = {told.artifact for told in race.told if told.json().get("consumed") is True}
    assert len(won) == 1, race.told
    for told in race.told:
        if told.artifact in won:
            assert told.json()["consumed"] is True, "the same attempt was answered differently"
        else:
            assert told.json() == {"consumed": False, "error": "already_consumed"}
    winner = next(told for told in race.told if told.artifact in won)
    winner.rows = [row_of("touched", family=grant.family, handle=agent.handle, by=theirs(town))]
    race.accounts()
    assert server.state(grant.token) == "already_consumed"


def test_one_call_through_the_gateway(town):  # CORE-89 CORE-94 CORE-95
    """Thirty-two freshly signed calls with one single-use grant: the tool runs once."""
    agent = known_agent(town)
    grant = approved(town, agent, tool="execute_trade", arguments=TRADE)
    grant = grant.grant(grant.poll())
    before, race = town.canary.calls("execute_trade"), race_in(town)
    race.run(lambda number: ("call", grant.token,
                             lambda: agent.call(town.resource, "execute_trade", TRADE, token=grant.token)))
    (winner,) = race.one_winner("call", lambda told: told.status == 200,
                                lambda told: (told.status, told.error) == (403, "already_consumed")).values()
    result(winner.response)
    assert town.canary.calls("execute_trade") == before + 1
    winner.rows = [row_of("touched", family=grant.family, handle=agent.handle, by=theirs(town))]
    race.accounts()


@pytest.mark.parametrize("known", [False, True, False])
def test_equal_requests_are_one_question(town, known):
    """D-19: an agent that lost every reply and asks sixteen times over, at both processes at once, waits in one place;
    she is asked once, and her yes is worth one grant."""
    agent, asked = known_agent(town) if known else Agent(), order()
    offers = [agent.negotiate(town.resource, "execute_trade", asked) for _ in range(16)]
    race = race_in(town)
    race.callers = len(offers)
    race.run(lambda number: ("commit", offers[number].family, offers[number].commit))
    for told in race.of("commit"):
        assert (told.status, told.error) == (403, "request_submitted"), told
        told.rows = [row_of("promised", family=told.artifact, handle=agent.handle, by="agent")]
    mine = [item for item in town.owner.pending().values() if item["key"] == agent.key.thumbprint]
    assert len(mine) == 1, "she is asked more than once"
    town.owner.decide(mine[0]["family"], "approved")
    race.accounts(ignoring=("approved", "connected"))
    tickets = [offer.ticket for offer in offers]
    race.run(lambda number: ("claim", "the grant", lambda: offers[number].present(ticket=tickets[number])))
    (winner,) = race.one_winner("claim", lambda told: told.status == 200, lost_ticket).values()
    assert offers[winner.caller].family == mine[0]["family"]
    race.accounts(ignoring=("approved", "connected"))


@pytest.mark.parametrize("delay", [0, 0.02, 0.03, 0.04])
def test_revoke_against_claims(town, delay):  # CORE-103 CORE-94
    """She ends an agent that is just fetching what she approved. Whatever was issued before is counted in what she is
    told, nothing is issued after, and from then on both processes call all of it dead."""
    agent = known_agent(town)
    claims = [approved(town, agent, tool="execute_trade", arguments=order()) for _ in range(12)]
    for claim in claims:
        claim.due = claim.ticket
    waiting = [asking(town, agent, tool="execute_trade", arguments=order()) for _ in range(4)]
    server, race = town.resource_server(), race_in(town)
    server.pat
    time.sleep(1.05)  # A poll before its time is held; these are to be answered when they come.

    def plan(number):
        if number < 24:
            claim = claims[number % 12]
            return [("claim", claim.due, lambda: later(number % 12 * 0.005, claim.present, ticket=claim.due))] + 4 * [
                ("probe", agent.read.token, lambda: server.introspect(agent.read.token))]
        if number < 28:
            one = waiting[number - 24]
            return "decide", one.family, lambda: town.owner.answer(one.family, "approved")
        return "revoke", agent.handle, lambda: ended_by(town, agent, delay)

    race.run(plan)
    ends = [told for told in race.of("revoke")]
    assert all(told.status == 200 for told in ends), ends
    (ended,) = [told for told in ends if told.json()["connections_revoked"] == 1]
    assert all(told.json() == {"rpts_deactivated": 0, "connections_revoked": 0} for told in ends if told is not ended)
    tokens = [told.json()["access_token"] for told in race.of("claim") if told.status == 200]
    assert ended.json()["rpts_deactivated"] == len(tokens) + 1
    for told in race.of("claim"):
        assert told.status == 200 or told.error in (LOST_TICKET, "request_denied"), told
    race.dead_after("revoke", "probe", lambda told: told.json()["active"])
    for listen in town.listens:
        with dialling(town.issuer, listen):
            assert {server.state(token) for token in [agent.read.token, *tokens]} == {"connection_revoked"}
            for claim in claims:
                assert claim.present(ticket=claim.due).status == 400
    ended.rows = [row_of("revoked", handle=agent.handle, by=hers(town))]
    for told in race.of("decide"):
        assert told.status in (200, 404), told
        if told.status == 200:
            told.rows = [row_of("approved", family=told.artifact, handle=agent.handle, by=hers(town))]
    race.accounts()
    rows = race.record()
    at = next(row["seq"] for row in rows if row["kind"] == "revoked")
    assert all(row["seq"] < at for row in rows if row["kind"] == "approved"), "approved for an agent she had ended"
    assert not any(item["family"] in town.owner.pending() for item in rows if item["family"])


@pytest.mark.parametrize("delay", [0, 0.01, 0.02])
def test_reports_against_a_revocation(town, delay):  # CORE-103 FED-48
    """Calls that were allowed are recorded, each once, also when the grant died before the report came."""
    agent = known_agent(town)
    server, race = town.resource_server(), race_in(town)
    server.pat
    family = agent.read.family

    def plan(number):
        if number < 28:
            body = {"family": family, "tool": "get_positions", "summary": f"call {number}"}
            return [("report", str(number), lambda: server.report(body)),
                    ("probe", "token", lambda: server.introspect(agent.read.token))]
        return "revoke", agent.handle, lambda: ended_by(town, agent, delay)

    race.run(plan)
    for told in race.of("report"):
        assert told.status == 204, told
        told.rows = [row_of("touched", family=family, handle=agent.handle, by=theirs(town),
                            of=f"call {told.artifact}")]
    ended = [told for told in race.of("revoke") if told.json()["connections_revoked"] == 1]
    assert len(ended) == 1
    ended[0].rows = [row_of("revoked", handle=agent.handle, by=hers(town))]
    race.accounts()
    race.dead_after("revoke", "probe", lambda told: told.json()["active"])

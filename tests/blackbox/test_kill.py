"""kill -9 at every step of a negotiation and of a call, made to happen exactly there by a proxy between gateway and
authority. Afterwards nothing an answer was given for is lost, nothing runs twice, and an agent whose reply was lost
can begin again (D-14, D-19, D-37)."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import pytest

from cast import TRADE, result
from parties import Agent, Challenge, Negotiation
from town import Town

TRANSACTIONS = {"account": "brokerage-main"}
STEPS = ("open", "commit", "poll", "claim")
quantities = iter(range(1, 100000))


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Town.running(tmp_path_factory.mktemp("town"), valve=True) as town:
        yield town


def connected(town):
    agent = Agent()
    agent.read = agent.obtain(town.resource, "get_positions", owner=town.owner)
    return agent


@pytest.fixture
def known(town):
    """She let it in, and it has asked for nothing else."""
    return connected(town)


@pytest.fixture(scope="module")
def regular(town):
    """She let it in; its orders are all different."""
    return connected(town)


@pytest.fixture(autouse=True)
def record_only_grows(town):
    """Whatever is killed, the rows before are the first rows after, and their places have no gap."""
    before = town.owner.ledger()
    yield
    after = town.owner.ledger()
    assert after[:len(before)] == before
    assert [row["seq"] for row in after] == list(range(1, len(after) + 1))


def unanswered(act):
    """The response, or None where the connection ended without one."""
    try:
        return act()
    except (OSError, HTTPException):
        return None


def struck(held, role, act, *, then="cut"):
    """Does `act`; when it is held, kills the role, lets what is held go no further (or on), and starts the role
    again."""
    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(unanswered, act)
        held.wait()
        if then == "race":
            held.release()
            time.sleep(random.uniform(0, 0.006))
        role.kill()
        held.cut() if then == "cut" else held.release()
        outcome = doing.result(30)
    role.start()
    return outcome


# ---- a negotiation -------------------------------------------------------------------------------------------------

def at(town, agent, step):
    """A negotiation just before a step, and the step."""
    challenge = Challenge.of(agent.call(town.resource, "get_transactions", TRANSACTIONS))
    negotiation = Negotiation(agent, challenge.as_uri, challenge.ticket,
                              {"tool": "get_transactions", "params": TRANSACTIONS})
    if step == "open":
        return negotiation, negotiation.present, lambda response: response.json()["error"] == "need_info"
    negotiation.ask()
    claim = negotiation.claims()
    if step == "commit":
        ticket = negotiation.ticket
        return negotiation, lambda: negotiation.commit(claim), \
            lambda response: response.json()["error"] == "request_submitted" and ticket != negotiation.ticket
    negotiation.pending(negotiation.commit(claim))
    if step == "claim":
        town.owner.decide(negotiation.family, "approved")
        return negotiation, negotiation.present, lambda response: response.status == 200
    return negotiation, negotiation.present, lambda response: response.json()["error"] == "request_submitted"


def spent(response):
    return response.status == 400 and response.json()["error"] == "invalid_grant"


def finished(town, agent, response, negotiation):
    """To the end from wherever the step left it."""
    if negotiation.template is None:
        (claim,) = response.json()["required_claims"]
        negotiation.template, negotiation.format = claim["terms_template"], claim["claim_token_format"][0]
        response = negotiation.commit()
    if response.status == 403:
        if negotiation.family in town.owner.pending():
            town.owner.decide(negotiation.family, "approved")
        response = negotiation.poll()
    return works(town, agent, negotiation.grant(response))


def works(town, agent, grant):
    before = town.canary.calls("get_transactions")
    result(agent.call(town.resource, "get_transactions", TRANSACTIONS, token=grant.token))
    assert town.canary.calls("get_transactions") == before + 1
    return grant


def afresh(town, agent):
    """It begins again at the resource, and gets there."""
    return works(town, agent, agent.obtain(town.resource, "get_transactions", TRANSACTIONS, owner=town.owner))


@pytest.mark.parametrize("step", STEPS)
def test_killed_before_the_step_was_heard(town, known, step):
    """The ticket is as good as before: the same presentation goes through, once."""
    negotiation, act, did = at(town, known, step)
    assert struck(town.valve.hold("/token", "request"), town.authority, act) is None
    ticket = negotiation.ticket
    response = act()
    assert did(response), response
    assert spent(negotiation.present(ticket=ticket))
    grant = finished(town, known, response, negotiation)
    assert town.owner.kinds(grant.family).count("promised") == 1


@pytest.mark.parametrize("step", STEPS)
def test_killed_after_the_step_before_its_answer(town, known, step):
    """What was done is done: the ticket is spent, its rows stand, and the agent that heard nothing begins afresh."""
    negotiation, act, _ = at(town, known, step)
    assert struck(town.valve.hold("/token", "answer"), town.authority, act) is None
    assert spent(negotiation.present())
    if step != "open":
        kinds = town.owner.kinds(negotiation.family)
        assert kinds == ["promised"] + ["approved"] * (step == "claim")
    if step in ("commit", "poll"):
        assert negotiation.family in town.owner.pending()
    afresh(town, known)


@pytest.mark.parametrize("step", STEPS * 2)
def test_killed_in_the_middle_of_a_step(town, known, step):  # CORE-94
    """On whichever side of the commit it falls, the ticket is worth the step once in all."""
    negotiation, act, did = at(town, known, step)
    answer = struck(town.valve.hold("/token", "request"), town.authority, act, then="race")
    if answer is not None:
        assert did(answer), answer
    else:
        answer = act()
        assert did(answer) or spent(answer), answer
    if spent(answer):
        afresh(town, known)
    else:
        finished(town, known, answer, negotiation)
    if negotiation.template:
        kinds = town.owner.kinds(negotiation.family)
        assert kinds.count("promised") == 1 and kinds.count("approved") <= 1


@pytest.mark.parametrize("step, asked", [("commit", 1), ("poll", 1), ("claim", 0)])
def test_an_agent_that_begins_afresh_is_attached(town, known, step, asked):
    """D-19: its new negotiation takes the place of the one whose reply was lost, so that she is not asked twice, and not
    at all for what she approved and it never got."""
    negotiation, act, _ = at(town, known, step)
    assert struck(town.valve.hold("/token", "answer"), town.authority, act) is None
    again = known.negotiate(town.resource, "get_transactions", TRANSACTIONS)
    response = again.commit()
    asks = [item for item in town.owner.pending().values() if item["key"] == known.key.thumbprint]
    assert len(asks) == asked, "she is asked more often than there are requests"
    if asked:
        assert asks[0]["family"] in (again.family, negotiation.family)
        town.owner.decide(asks[0]["family"], "approved")
        response = again.poll()
    works(town, known, again.grant(response))
    assert not [item for item in town.owner.pending().values() if item["key"] == known.key.thumbprint]


@pytest.mark.parametrize("moment", ["request", "answer"])
@pytest.mark.parametrize("decision", ["approved", "denied"])
def test_killed_at_her_decision(town, known, decision, moment):  # OWN-08
    """Unheard, it still waits for her; heard, it is decided, whether she was told or not, and not a second time."""
    negotiation, act, _ = at(town, known, "poll")
    path = f"/owner/pending/{negotiation.family}/decision"
    assert struck(town.valve.hold(path, moment), town.authority,
                  lambda: town.owner.answer(negotiation.family, decision)) is None
    waits = negotiation.family in town.owner.pending()
    assert waits is (moment == "request")
    again = town.owner.answer(negotiation.family, decision)
    assert again.status == (200 if waits else 404), again
    assert town.owner.kinds(negotiation.family) == ["promised", decision]
    response = negotiation.poll()
    assert (response.status == 200) is (decision == "approved"), response


@pytest.mark.parametrize("moment", ["request", "answer"])
def test_killed_at_her_revocation(town, known, moment):  # CORE-103
    struck(town.valve.hold("/owner/connections/revoke", moment), town.authority,
           lambda: town.owner.request("POST", "/connections/revoke", {"handle": known.handle}))
    heard = moment == "answer"
    assert town.owner.connections()[known.handle]["status"] == ("revoked" if heard else "active")
    response = known.call(town.resource, "get_positions", token=known.read.token)
    assert (response.status == 403) is heard, response
    ended = [row for row in town.owner.ledger(known.handle) if row["kind"] == "revoked"]
    assert len(ended) == heard
    town.owner.revoke(known.handle)


# ---- a call --------------------------------------------------------------------------------------------------------

class Call:
    """One approved trade that nobody else trades, and what became of it."""

    def __init__(self, town, agent):
        self.town, self.agent, self.order = town, agent, TRADE | {"quantity": next(quantities)}
        self.grant = agent.obtain(town.resource, "execute_trade", self.order, owner=town.owner)
        self.asked = len(town.canary.bodies)

    def make(self):
        return self.agent.call(self.town.resource, "execute_trade", self.order, token=self.grant.token)

    @property
    def ran(self):
        wanted = f'"quantity": {self.order["quantity"]}}}'.encode()
        return len([body for body in self.town.canary.bodies if wanted in body])

    @property
    def state(self):
        return self.town.resource_server().state(self.grant.token)

    @property
    def touched(self):
        return self.town.owner.kinds(self.grant.family).count("touched")

    def is_live(self):
        """Unspent and unrecorded: the agent may call again, and then it runs once."""
        assert (self.state, self.touched, self.ran) == (True, 0, 0)
        result(self.make())
        self.is_spent(ran=1)

    def is_spent(self, ran, rows=1):
        """Spent, in her record, and refused to whoever tries again."""
        assert (self.state, self.ran) == ("already_consumed", ran)
        again = self.make()
        assert (again.status, again.json()["error"]) == (403, "already_consumed"), again
        assert (self.ran, self.touched) == (ran, rows)


@pytest.fixture
def call(town, regular):
    return Call(town, regular)


def unavailable(response, *, perhaps_spent):
    assert (response.status, response.json()["error"]) == (503, "temporarily_unavailable"), response
    assert response.json().get("spent", False) is perhaps_spent, response.body


@pytest.mark.parametrize("path, point", [
    ("/introspect", "request"), ("/introspect", "answer"), ("/consume", "request"),
])
def test_gateway_killed_before_the_spend(town, call, path, point):  # CORE-89
    """Nothing was spent and nothing forwarded; the grant is there for another, freshly signed call."""
    assert struck(town.valve.hold(path, point), town.gateway, call.make) is None
    call.is_live()


@pytest.mark.parametrize("path, point, perhaps_spent", [
    ("/introspect", "request", False), ("/introspect", "answer", False), ("/consume", "request", True),
])
def test_authority_killed_before_the_spend(town, call, path, point, perhaps_spent):  # CORE-22 CORE-95
    """503, and whoever cannot know whether it was spent says so; as it was not, the agent may try again."""
    unavailable(struck(town.valve.hold(path, point), town.authority, call.make), perhaps_spent=perhaps_spent)
    call.is_live()


@pytest.mark.parametrize("then", ["cut", "release"])
def test_gateway_killed_after_the_spend(town, call, then):  # CORE-89 CORE-95
    """Spent and not forwarded: lost for the agent, in her record, and never run, whenever the answer arrives."""
    assert struck(town.valve.hold("/consume", "answer"), town.gateway, call.make, then=then) is None
    call.is_spent(ran=0)


def test_gateway_killed_while_the_spend_is_on_its_way(town, call):
    """The request outlives its sender: the authority spends for nobody, and nobody runs it."""
    assert struck(town.valve.hold("/consume", "request"), town.gateway, call.make, then="release") is None
    deadline = time.monotonic() + 5
    while call.state is True and time.monotonic() < deadline:
        time.sleep(0.02)
    call.is_spent(ran=0)


def test_authority_killed_after_the_spend(town, call):  # CORE-95
    unavailable(struck(town.valve.hold("/consume", "answer"), town.authority, call.make), perhaps_spent=True)
    call.is_spent(ran=0)


def test_gateway_killed_before_the_answer_of_the_server(town, call):  # CORE-95
    assert struck(town.canary.hold(), town.gateway, call.make) is None
    call.is_spent(ran=1)


def test_authority_killed_before_the_answer_of_the_server(town, call):
    """It is not needed any more: the agent gets its result."""
    result(struck(town.canary.hold(), town.authority, call.make, then="release"))
    call.is_spent(ran=1)


class Upstream:
    """The canary, to be struck like a role."""

    def __init__(self, town):
        self.kill, self.start = town.canary.stop, town.canary.start


def test_server_killed_before_its_answer(town, call):
    """D-14: 502, spent, and whether it ran is not known; her record tells both."""
    response = struck(town.canary.hold(), Upstream(town), call.make, then="release")
    told = response.json()
    assert (response.status, told["error"], told["spent"], told["forwarded"]) == \
           (502, "upstream_failed", True, "unknown"), response
    call.is_spent(ran=1, rows=2)
    told = [row["entry"] for row in town.owner.ledger() if row["family"] == call.grant.family]
    assert "not known" in told[-1]["summary"], told


def test_server_gone_between_spend_and_forwarding(town, call):
    response = struck(town.valve.hold("/consume", "answer"), Upstream(town), call.make, then="release")
    told = response.json()
    assert (response.status, told["error"], told["spent"]) == (502, "upstream_failed", True), response
    assert told["forwarded"] in ("no", "unknown")
    call.is_spent(ran=0, rows=2)


def test_server_gone_before_the_spend(town, call):
    """No connection, no spend: 503 and the grant is as good as before."""
    town.canary.stop()
    unavailable(call.make(), perhaps_spent=False)
    town.canary.start()
    call.is_live()


@pytest.mark.parametrize("role", ["gateway", "authority"])
@pytest.mark.parametrize("path, point, rows", [("/audit/access", "request", 0), ("/audit/access", "answer", 1)])
def test_killed_at_a_call_with_a_reusable_grant(town, regular, role, path, point, rows):  # FED-48
    """Her record has the call before the server does; an agent that heard nothing may call again."""
    known, before = regular, town.canary.calls("get_positions")
    rows += town.owner.kinds(known.read.family).count("touched")

    def make():
        return known.call(town.resource, "get_positions", token=known.read.token)

    outcome = struck(town.valve.hold(path, point), getattr(town, role), make)
    if role == "authority":
        unavailable(outcome, perhaps_spent=False)
    else:
        assert outcome is None
    assert town.canary.calls("get_positions") == before
    assert town.owner.kinds(known.read.family).count("touched") == rows
    result(make())
    assert town.canary.calls("get_positions") == before + 1
    assert town.owner.kinds(known.read.family).count("touched") == rows + 1


@pytest.mark.parametrize("role, point", [("gateway", "answer"), ("authority", "request"), ("authority", "answer")])
def test_killed_at_a_challenge(town, agent, role, point):  # CORE-82 CORE-22
    outcome = struck(town.valve.hold("/perm", point), getattr(town, role),
                     lambda: agent.call(town.resource, "get_positions"))
    assert outcome is None if role == "gateway" else outcome.status == 503, outcome
    assert Challenge.of(agent.call(town.resource, "get_positions")).ticket

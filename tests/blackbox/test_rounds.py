"""D-11: a tool may ask something within a call that was approved once, where its owner chose that, and only the call it
asked in may answer. The server is written with the Python package, before the gateway of `up`."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from parties import Agent
from stock import HERE, Front, line

TO = {"to": "bob"}
ABLE = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/protocolVersion": "2026-07-28"}
ANSWERS = {"sure": {"action": "accept", "content": {"really": True}}}


class Asking:
    """`up` before the server that asks, and what it sent."""

    def __init__(self, folder, stack):
        self.record = folder / "sent"
        command = [sys.executable, HERE / "servers/asking.py", self.record]
        self.front = stack.enter_context(Front.running(folder / "up", "--upstream-stdio", line(*command)))
        self.resource, self.owner = self.front.resource, self.front.owner
        self.agent = Agent()

    def sent(self):
        return self.record.read_text().splitlines() if self.record.exists() else []

    def bind(self, word="bind"):
        done = self.front.say("policies", word, "send")
        assert done.returncode == 0, done
        return done.stdout

    def call(self, token, arguments=None, agent=None, **params):
        params["_meta"] = ABLE
        return (agent or self.agent).call(self.resource, "send", TO if arguments is None else arguments, token, params=params)

    def asked(self):
        """A call that was approved and made, and the state with which its tool asks."""
        grant = self.agent.obtain(self.resource, "send", TO, self.owner)
        response = self.call(grant.token)
        assert response.status == 200, response
        result = response.message()["result"]
        assert (result["resultType"], self.sent()) == ("input_required", []), result
        return grant, result["requestState"]

    def answer(self, grant, state, **changes):
        return self.call(grant.token, requestState=state, inputResponses=ANSWERS, **changes)


@pytest.fixture
def asking(tmp_path):
    with ExitStack() as stack:
        yield Asking(tmp_path, stack)


def refused(response, status=403, error="continuation_refused"):
    assert (response.status, response.json()["error"]) == (status, error), response
    assert not response.all("www-authenticate") or status == 401


def test_a_call_that_was_approved_once_is_answered_once_where_she_chose_it(asking):
    told = asking.bind()
    assert "you will not see the answers" in told
    row = asking.owner.ledger()[-1]
    assert (row["kind"], row["entry"]) == ("approved", {"unit": "send", "bind": True})

    negotiation = asking.agent.negotiate(asking.resource, "send", TO)
    negotiation.commit()
    (waiting,) = asking.owner.pending().values()
    assert waiting["bind"] is True
    shown = asking.front.say("show", waiting["family"])
    assert "this tool may ask follow-up questions; you will not see the answers" in shown.stdout, shown
    asking.owner.decide(waiting["family"], "denied")

    grant, state = asking.asked()
    for what, response, answer in [
        ("changed", asking.answer(grant, state + "x"), ()),
        ("none", asking.call(grant.token, inputResponses=ANSWERS), (403, "already_consumed")),
        ("other arguments", asking.answer(grant, state, arguments={"to": "eve"}), (403, "operation_mismatch")),
        ("another key", asking.answer(grant, state, agent=Agent()), (401, "invalid_token")),
    ]:
        refused(response, *answer)
        assert asking.sent() == [], what
    response = asking.answer(grant, state)
    assert response.status == 200 and response.message()["result"]["content"][0]["text"] == "sent to bob", response
    assert asking.sent() == ["bob: {'really': True}"]
    refused(asking.answer(grant, state))
    assert len(asking.sent()) == 1
    rows = [row for row in asking.owner.ledger() if row["family"] == grant.negotiation.family]
    assert [row["kind"] for row in rows] == ["promised", "connected", "approved", "touched", "touched"]
    assert rows[-1]["entry"]["answers_s256"].startswith("s256:") and "really" not in str(rows)


def test_thirty_two_answers_at_once_are_one(asking):
    asking.bind()
    grant, state = asking.asked()
    with ThreadPoolExecutor(32) as pool:
        responses = list(pool.map(lambda _: asking.answer(grant, state), range(32)))
    statuses = sorted(response.status for response in responses)
    assert statuses == [200] + [403] * 31, statuses
    assert len(asking.sent()) == 1


def test_without_her_choice_or_after_it_nothing_is_answered(asking):
    grant, state = asking.asked()
    refused(asking.answer(grant, state))
    asking.bind()
    refused(asking.answer(grant, state))  # What was approved without is without.
    grant, state = asking.asked()
    asking.bind("unbind")
    refused(asking.answer(grant, state))
    asking.bind()
    refused(asking.answer(grant, state))  # What she ended does not come back.
    grant, state = asking.asked()
    asking.owner.revoke(asking.agent.handle)
    refused(asking.answer(grant, state), error="access_revoked")
    assert asking.sent() == []


def test_what_is_no_unit_of_one_call_at_a_time_cannot_be_bound(asking):
    done = asking.front.say("policies", "bind", "nothing")
    assert done.returncode == 6 and "policies" in done.stderr, done
    listed = asking.front.say("policies")
    assert "FOLLOW-UPS" in listed.stdout and "send" in listed.stdout, listed

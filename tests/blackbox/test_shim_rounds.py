"""D-11 through the shim: a tool that asks within a call its owner approved once asks the person at the client, and the
answer goes down with what the call was made with. A stock client, a server written with the Python package, `up` between."""

import sys

import pytest

from shims import Later, Person, client, run, shim, text_of
from stock import HERE, Front, line

ARGUMENTS = {"to": "bob"}


@pytest.fixture
def asking(tmp_path):
    command = [sys.executable, HERE / "servers/asking.py", tmp_path / "sent"]
    with Front.running(tmp_path / "up", "--upstream-stdio", line(*command)) as front:
        yield front


def bound(front):
    done = front.say("policies", "bind", "send")
    assert done.returncode == 0, done


def sent(tmp_path):
    record = tmp_path / "sent"
    return record.read_text().splitlines() if record.exists() else []


async def send(server, person, times=1):
    said = []
    async with client(server, "auto", person) as connected:
        for _ in range(times):
            said.append(await connected.call_tool("send", ARGUMENTS))
    return said


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_question_goes_up_and_the_answer_down(asking, tmp_path, way):
    bound(asking)
    person, _ = Person(True), Later(asking, "approved", after=2)
    with shim(way, asking.resource, tmp_path / "agent", "--hold", 1) as server:
        (said,) = run(send(server(), person))
    assert not said.is_error and text_of(said) == "sent to bob", said
    assert person.questions[0] == "agree" and person.questions[-1] == "really", person.questions
    assert person.questions.count("really") == 1 and person.shown[-1].message == "Really?"
    assert sent(tmp_path) == ["bob: {'really': True}"]


def test_each_call_is_approved_by_itself(asking, tmp_path):
    bound(asking)
    person, first = Person(True), Later(asking, "approved")
    with shim("stdio", asking.resource, tmp_path / "agent", "--hold", 1) as server:
        (said,) = run(send(server(), person))
        assert not said.is_error and len(first.families) == 1
        second = Later(asking, "denied")
        (said,) = run(send(server(), person))
    assert said.is_error and "Denied" in text_of(said), "what answered a question calls nothing anew"
    assert len(second.families) == 1 and len(sent(tmp_path)) == 1


def test_where_she_did_not_choose_it_the_answer_is_refused(asking, tmp_path):
    person, _ = Person(True), Later(asking, "approved")
    with shim("stdio", asking.resource, tmp_path / "agent", "--hold", 1) as server:
        (said,) = run(send(server(), person))
    assert said.is_error and "continuation_refused" in text_of(said), said
    assert sent(tmp_path) == []

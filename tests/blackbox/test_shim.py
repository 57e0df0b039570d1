"""`sayso shim` seen by clients that know nothing of it: the same tools, terms asked about by the client's own means, a
wait that can be taken up again, and an owner nobody at the client stands in for. On a pipe and over HTTP, in both eras."""

import asyncio
import json
import socket

import pytest
from mcp import Client

from cast import TRADE, House
from shims import ERAS, WAYS, Forger, Later, Listening, Person, client, run, shim, text_of

every = pytest.mark.parametrize(("way", "era"), [(way, era) for way in WAYS for era in ERAS])
QUICK = ("--hold", 1)
SUBJECT = "dev.sayso/subject"


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.kill()


def said(result):
    return json.loads(result.model_dump_json(by_alias=True))


async def trade(server, era, person=None, *, progress=None):
    """One trade in a session of its own."""
    async with client(server(), era, person) as connected:
        return await connected.call_tool("execute_trade", TRADE, progress_callback=progress)


@every
def test_the_tools_are_the_servers_own(house, tmp_path, way, era):
    async def listed(server):
        async with Client(server, mode=era) as connected:
            return [said(tool) for tool in (await connected.list_tools()).tools], connected.server_info

    with shim(way, house.resource, tmp_path / "agent") as server:
        directly, through = run(listed(house.resource)), run(listed(server()))
    assert through == directly
    assert {tool["name"] for tool in through[0]} == {"get_positions", "get_transactions", "execute_trade"}


# MCP-16, MCP-21, MCP-22, MCP-23, MCP-24, CORE-42, CORE-43
@every
def test_terms_are_agreed_to_the_owner_decides_and_the_tool_answers(house, tmp_path, way, era):
    person, owner = Person(True), Later(house, "approved", after=3)
    with shim(way, house.resource, tmp_path / "agent", *QUICK) as server:
        result = run(trade(server, era, person, progress=person.progressed))
    assert not result.is_error, text_of(result)
    assert owner.families and not house.owner.pending()
    assert person.questions[0] == "agree" and set(person.questions[1:]) == {"keep_waiting"}
    terms, wait = person.shown[0], person.shown[1]
    assert "orders-beyond-approved-parameters" in terms.message and '"symbol":"VTI"' in terms.message
    assert "owner of the resource" in wait.message and "not you" in wait.message and "reach her" in wait.message
    for asked in person.shown:
        assert [kind["type"] for kind in asked.requested_schema["properties"].values()] == ["boolean"]
    assert any("owner of the resource" in message for _, message in person.progress), person.progress
    kinds = house.owner.kinds(owner.families[0])
    assert kinds.count("touched") == 1, kinds


@every
def test_a_grant_for_many_calls_is_asked_for_once_by_many(house, tmp_path, way, era):  # one negotiation for all
    person = Person(True)

    async def session(server):
        async with client(server(), era, person) as connected:
            Later(house, "approved", after=1)
            calls = [connected.call_tool("get_positions", {}) for _ in range(5)]
            return await asyncio.gather(*calls)

    with shim(way, house.resource, tmp_path / "agent", "--hold", 10) as server:
        results = run(session(server))
    assert all(not result.is_error for result in results), [text_of(result) for result in results]
    assert person.questions.count("agree") == 1
    assert [row["kind"] for row in house.owner.ledger()].count("promised") == 1


@every
@pytest.mark.parametrize("answer", [False, "decline"])
def test_terms_that_are_declined_reach_nobody(house, tmp_path, way, era, answer):
    person = Person(answer)
    with shim(way, house.resource, tmp_path / "agent", *QUICK) as server:
        result = run(trade(server, era, person))
    assert result.is_error and "declined" in text_of(result)
    assert person.questions == ["agree"]
    assert not house.owner.pending()


@every
def test_a_denial_is_told_and_nothing_runs(house, tmp_path, way, era):
    Later(house, "denied")
    with shim(way, house.resource, tmp_path / "agent", *QUICK) as server:
        result = run(trade(server, era, Person(True)))
    assert result.is_error and "Denied by the owner" in text_of(result)


# MCP-21, MCP-23
@every
def test_an_owner_who_does_not_answer_in_time(house, tmp_path, way, era):
    person = Person(True)
    with shim(way, house.resource, tmp_path / "agent", *QUICK, "--patience", 5) as server:
        first = run(trade(server, era, person))
        waiting = house.owner.pending()
        Later(house, "approved")
        second = run(trade(server, era, person))
    assert first.is_error and "again with the same arguments" in text_of(first)
    assert first.meta[SUBJECT] == {"party": "resource_owner", "is_requesting_party": False,
                                   "reachable_by_client": False, "notified": True}
    assert len(waiting) == 1 and not second.is_error, text_of(second)
    assert person.questions.count("agree") == 1, "she was asked once, and so was the person"


@every
@pytest.mark.parametrize("answer", [False, "decline"])
def test_a_person_who_stops_waiting_does_not_end_her_wait(house, tmp_path, way, era, answer):  # CORE-43
    with shim(way, house.resource, tmp_path / "agent", *QUICK) as server:
        result = run(trade(server, era, Person(True, answer)))
    assert result.is_error and "Stopped waiting" in text_of(result)
    assert len(house.owner.pending()) == 1


@every
def test_a_client_that_cannot_ask_is_told_in_words(house, tmp_path, way, era):
    def call(*more):
        with shim(way, house.resource, tmp_path / "agent", *QUICK, *more) as server:
            return run(trade(server, era))

    unasked = call()
    assert unasked.is_error and "orders-beyond-approved-parameters" in text_of(unasked)
    assert not house.owner.pending(), "nothing was agreed to"
    beyond = call("--agree-up-to", 60)
    assert beyond.is_error and not house.owner.pending(), "a rule agrees to what is within it"
    waiting = call("--agree-up-to", 900)
    assert waiting.is_error and "again with the same arguments" in text_of(waiting)
    Later(house, "approved").join(30)
    done = call()
    assert not done.is_error, text_of(done)


# D-19: whatever is killed, she is asked once, and so is the person.
@every
def test_a_shim_that_is_started_anew_goes_on_where_it_was(house, tmp_path, way, era):
    person = Person(True, "cancel")
    for _ in range(2):
        with shim(way, house.resource, tmp_path / "agent", *QUICK, "--patience", 2) as server:
            first = run(trade(server, era, person))
        assert first.is_error
    (family,) = house.owner.pending()
    house.owner.decide(family, "approved")
    again = Person(True)
    with shim(way, house.resource, tmp_path / "agent", *QUICK) as server:
        second = run(trade(server, era, again))
    assert not second.is_error and again.questions == [], "neither is anybody asked again"
    assert person.questions.count("agree") == 1
    assert house.owner.kinds(family).count("touched") == 1


# MCP-21
@pytest.mark.parametrize("during", ["agree", "keep_waiting"])
def test_a_shim_that_is_killed_between_two_rounds(house, tmp_path, during):
    """The state a client carries opens in the shim that comes after, and the terms it is about are still there."""
    shim = Listening(house.resource, tmp_path / "agent", *QUICK)

    async def killing(params):
        if during in params.requested_schema["properties"]:
            await asyncio.to_thread(shim.restart)
            await asyncio.to_thread(decide)
        return True

    def decide():
        for family in house.owner.pending():
            house.owner.decide(family, "approved")

    person = Person(killing)
    try:
        Later(house, "approved", after=3)
        result = run(trade(shim.transport, "auto", person))
    finally:
        shim.kill()
    assert not result.is_error, text_of(result)
    assert person.questions.count("agree") == 1
    assert [row["kind"] for row in house.owner.ledger()].count("touched") == 1


# CORE-32, MCP-04
@every
def test_a_rogue_authority_hears_nothing(house, tmp_path, way, era):
    with socket.create_server(("127.0.0.1", 0)) as rogue, Forger(house.authority, rogue.getsockname()[1]) as forged:
        with shim(way, forged.resource, tmp_path / "agent") as server:
            async def session():
                async with client(server(), era, Person(True)) as connected:
                    return await connected.call_tool("get_positions", {})

            result = run(session())
        assert forged.called == 1 and result.is_error, text_of(result)
        assert "does not name this authority" in text_of(result)
        rogue.settimeout(0.5)
        with pytest.raises(TimeoutError):
            rogue.accept()
    assert not house.owner.pending()

"""`sayso shim` seen by clients that know nothing of it: the same tools, terms asked about by the client's own means, a
wait that can be taken up again, and an owner nobody at the client stands in for."""

import asyncio
import json
import socket

import pytest
from mcp import Client

from cast import TRADE, House, holding
from shims import ERAS, Forger, Later, Person, client, command, run, text_of

QUICK = ("--hold", 1)
SUBJECT = "dev.sayso/subject"


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.kill()


def said(result):
    return json.loads(result.model_dump_json(by_alias=True))


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_the_servers_own(house, tmp_path, era):
    async def listed(server):
        async with Client(server, mode=era) as connected:
            return [said(tool) for tool in (await connected.list_tools()).tools], connected.server_info

    directly, through = run(listed(house.resource)), run(listed(command(house.resource, tmp_path / "agent")))
    assert through == directly
    assert {tool["name"] for tool in through[0]} == {"get_positions", "get_transactions", "execute_trade"}


# MCP-16, MCP-21, MCP-22, MCP-23, MCP-24, CORE-42, CORE-43
@pytest.mark.parametrize("era", ERAS)
def test_terms_are_agreed_to_the_owner_decides_and_the_tool_answers(house, tmp_path, era):
    person = Person(True)

    async def session():
        async with client(command(house.resource, tmp_path / "agent", *QUICK), era, person) as connected:
            owner = Later(house, "approved", after=3)
            first = await connected.call_tool("execute_trade", TRADE, progress_callback=person.progressed)
            return first, owner

    result, owner = run(session())
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


@pytest.mark.parametrize("era", ERAS)
def test_a_grant_for_many_calls_is_asked_for_once_by_many(house, tmp_path, era):  # one negotiation for all
    person = Person(True)

    async def session():
        async with client(command(house.resource, tmp_path / "agent", "--hold", 10), era, person) as connected:
            Later(house, "approved", after=1)
            calls = [connected.call_tool("get_positions", {}) for _ in range(5)]
            return await asyncio.gather(*calls)

    results = run(session())
    assert all(not result.is_error for result in results), [text_of(result) for result in results]
    assert person.questions.count("agree") == 1
    assert [row["kind"] for row in house.owner.ledger()].count("promised") == 1


@pytest.mark.parametrize("era", ERAS)
def test_terms_that_are_declined_reach_nobody(house, tmp_path, era):
    for answer in (False, "decline"):
        person = Person(answer)

        async def session():
            async with client(command(house.resource, tmp_path / "agent", *QUICK), era, person) as connected:
                return await connected.call_tool("execute_trade", TRADE)

        result = run(session())
        assert result.is_error and "declined" in text_of(result)
        assert person.questions == ["agree"]
    assert not house.owner.pending()


@pytest.mark.parametrize("era", ERAS)
def test_a_denial_is_told_and_nothing_runs(house, tmp_path, era):
    person = Person(True)

    async def session():
        async with client(command(house.resource, tmp_path / "agent", *QUICK), era, person) as connected:
            Later(house, "denied")
            return await connected.call_tool("execute_trade", TRADE)

    result = run(session())
    assert result.is_error and "Denied by the owner" in text_of(result)


# MCP-21, MCP-23
@pytest.mark.parametrize("era", ERAS)
def test_an_owner_who_never_answers(house, tmp_path, era):
    person = Person(True)
    server = command(house.resource, tmp_path / "agent", *QUICK, "--patience", 5)

    async def session():
        async with client(server, era, person) as connected:
            first = await connected.call_tool("execute_trade", TRADE)
            waiting = house.owner.pending()
            Later(house, "approved")
            return first, waiting, await connected.call_tool("execute_trade", TRADE)

    first, waiting, second = run(session())
    assert first.is_error and "again with the same arguments" in text_of(first)
    assert first.meta[SUBJECT] == {"party": "resource_owner", "is_requesting_party": False,
                                   "reachable_by_client": False, "notified": True}
    assert len(waiting) == 1 and not second.is_error, text_of(second)
    assert person.questions.count("agree") == 1, "she was asked once, and so was the person"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", [False, "decline"])
def test_a_person_who_stops_waiting_does_not_end_her_wait(house, tmp_path, era, answer):  # CORE-43
    person = Person(True, answer)

    async def session():
        async with client(command(house.resource, tmp_path / "agent", *QUICK), era, person) as connected:
            return await connected.call_tool("execute_trade", TRADE)

    result = run(session())
    assert result.is_error and "Stopped waiting" in text_of(result)
    assert len(house.owner.pending()) == 1


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_is_told_in_words(house, tmp_path, era):
    async def session(*more):
        async with client(command(house.resource, tmp_path / "agent", *QUICK, *more), era) as connected:
            return await connected.call_tool("execute_trade", TRADE)

    unasked = run(session())
    assert unasked.is_error and "orders-beyond-approved-parameters" in text_of(unasked)
    assert not house.owner.pending(), "nothing was agreed to"
    beyond = run(session("--agree-up-to", 60))
    assert beyond.is_error and not house.owner.pending(), "a rule agrees to what is within it"
    waiting = run(session("--agree-up-to", 900))
    assert waiting.is_error and "again with the same arguments" in text_of(waiting)
    Later(house, "approved").join(30)
    done = run(session())
    assert not done.is_error, text_of(done)


# D-19: whatever is killed, she is asked once and the receipts stay.
@pytest.mark.parametrize("era", ERAS)
def test_a_shim_that_is_killed_in_the_middle(house, tmp_path, era):
    server = command(house.resource, tmp_path / "agent", *QUICK, "--patience", 2)
    person = Person(True, "cancel")

    async def session(person):
        async with client(server, era, person) as connected:
            return await connected.call_tool("execute_trade", TRADE)

    first = run(session(person))
    assert first.is_error and len(house.owner.pending()) == 1
    (family,) = house.owner.pending()
    house.owner.decide(family, "approved")
    again = Person(True)
    second = run(session(again))
    assert not second.is_error and again.questions == [], "neither is anybody asked again"
    assert house.owner.kinds(family).count("touched") == 1


# CORE-32, MCP-04
@pytest.mark.parametrize("era", ERAS)
def test_a_rogue_authority_hears_nothing(house, tmp_path, era):
    with socket.create_server(("127.0.0.1", 0)) as rogue, Forger(house.authority, rogue.getsockname()[1]) as forged:
        async def session():
            async with client(command(forged.resource, tmp_path / "agent"), era, Person(True)) as connected:
                return await connected.call_tool("get_positions", {})

        result = run(session())
        assert result.is_error and "not" in text_of(result), text_of(result)
        rogue.settimeout(0.5)
        with pytest.raises(TimeoutError):
            rogue.accept()
    assert not house.owner.pending()

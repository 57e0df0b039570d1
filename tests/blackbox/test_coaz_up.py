"""`sayso up` with a policy beside the owner: one command, one configuration file, and a policy that may take away from what
she granted and never adds to it."""

import threading
import time

import pytest

from cast import TRADE, House, holding, result
from engine import Engine
from parties import Agent, Challenge
from test_coaz_hosts import refused
from town import toml

READ = """@id("reading")
permit (principal is identity, action == Action::"tools/call", resource == tool::"get_positions")
when { context has agent };
"""
TRADING = """@id("trading")
permit (principal is identity, action == Action::"tools/call", resource == tool::"execute_trade");
"""


def housed(folder, settings):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "up.toml"
    file.write_text(toml({"gateway.enforce": ["uma", "coaz"]} | settings))
    return House(folder, "--config", file)


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    (folder / "read.cedar").write_text(READ)
    return folder


@pytest.fixture(scope="module")
def house(tmp_path_factory, policies):
    house = housed(tmp_path_factory.mktemp("up") / "up", {"pdp.policies": str(policies)})
    yield house
    house.stop()


def test_both_have_to_say_yes(house):  # D-5 D-6 COAZ-MCP-03
    agent = Agent()
    assert agent.request(house.resource, "tools/list").status == 200, "what she leaves open asks no policy"
    Challenge.of(agent.call(house.resource, "get_positions"))
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    assert holding(result(agent.call(house.resource, "get_positions", token=grant.token)))


def test_a_no_of_the_policy_costs_her_nothing(house, policies):  # D-5
    agent = Agent()
    grant = agent.obtain(house.resource, "execute_trade", TRADE, owner=house.owner)
    reader = agent.obtain(house.resource, "get_positions", owner=house.owner)
    before = holding(result(agent.call(house.resource, "get_positions", token=reader.token)))
    for _ in range(2):
        no = agent.call(house.resource, "execute_trade", TRADE, token=grant.token)
        error = refused(no, -32001, "denied")
        assert agent.key.thumbprint not in str(error)
    assert house.resource_server().state(grant.token) is True, "it was not spent"
    assert holding(result(agent.call(house.resource, "get_positions", token=reader.token))) == before
    try:
        (policies / "trade.cedar").write_text(TRADING)
        deadline = time.monotonic() + 10
        while "error" in (said := agent.call(house.resource, "execute_trade", TRADE, token=grant.token).message()):
            assert said["error"]["code"] == -32001 and time.monotonic() < deadline, said
            time.sleep(0.3)
    finally:
        (policies / "trade.cedar").unlink()
    assert holding(result(agent.call(house.resource, "get_positions", token=reader.token))) != before, "and now it was"
    assert agent.call(house.resource, "execute_trade", TRADE, token=grant.token).status == 403


@pytest.mark.parametrize("tool", ["get_positions", "execute_trade"])
def test_what_she_ends_while_the_policy_thinks_has_ended(tmp_path, tool):  # D-5 D-21
    engine, arguments = Engine(), TRADE if tool == "execute_trade" else {}
    house = housed(tmp_path / "up", {"pdp.url": engine.url, "pdp.timeout": 10000})
    try:
        agent, said = Agent(), []
        grant = agent.obtain(house.resource, tool, arguments, owner=house.owner)
        watcher = Agent()
        looking = watcher.obtain(house.resource, "get_positions", owner=house.owner)
        before = holding(result(watcher.call(house.resource, "get_positions", token=looking.token)))
        asked, engine.pause = len(engine.asked), 3
        calling = threading.Thread(target=lambda: said.append(
            agent.call(house.resource, tool, arguments, token=grant.token)))
        calling.start()
        time.sleep(1)
        assert len(engine.asked) == asked + 1 and not said, "the policy is thinking"
        house.owner.revoke(agent.handle)
        calling.join(15)
        engine.pause = 0
        (response,) = said
        assert (response.status, response.json()["error"]) == (403, "access_revoked"), response
        assert holding(result(watcher.call(house.resource, "get_positions", token=looking.token))) == before
    finally:
        house.stop()
        engine.close()

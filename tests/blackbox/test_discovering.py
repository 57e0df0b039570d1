"""`sayso gateway` in front of servers it asks what there is: over stdio and HTTP, with `discover` in place of tools. What
the server changes is refused until she has seen it, and what it cannot be told is an error before anything is served."""

import json
import sys
import time
from contextlib import ExitStack

import pytest

from cast import result
from parties import Agent, Challenge
from stock import HERE, line, serving
from test_roles import refused
from town import PATIENCE, Town, free_port, unit

REALM = "shifty"
LOOK = {"name": "look", "description": "Looks.", "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}}}
ACT = {"name": "act", "description": "Acts.", "inputSchema": {"type": "object"}}


class Discovering(Town):
    """A town whose gateway is told where the server is and not what it offers."""

    def __init__(self, folder, over, stack):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "tools.json"
        self.offer(LOOK, ACT)
        command = [sys.executable, HERE / "servers/shifty.py", self.file]
        if over == "stdio":
            self.behind = {"upstream_stdio": line(*command), "upstream_env": ["LANG"]}
        else:
            port = free_port()
            self.behind = {"upstream": stack.enter_context(serving([*command, str(port)], port))}
        super().__init__(folder)
        self.gateway.write(self.gateway.settings | {"gateway.survey_interval": 1}, self.resource_tables())

    def resource_tables(self):
        return [("resource", {"path": "/mcp", "owner": "alice", "authority": self.issuer, "realm": REALM,
                              "discover": True, "single_use": ["act"], **self.behind})]

    def offer(self, *tools):
        new = self.file.with_name("new.json")
        new.write_text(json.dumps(tools))
        new.replace(self.file)

    def await_registry(self):
        self.until(lambda known: len(known) == 2)

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition(known := {entry["_id"]: entry for entry in self.owner.read("/resources")}):
            assert time.monotonic() < deadline, known
            time.sleep(0.1)

    def ran(self):
        record = self.file.with_name(self.file.name + ".ran")
        return record.read_text().split() if record.exists() else []


def governing(name, tool, scope, **terms):
    one = unit(name, "get_positions", **terms)
    return one | {"resources": [f"{REALM}/{tool}"], "terms": one["terms"] | {"scope": [scope]}}


class Older(Agent):
    """Speaks what the server speaks, outside a session."""

    def request(self, *arguments, version="2025-11-25", **more):
        return super().request(*arguments, version=version, **more)


@pytest.fixture
def agent():
    return Older()


UNITS = [governing("look", "look", "look:read"), governing("act", "act", "act:call", ask_me=True, per_operation=True)]


@pytest.fixture(params=["stdio", "http"])
def town(request, tmp_path):
    with ExitStack() as stack:
        town = Discovering(tmp_path / "town", request.param, stack)
        stack.callback(town.close)
        yield town.start(UNITS)


def test_what_the_server_lists_is_governed_and_served(town, agent):  # MCP-02
    agent.corroborate(town.resource, Challenge.of(agent.call(town.resource, "look")))
    grant = agent.obtain(town.resource, "look", owner=town.owner)
    result(agent.call(town.resource, "look", token=grant.token))
    # Named as single use here, whatever a grant says of itself.
    act = agent.obtain(town.resource, "act", {"now": 1}, owner=town.owner)
    result(agent.call(town.resource, "act", {"now": 1}, token=act.token))
    refused(agent.call(town.resource, "act", {"now": 1}, token=act.token), 403, "already_consumed")
    assert town.ran() == ["look", "act"]
    refused(agent.call(town.resource, "other", token=grant.token), 403, "unknown_tool")


def test_a_changed_tool_does_not_get_its_next_call(town, agent):
    grant = agent.obtain(town.resource, "look", owner=town.owner)
    result(agent.call(town.resource, "look", token=grant.token))
    town.offer(LOOK | {"inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}}, ACT)
    deadline = time.monotonic() + PATIENCE
    while (response := agent.call(town.resource, "look", token=grant.token)).status == 200:
        assert time.monotonic() < deadline, "the change was never seen"
        time.sleep(0.1)
    ran = town.ran()
    refused(response, 403, "tool_changed")
    assert town.ran() == ran


@pytest.mark.parametrize("tables, word", [
    ({"discover": False}, "discover"), ({"upstream": "http://127.0.0.1:9/mcp"}, "upstream_stdio"),
    ({"upstream_stdio": 'unbalanced "'}, "upstream_stdio"), ({"upstream_stdio": "LANG=C python3 x"}, "upstream_env"),
    ({"upstream_env": ["SURELY_NOT_SET"]}, "SURELY_NOT_SET"), ({"upstream_token_env": "HOME"}, "upstream_token_env"),
])
def test_what_cannot_be_is_said_at_the_start(tmp_path, tables, word):
    with ExitStack() as stack:
        town = Discovering(tmp_path / "town", "stdio", stack)
        stack.callback(town.close)
        (_, resource), = town.resource_tables()
        town.gateway.write(town.gateway.settings, [("resource", resource | tables)])
        with pytest.raises(pytest.fail.Exception, match="ended with") as failed:
            town.gateway.start()
        assert word in str(failed.value)

"""`sayso shim` with the clients of every stock SDK as they come, on a pipe and over HTTP: an owner who takes forty
seconds, one who never answers, one who says no, and a person who declines. Nothing is set but the address."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cast import TRADE, House, binary, environment
from shims import WAYS, Later, Listening
from stock import NODE

SDKS = ["typescript-v1", "typescript-v2", "python-legacy", "python-modern"]


class Call(threading.Thread):
    """A call in a process of its own, to its end."""

    def __init__(self, sdk, way, resource, folder, answers, *more):
        super().__init__()
        folder.mkdir(exist_ok=True)
        self.folder, self.shim, variables = folder, None, environment(folder)
        target = [str(binary()), "shim", resource, *map(str, more)]
        if way == "http":
            self.shim = Listening(resource, folder, *more)
            target, variables = [self.shim.url], variables | {"SECRET": self.shim.secret}
        kind, edition = sdk.split("-")
        program = ["node", NODE / "shim.mjs", edition] if kind == "typescript" else [sys.executable, __file__, edition]
        words = [*program, "execute_trade", json.dumps(TRADE), json.dumps(answers), *target]
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        env=variables, cwd=folder, text=True, start_new_session=True)
        self.began = time.monotonic()
        self.start()

    def run(self):
        self.output, _ = self.process.communicate(timeout=180)
        self.took = time.monotonic() - self.began

    def end(self):
        self.join()
        if self.shim:
            self.shim.kill()
        return json.loads(self.output)


    def cut(self):
        """Ends client and shim where they are."""
        os.killpg(self.process.pid, signal.SIGKILL)
        if self.shim:
            self.shim.kill()
        self.join()


def words(said):
    return "\n".join(part["text"] for part in said["result"]["content"])


class Many:
    """A house for each client, since each wants its owner to itself."""

    def __init__(self, folder):
        self.folder, self.houses = folder, []

    def house(self, name):
        folder = self.folder / name
        folder.mkdir()
        self.houses.append(House(folder))
        return self.houses[-1]


@pytest.fixture
def many(tmp_path):
    many = Many(tmp_path)
    yield many
    for house in many.houses:
        house.kill()


def all_at_once(many, answers, decision=None, after=0):
    calls = {}
    for sdk in SDKS:
        for way in WAYS:
            name = f"{sdk}-{way}"
            house = many.house(name)
            owner = decision and Later(house, decision, after)
            calls[name] = house, owner, Call(sdk, way, house.resource, house.folder / "agent", answers)
    return {name: (house, owner, call.end(), call.took) for name, (house, owner, call) in calls.items()}


# MCP-21, MCP-23, MCP-24
def test_an_owner_who_answers_after_forty_seconds(many):
    for name, (house, owner, said, took) in all_at_once(many, [True], "approved", after=40).items():
        assert set(said["tools"]) == {"get_positions", "get_transactions", "execute_trade"}, name
        assert "failed" not in said and not said["result"].get("isError"), (name, said)
        assert took > 39 and said["asked"][0]["name"] == "agree", (name, took)
        assert {asked["name"] for asked in said["asked"][1:]} == {"keep_waiting"}, name
        assert any("cannot be reached" in message for message in said["told"]), (name, said["told"])
        assert house.owner.kinds(owner.families[0]).count("touched") == 1, name


# MCP-21, MCP-23
def test_an_owner_who_never_answers(many):
    for name, (house, _, said, took) in all_at_once(many, [True]).items():
        assert "failed" not in said, (name, said)
        assert said["result"]["isError"] and "again with the same arguments" in words(said), (name, said)
        assert len(house.owner.pending()) == 1, name
        assert took < 170, (name, took)


def test_an_owner_who_says_no(many):
    for name, (_, _, said, _) in all_at_once(many, [True], "denied").items():
        assert "failed" not in said and "Denied by the owner" in words(said), (name, said)


# MCP-21, D-19
def test_a_shim_that_is_killed_while_the_owner_thinks(many):
    cut, again = {}, {}
    for sdk in SDKS:
        for way in WAYS:
            house = many.house(f"{sdk}-{way}")
            cut[sdk, way] = house, Call(sdk, way, house.resource, house.folder / "agent", [True])
    for (sdk, way), (house, call) in cut.items():
        deadline = time.monotonic() + 60
        while not (waiting := house.owner.pending()):
            assert time.monotonic() < deadline and call.process.poll() is None, (sdk, way)
            time.sleep(0.1)
        call.cut()
        (family,) = waiting
        house.owner.decide(family, "approved")
        again[sdk, way] = house, family, Call(sdk, way, house.resource, house.folder / "agent", [True])
    for name, (house, family, call) in again.items():
        said = call.end()
        assert "failed" not in said and not said["result"].get("isError"), (name, said)
        assert "agree" not in [asked["name"] for asked in said["asked"]], (name, "she and her terms were answered already")
        assert house.owner.kinds(family).count("touched") == 1 and not house.owner.pending(), name


@pytest.mark.parametrize("answer", [False, "decline"])
def test_a_person_who_says_no(many, answer):
    for name, (house, _, said, _) in all_at_once(many, [answer]).items():
        assert "failed" not in said and "declined" in words(said), (name, said)
        assert not house.owner.pending(), name


async def python(edition, tool, arguments, answers, target, *rest):
    """The same as shim.mjs, with the Python SDK."""
    import httpx2
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    from shims import Person, client

    if target.startswith("http"):
        headers = {"authorization": f"Bearer {os.environ['SECRET']}"}
        server = streamable_http_client(target, http_client=httpx2.AsyncClient(headers=headers, timeout=120))
    else:
        server = StdioServerParameters(command=target, args=list(rest), env=dict(os.environ))
    person = Person(*json.loads(answers))
    async with client(server, "legacy" if edition == "legacy" else "auto", person) as connected:
        tools = [one.name for one in (await connected.list_tools()).tools]
        result = await connected.call_tool(tool, json.loads(arguments), progress_callback=person.progressed)
    asked = [{"name": name, "message": shown.message} for name, shown in zip(person.questions, person.shown)]
    print(json.dumps({"tools": tools, "asked": asked, "told": [message for _, message in person.progress],
                      "result": json.loads(result.model_dump_json(by_alias=True))}))


if __name__ == "__main__":
    asyncio.run(python(*sys.argv[1:]))

"""Servers and clients written by others, and `sayso up` in front of one: what a test needs to start each and to ask
each. Nothing here knows UMA; what is asserted is in the tests."""

import asyncio
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cast import House, binary, environment
from town import free_port

HERE = Path(__file__).parent
NODE = HERE / "node"
PATIENCE = 30


def package(name, script="dist/index.js"):
    return str(NODE / "node_modules/@modelcontextprotocol" / name / script)


def line(*words):
    return shlex.join(map(str, words))


@contextmanager
def serving(command, port, **variables):
    """A server of its own, until the end."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=os.environ | variables)
    try:
        deadline = time.monotonic() + PATIENCE
        while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            assert process.poll() is None, f"{command} ended with {process.poll()}"
            assert time.monotonic() < deadline, f"{command} never listened"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(15)


class Front(House):
    """`sayso up` in front of a server somebody else wrote, with the commands its owner and an agent type."""

    def __init__(self, folder, *arguments, **variables):
        self.variables = variables
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, *arguments)

    @classmethod
    @contextmanager
    def running(cls, *arguments, **variables):
        """One that is ended, whatever happens."""
        front = cls(*arguments, **variables)
        try:
            yield front
        finally:
            front.kill()

    def type(self, *words, home="agent"):
        """Runs a command of the program to its end."""
        folder = self.folder / home
        folder.mkdir(exist_ok=True)
        return subprocess.run([binary(), *map(str, words)], env=environment(folder), cwd=folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def tools(self):
        done = self.type("agent", "tools", self.resource, "--json")
        assert done.returncode == 0, done
        return [tool["name"] for tool in tools_of(json.loads(done.stdout))]

    def call(self, tool, arguments=None, *, wait=0, home="agent"):
        """A call with the terms accepted; what waits for her is not waited for."""
        return self.type("agent", "call", self.resource, tool, "--args", json.dumps(arguments or {}), "--accept-terms",
                         "--wait", wait, home=home)

    def say(self, *words):
        """A command of hers."""
        return self.type("owner", *words, "--data", self.data, home="owner")

    def answer(self, decision):
        """Answers the one request that waits."""
        (family,) = self.owner.pending()
        done = self.say(decision, family)
        assert done.returncode == 0, done

    def obtain(self, tool, arguments=None, home="agent"):
        """The whole dance, to the result on stdout."""
        waiting = self.call(tool, arguments, home=home)
        assert waiting.returncode == 5, waiting
        self.answer("approve")
        done = self.call(tool, arguments, wait=20, home=home)
        assert done.returncode == 0, done
        return done.stdout

    def resources(self):
        return {entry["_id"]: entry for entry in self.owner.read("/resources")}


def tools_of(value):
    return value["tools"] if isinstance(value, dict) else value


@dataclass
class Server:
    """A server somebody else wrote. `ask` is a call of hers to approve and a piece of its answer; `deny` another to
    refuse. `{folder}` and `{port}` stand for what each run gives it."""

    name: str
    realm: str
    command: list
    ask: tuple
    deny: tuple
    offers: set = field(default_factory=set)
    http: bool = False
    variables: dict = field(default_factory=dict)

    @contextmanager
    def served(self, folder):
        """The flags that put `up` in front of it, while it can be reached."""
        assert (NODE / "node_modules").is_dir(), f"run `npm ci` in {NODE} first, or ./test, which does"
        if not self.http:
            yield ("--upstream-stdio", line(*self.words(folder)))
            return
        port = free_port()
        variables = {name: value.format(port=port) for name, value in self.variables.items()}
        with serving(self.words(folder, port), port, **variables) as url:
            yield ("--upstream", url)

    def words(self, folder, port=0):
        return [str(word).format(folder=folder, port=port) for word in self.command]


EVERYTHING = {"realm": "mcp-servers-everything", "offers": {"echo", "get-sum", "get-env", "get-tiny-image"},
              "ask": ("echo", {"message": "it was agreed"}, "Echo: it was agreed"), "deny": ("get-sum", {"a": 1, "b": 2})}
WORDBOOK = {"realm": "word-book", "offers": {"look_up", "add_word"}, "deny": ("look_up", {"word": "say"}),
            "ask": ("add_word", {"word": "ja", "meaning": "yes"}, "ja: yes, now 3 words")}
SERVERS = [
    Server("everything-stdio", command=["node", package("server-everything"), "stdio"], **EVERYTHING),
    Server("everything-http", command=["node", package("server-everything"), "streamableHttp"], http=True,
           variables={"PORT": "{port}"}, **EVERYTHING),
    Server("filesystem-stdio", realm="secure-filesystem-server", command=["node", package("server-filesystem"), "{folder}"],
           ask=("write_file", {"path": "{folder}/letter.txt", "content": "Dear Bob"}, "Successfully wrote"),
           deny=("list_directory", {"path": "{folder}"}), offers={"read_text_file", "write_file", "list_directory"}),
    Server("python-stdio", command=[sys.executable, HERE / "servers/wordbook.py"], **WORDBOOK),
    Server("python-http", command=[sys.executable, HERE / "servers/wordbook.py", "{port}"], http=True, **WORDBOOK),
]


def node(*words):
    """What clients.mjs prints."""
    done = subprocess.run(["node", NODE / "clients.mjs", *map(str, words)], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def python_tools(url):
    """What the Python SDK's client lists."""
    from mcp import Client

    async def listed():
        async with Client(url) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    return asyncio.run(asyncio.wait_for(listed(), PATIENCE))


STOCK = {
    "python": python_tools,
    "typescript-v1": lambda url: node("v1", "list", url)["tools"],
    "typescript-v2": lambda url: node("v2", "list", url)["tools"],
}

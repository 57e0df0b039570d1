"""The house under test and its fixtures: `sayso up` as a subprocess on a fresh data folder, with its owner at
hand. It is stopped, killed and started again only through its own process id. What a test expects of the demo
vault is here too, so that the vault's shape is known in one place."""

import json
import os
import select
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from parties import Agent, Owner, ResourceServer, metadata_of
from wire import Key

ROOT = Path(__file__).resolve().parents[2]
REALM = "alice-vault"
SCOPES = {"get_positions": "positions:read", "get_transactions": "transactions:read",
          "execute_trade": "trades:execute"}
TRADE = {"symbol": "VTI", "side": "buy", "quantity": 3}


def binary():
    named = os.environ.get("SAYSO_BIN")
    candidates = [Path(named)] if named else [ROOT / "target/release/sayso", ROOT / "target/debug/sayso"]
    for path in candidates:
        if path.is_file():
            return path.resolve()
    pytest.fail(f"no sayso binary at {', '.join(map(str, candidates))}: build it or set SAYSO_BIN")


def environment(home):
    """Ours without settings of the program."""
    return {k: v for k, v in os.environ.items() if not k.startswith("SAYSO_")} | {"HOME": str(home)}


class Process:
    """One running `sayso`, known by its ready line and ended only by its own id."""

    variables = {}

    def __init__(self, folder, log):
        self.folder, self.log, self.process, self.ready = folder, log, None, None

    def launch(self, *arguments):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([binary(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=log, cwd=self.folder,
                                            env=environment(self.folder) | self.variables)
        self.ready = self._ready_line()

    def _ready_line(self):
        line, deadline = b"", time.monotonic() + 30
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                self.kill()
                pytest.fail(f"not ready within 30 s\n{self.logged()}")
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                pytest.fail(f"ended with {self.process.wait(10)} before it was ready\n{self.logged()}")
            line += byte
        ready = json.loads(line)
        assert ready["ready"] is True
        return ready

    def logged(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        """The polite end: it leaves by itself, and stdout carried the ready line alone."""
        if self.process.poll() is None:
            self.process.terminate()
        status, rest = self.process.wait(15), self.process.stdout.read()
        self.process.stdout.close()
        assert rest == b"", rest
        return status

    def kill(self):
        self.process.kill()
        self.process.wait(15)
        self.process.stdout.close()

    def memory_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


class House(Process):
    """One `sayso up`. Its ports are free ones at first and stay the same over every restart."""

    def __init__(self, folder, *arguments):
        super().__init__(folder, folder / "stderr.log")
        self.data, self.arguments = folder / "data", arguments
        self.listen = ("127.0.0.1:0", "127.0.0.1:0")
        self.start()

    def start(self):
        authority, gateway = self.listen
        self.launch("up", "--data", self.data, "--authority", authority, "--gateway", gateway, "--json",
                    *self.arguments)
        self.authority, self.gateway = self.ready["authority"], self.ready["gateway"]
        self.resource, self.owner_name = self.ready["resource"], self.ready["owner"]
        self.listen = (urlsplit(self.authority).netloc, urlsplit(self.gateway).netloc)
        self.metadata = metadata_of(self.authority)
        self.owner = Owner(self.authority, Key.from_pem(self.ready["owner_key"]))

    def restart(self):
        """kill -9 and back on the same data, at the same addresses."""
        before = self.ready
        self.kill()
        self.start()
        assert {k: self.ready[k] for k in ("authority", "gateway", "resource", "owner", "owner_key")} == \
               {k: before[k] for k in ("authority", "gateway", "resource", "owner", "owner_key")}

    def resource_server(self):
        """The protection API as its own gateway uses it, with the key that gateway generated."""
        return ResourceServer(self.authority, self.gateway, Key.from_pem(self.data / "keys/gateway.pem"))


def result(response):
    """The tool's result of a call that went through."""
    assert response.status == 200, response
    message = response.message()
    assert "error" not in message, message
    assert not message["result"].get("isError"), message
    return message["result"]


def holding(positions, symbol=TRADE["symbol"]):
    """How many of a symbol a get_positions result shows: structured content, or JSON in its text."""
    content = positions.get("structuredContent")
    if content is None:
        content = [json.loads(part["text"]) for part in positions["content"] if part["type"] == "text"]
    rows = [row for row in _objects(content) if row.get("symbol") == symbol]
    assert rows, f"{symbol} is not in {content}"
    return rows[0]["quantity"]


def _objects(value):
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _objects(item)


class Armed:
    """An agent with a reusable grant and an unspent single-use one, and the proof that a refusal touched neither."""

    def __init__(self, house):
        self.house, self.resource, self.owner = house, house.resource, house.owner
        self.agent = Agent()
        self.positions = self.agent.obtain(self.resource, "get_positions", owner=self.owner)
        self.trade = self.agent.obtain(self.resource, "execute_trade", TRADE, owner=self.owner)
        self.server = house.resource_server()

    def read(self, **changes):
        """A signed get_positions with the reusable grant, altered as asked."""
        changes.setdefault("token", self.positions.token)
        return self.agent.call(self.resource, "get_positions", **changes)

    def spend(self, arguments=None, **changes):
        """A signed execute_trade with the single-use grant, altered as asked."""
        changes.setdefault("token", self.trade.token)
        return self.agent.call(self.resource, "execute_trade", TRADE if arguments is None else arguments, **changes)

    def rows(self):
        return [(row["seq"], row["kind"], row["family"]) for row in self.owner.ledger()]

    def untouched(self):
        return Untouched(self)


class Untouched:
    """Around a hostile request: no new row in her ledger, nobody new at her door, the single-use grant unspent, the
    reusable grant still good, the vault as it was."""

    def __init__(self, armed):
        self.armed = armed

    def _look(self):
        armed = self.armed
        return armed.rows(), sorted(armed.owner.pending()), sorted(armed.owner.connections())

    def __enter__(self):
        self.vault = holding(result(self.armed.read()))
        self.before = self._look()

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        assert self._look() == self.before, "the refusal left a trace"
        assert self.armed.server.state(self.armed.trade.token) is True, "the refusal spent the grant"
        assert holding(result(self.armed.read())) == self.vault, "the refusal reached the vault"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """One house for a whole module."""
    house = House(tmp_path_factory.mktemp("house"))
    yield house
    house.stop()


@pytest.fixture
def lone_house(tmp_path):
    """A house of one's own, to kill."""
    house = House(tmp_path)
    yield house
    house.kill()


@pytest.fixture(scope="module")
def armed(house):
    return Armed(house)


@pytest.fixture
def agent():
    """Nobody has seen this one."""
    return Agent()

"""A shim that is killed anywhere: what was agreed to stays, what she decided is not asked again, and nothing runs twice."""

import json
import subprocess
import threading
import time

import pytest

from cast import TRADE, House, binary, environment
from shims import Listening, Person, client, run, text_of

MOMENTS = [0.05 * step for step in range(1, 16)] + [1.0, 1.3, 1.6, 2.0, 2.5]


class Willing(threading.Thread):
    """The owner, letting everything through as soon as she sees it, and remembering what."""

    def __init__(self, house):
        super().__init__(daemon=True)
        self.house, self.approved, self.ended = house, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.1):
            for family, asked in self.house.owner.pending().items():
                self.house.owner.decide(family, "approved")
                self.approved.append(asked)


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.kill()


def receipts(folder):
    done = subprocess.run([binary(), "agent", "receipts", "--json"], env=environment(folder), cwd=folder, text=True,
                          capture_output=True, timeout=30)
    assert done.returncode == 0, done
    return {kept["family"] for kept in json.loads(done.stdout)}


async def trade(shim, quantity):
    async with client(shim.transport(), "auto", Person(True)) as connected:
        return await connected.call_tool("execute_trade", TRADE | {"quantity": quantity})


def killed_in(shim, moment, quantity):
    """Whether the call came through before the kill."""
    killer = threading.Timer(moment, shim.process.kill)
    killer.start()
    try:
        return not run(trade(shim, quantity)).is_error
    except Exception:
        return False
    finally:
        killer.join()


# D-14, D-19, CORE-42
def test_whatever_moment_it_is_killed_at(house, tmp_path):
    folder = tmp_path / "agent"
    shim, owner = Listening(house.resource, folder, "--hold", 1), Willing(house)
    try:
        for step, moment in enumerate(MOMENTS):
            quantity = 1000 + step
            through = killed_in(shim, moment, quantity)
            before, asked = receipts(folder), len(owner.approved)
            ran = touched(house, quantity)
            shim.process.wait(15)
            shim.start()
            if through:
                assert ran == 1, moment
                continue
            result = run(trade(shim, quantity))
            assert not result.is_error, (moment, text_of(result))
            assert before <= receipts(folder), "a receipt was lost"
            assert touched(house, quantity) == ran + 1, moment
            times = [one for one in owner.approved if one["operation"]["params"]["quantity"] == quantity]
            # Her yes is good for one execution; one that ran already is hers to give again.
            assert len(times) == ran + 1, (moment, ran, times)
            assert len(owner.approved) - asked <= 1
    finally:
        owner.ended.set()
        owner.join()
        shim.kill()


def touched(house, quantity):
    """How often the trade of this many ran, as the vault itself wrote down."""
    book = json.loads((house.data / "vault/vault.json").read_text())
    return json.dumps(book).count(f'"quantity": {quantity},') + json.dumps(book).count(f'"quantity": {quantity}}}')

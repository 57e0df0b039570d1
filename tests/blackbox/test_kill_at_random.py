"""Agents negotiate and trade without pause while authority and gateway are killed under them, now one and now the
other. Afterwards the record is held against what each caller was told, and the server's own count against both."""

import random
import threading
import time

import pytest

from cast import TRADE, result
from checker import Race, row_of
from parties import Agent, Challenge, Negotiation
from town import Town

SECONDS = 10
AGENTS = 6


@pytest.fixture
def town(tmp_path):
    with Town.running(tmp_path, valve=True) as town:
        yield town


class Trader:
    """One agent, and an owner who approves whatever it asks, from order to order."""

    def __init__(self, town, race, number):
        self.town, self.race, self.number, self.orders = town, race, number, {}
        self.agent = Agent()
        self.agent.obtain(town.resource, "get_positions", owner=town.owner)

    def until(self, deadline):
        count = 0
        while time.monotonic() < deadline:
            count += 1
            self.once(TRADE | {"quantity": self.number * 10000 + count})

    def tell(self, intent, family, act):
        return self.race.note(intent, family, self.number, act)

    def once(self, order):
        """One order to its end, or to where somebody did not answer."""
        call = self.tell("call", None, lambda: self.agent.call(self.town.resource, "execute_trade", order))
        if call.status != 401:
            assert call.status in (None, 503), call
            return
        challenge = Challenge.of(call.response)
        negotiation = Negotiation.__new__(Negotiation)
        negotiation.agent, negotiation.issuer, negotiation.metadata = self.agent, challenge.as_uri, self.town.metadata
        negotiation.operation = {"tool": "execute_trade", "params": order}
        negotiation.tickets = [challenge.ticket]
        if self.tell("open", None, negotiation.ask).status != 403:
            return
        family = negotiation.family
        row = dict(family=family, handle=self.agent.handle)
        commit = self.tell("commit", family, negotiation.commit)
        commit.rows = [row_of("promised", by="agent", **row)]
        if commit.status != 403:
            assert commit.status is None, commit
            return
        decided = self.tell("decide", family, lambda: self.town.owner.answer(family, "approved"))
        decided.rows = [row_of("approved", by=("owner", self.town.owner.key.thumbprint), **row)]
        if decided.status != 200:
            assert decided.status is None, decided
            return
        claim = self.tell("claim", family, negotiation.present)
        if claim.status != 200:
            assert claim.status is None, claim
            return
        self.trade(family, order, claim.json()["access_token"], row)

    def trade(self, family, order, token, row):
        trade = self.tell("trade", family, lambda: self.agent.call(self.town.resource, "execute_trade", order,
                                                                   token=token))
        trade.rows = [row_of("touched", by=("resource_server", self.town.url), **row)]
        self.orders[family] = order["quantity"], trade
        if trade.status == 503:
            if not trade.json().get("spent", False):
                trade.rows = []
            trade.response = None  # Nobody knows is no answer.
        elif trade.status is not None:
            result(trade.response)


def kill_now_and_then(town, deadline, kills):
    while time.monotonic() < deadline:
        time.sleep(random.uniform(0.2, 0.9))
        role = random.choice([town.authority, town.authority, town.gateway])
        role.restart()
        kills.append(role.kind)


def test_killed_at_random(town):  # CORE-89 CORE-94 CORE-95
    race = Race(town.owner, None)
    traders = [Trader(town, race, number) for number in range(1, AGENTS + 1)]
    race.start, kills, faults = len(town.owner.ledger()), [], []
    deadline = time.monotonic() + SECONDS

    def guarded(act, *arguments):
        try:
            act(*arguments)
        except Exception as fault:  # Re-raised below: a thread's own exception would be lost.
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(trader.until, deadline)) for trader in traders]
    threads.append(threading.Thread(target=guarded, args=(kill_now_and_then, town, deadline, kills)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    race.accounts()
    rows = {row["family"] for row in race.record() if row["kind"] == "touched"}
    ran = [body for body in town.canary.bodies if b"execute_trade" in body]
    for trader in traders:
        for family, (quantity, trade) in trader.orders.items():
            times = len([body for body in ran if b'"quantity": %d}' % quantity in body])
            assert times <= 1, f"the order of {quantity} ran {times} times"
            assert times == 1 or trade.status != 200, "told a result of a call that never ran"
            assert times == 0 or family in rows, "it ran, and her record does not know"
    done = [told for told in race.of("trade") if told.status == 200]
    assert len(kills) > 5 and len(done) > 5, (kills, len(done))
    assert [told for told in race.told if told.status is None], "nobody was ever interrupted"

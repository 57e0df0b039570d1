"""What storage does to other implementations, done here: writers that sleep, readers that stay, checkpoints, a full
disk. Nobody is told of a fault of the store but by a 503, and what was said to be spent is spent."""

import re
import shutil
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import cast
from cast import TRADE, Armed, result
from parties import Agent, Challenge, Negotiation
from town import Town

SPENDERS = 6


def spendable(owner, resource, agent, count, first=1):
    """Unspent grants, each for one trade of its own."""
    grants = []
    for number in range(count):
        arguments = TRADE | {"quantity": first + number}
        grants.append(agent.obtain(resource, "execute_trade", arguments, owner=owner))
    return grants


def fresh(house):
    challenge = Challenge.of(Agent().call(house.resource, "get_positions"))
    return Negotiation(Agent(), challenge.as_uri, challenge.ticket, {})


def test_a_busy_store_is_waited_for(lone_house):
    """Under load, somebody else's transactions on the same file: a snapshot that stays open, a writer that sleeps
    twice, checkpoints in between. Everybody gets a plain answer, and each grant is spent once."""
    house, armed = lone_house, Armed(lone_house)
    agent, server = armed.agent, armed.server
    grants = spendable(house.owner, house.resource, agent, SPENDERS, first=20)
    answers, spent, stop = [], [], threading.Event()

    def load(number):
        acts = [lambda: server.perm(f"{cast.REALM}/get_positions", ["positions:read"]),
                lambda: server.introspect(armed.positions.token), lambda: armed.read(), lambda: armed.read(token=None),
                lambda: house.owner.request("GET", "/pending"), lambda: house.owner.request("GET", "/ledger"),
                lambda: Negotiation(agent, house.authority, "x", {}).present(), lambda: fresh(house).present()]
        while not stop.is_set():
            answers.append(acts[number % len(acts)]())
            number += 1

    def spend(grant):
        time.sleep(0.2)
        spent.append((grant.token, server.consume(grant.token)))

    path = house.data / "sayso.db"
    with ThreadPoolExecutor(16 + 3 * SPENDERS) as pool, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ledger").fetchone()
        running = [pool.submit(load, number) for number in range(16)]
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as writer:
            for grant_set in (grants[::2], grants[1::2]):
                writer.execute("BEGIN IMMEDIATE")
                running += [pool.submit(spend, grant) for grant in grant_set for _ in range(3)]
                time.sleep(1.2)
                writer.execute("ROLLBACK")
                writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
                time.sleep(0.5)
            reader.execute("COMMIT")
            writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        stop.set()
        for one in running:
            one.result()
    assert len(answers) > 100
    for response in [*answers, *(response for _, response in spent)]:
        assert response.status < 500, response
        text = response.body.decode().lower()
        # As words: letters drawn at random spell anything in time.
        assert not re.search(r"(?<![\w-])(locked|sqlite|no such table|busy)(?![\w-])", text), response
    won = Counter(token for token, response in spent if response.json()["consumed"])
    assert won == {grant.token: 1 for grant in grants}
    assert {response.json().get("error") for _, response in spent} == {None, "already_consumed"}


# ---- a full disk -----------------------------------------------------------------------------------------------------

SMALL = "exec unshare -rm sh -c 'mount -t tmpfs -o size=4m none {disk} && exec \"$0\" \"$@\"' {binary} \"$@\"\n"


def small_disk(disk, program):
    """A program of the same name that sees a disk of four megabytes at this place."""
    program.write_text("#!/bin/sh\n" + SMALL.format(disk=disk, binary=cast.binary()))
    program.chmod(0o755)
    return program


@pytest.fixture
def cramped(tmp_path, monkeypatch):
    """A town whose authority keeps its store on a disk of its own, and that disk as it is seen from here."""
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if probe.returncode:
        pytest.skip("this system lets nobody have a file system of his own")
    disk = tmp_path / "disk"
    disk.mkdir()
    program, plain = small_disk(disk, tmp_path / "sayso"), cast.binary()
    town = Town(tmp_path / "town", settings={"store.url": f"sqlite:{disk / 'sayso.db'}"})
    try:
        town.gateway.start()
        monkeypatch.setattr(cast, "binary", lambda: program)
        town.authority.start()
        monkeypatch.setattr(cast, "binary", lambda: plain)
        town.settle()
        yield town, Path(f"/proc/{town.authority.process.pid}/root{disk}")
    finally:
        town.close()


def fill(disk):
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return filler


def test_a_full_disk_spends_nothing_it_does_not_say(cramped, tmp_path):
    town, disk = cramped
    agent, server = Agent(), town.resource_server()
    read = agent.obtain(town.resource, "get_positions", owner=town.owner)
    grants = spendable(town.owner, town.resource, agent, SPENDERS)
    server.introspect(read.token)
    filler, calls, told = fill(disk), town.canary.calls(), {}
    # Until what was free within its own files is used up as well.
    while len(told) < len(grants) - 2:
        grant = grants[len(told)]
        response = server.consume(grant.token)
        told[grant.token] = response.status == 200 and response.json()["consumed"]
        assert told[grant.token] or response.status == 503, response
        for _ in range(20):
            assert agent.call(town.resource, "get_positions", token=read.token).status in (200, 503)
    refused = [agent.call(town.resource, "get_positions", token=read.token),
               agent.call(town.resource, "execute_trade", TRADE | {"quantity": SPENDERS}, token=grants[-1].token)]
    for response in refused:
        assert (response.status, response.json()["error"]) == (503, "temporarily_unavailable"), response
        assert response.all("www-authenticate") == []
    assert not all(told.values()), "the disk never was full"
    assert town.canary.calls("execute_trade") == 0 and town.canary.calls() >= calls
    assert "SQLITE" not in refused[0].body.decode() and "disk" not in refused[0].body.decode()

    filler.unlink()
    for token, consumed in told.items():
        assert server.state(token) == ("already_consumed" if consumed else True)
        assert consumed or server.consume(token).json()["consumed"]
    result(agent.call(town.resource, "get_positions", token=read.token))
    assert Challenge.of(Agent().call(town.resource, "get_positions")).ticket
    for file in disk.glob("sayso.db*"):
        shutil.copy(file, tmp_path / file.name)
    with closing(sqlite3.connect(tmp_path / "sayso.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)

"""A person at a client of the shim who stops waiting, or never heard that there is nothing to wait for any more."""

import asyncio
import sys
import time

import pytest

from shims import WAYS, Person, client, run, shim, text_of
from stock import HERE, Front, serving
from town import free_port


@pytest.fixture
def front(tmp_path):
    book, port = tmp_path / "book", free_port()
    book.touch()
    with serving([sys.executable, str(HERE / "servers/slow.py"), str(book), str(port)], port) as url, \
            Front.running(tmp_path / "house", "--upstream", url) as front:
        front.book = book
        yield front


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_runs_is_not_said_to_have_been_stopped(front, tmp_path, way):  # D-14, CORE-42
    """She says yes while the client still asks its person whether to go on; the person says no a moment after the call
    went out. The question has no object any more: the call is made, and its answer is what the client gets."""

    def approve():
        deadline = time.monotonic() + 20
        while not (waiting := front.owner.pending()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (family,) = waiting
        front.owner.decide(family, "approved")
        while not front.book.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    async def too_late(_params):
        await asyncio.to_thread(approve)
        return False

    async def pay(server):
        async with client(server, "legacy", Person(True, too_late)) as connected:
            return await connected.call_tool("pay", {"to": "bob"})

    with shim(way, front.resource, tmp_path / "agent", "--hold", 2) as server:
        result = run(pay(server()))
    assert not result.is_error and text_of(result) == "paid", text_of(result)
    assert front.book.read_text() == "begun\n"
    assert [row["kind"] for row in front.owner.ledger()].count("touched") == 1

"""MCP's official conformance suite says what the shim does to a server behind it: the same checks with the same outcomes
as directly, but for those listed here with a reason each."""

import pytest

from shims import Listening, port_to
from suite import REVISIONS, run, served

TASKED = "that its client knows tasks is never passed on, so no call is run as one"
# What comes out otherwise than directly, and why. Everything else is the same.
OTHERWISE = {"2025-11-25": {}, "2026-07-28": {f"tasks-{name}": TASKED for name in (
    "capability-negotiation", "dispatch-and-envelope", "lifecycle", "mrtr-composition", "mrtr-input", "request-headers",
    "request-state-removal", "wire-fields")}}


@pytest.fixture(scope="module")
def server():
    with served() as url:
        yield url


@pytest.fixture(scope="module")
def through(server, tmp_path_factory):
    """The suite knows no secrets, so it comes in by a socket."""
    folder = tmp_path_factory.mktemp("shim")
    shim = Listening(server, folder / "agent", listen=f"unix:{folder / 's'}")
    try:
        with port_to(folder / "s") as port:
            yield f"http://127.0.0.1:{port}/mcp"
    finally:
        shim.kill()


@pytest.mark.parametrize("revision", REVISIONS)
def test_through_the_shim_it_is_the_same(server, through, tmp_path, revision):  # D-6 D-12
    alone, found = run(server, revision, tmp_path / "alone"), run(through, revision, tmp_path / "through")
    changed = (found.checks - alone.checks) + (alone.checks - found.checks)
    otherwise = {scenario for scenario, _, _ in changed}
    assert otherwise == set(OTHERWISE[revision]), found.said_of(otherwise ^ set(OTHERWISE[revision]))

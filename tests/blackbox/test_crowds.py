"""Many at once, and who is kept out by them: idle connections by the thousand, sessions that nobody uses, and one source
that takes what it can get. A stranger comes from one address and a known agent from another, or from the same."""

import json
import resource as limits
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cast import Armed, result
from stock import HERE, Front, line, serving
from town import free_port
from wire import LEGACY, mcp_body, mcp_headers

WANTED = 10_000
STRANGER, KNOWN = "127.0.0.2", "127.0.0.1"


def descriptors():
    """As many as the system lets this process have, but for those it needs itself."""
    soft, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    wanted = WANTED + 500 if hard == limits.RLIM_INFINITY else min(WANTED + 500, hard)
    if soft < wanted:
        limits.setrlimit(limits.RLIMIT_NOFILE, (wanted, hard))
    return wanted - 500


def post(url, body, source=KNOWN, lines=(), version=LEGACY):
    """One request from an address of this machine, and its status, headers and body."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=40, source_address=(source, 0)) as stream:
        head = [("Host", parts.netloc), *mcp_headers(json.loads(body)["method"], version=version),
                ("Content-Length", str(len(body))), ("Connection", "close"), *lines]
        text = f"POST {parts.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head) + "\r\n"
        stream.sendall(text.encode() + body)
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
    head, _, said = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    return int(first.split()[1]), {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}, said


INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def begin(url, source):
    """A session, or the status it was refused with."""
    status, headers, _ = post(url, mcp_body("initialize", INITIALIZE, version=LEGACY), source)
    return headers.get("mcp-session-id") if status == 200 else status


def lives(url, session, source):
    status, _, _ = post(url, mcp_body("tools/list", version=LEGACY), source, [("Mcp-Session-Id", session)])
    return status


@pytest.mark.parametrize("source, half", [(STRANGER, b""), (KNOWN, b"POST /mcp HTTP/1.1\r\nHost: a")],
                         ids=["silent, from elsewhere", "half a head, from where the agent is"])
def test_ten_thousand_idle_connections(house, source, half):
    """The listener is full many times over, a known agent is answered at once all the same, and memory is bounded."""
    armed, parts = Armed(house), urlsplit(house.resource)
    count, before, held = descriptors(), house.memory_mb(), []
    try:
        for n in range(count):
            stream = socket.create_connection((parts.hostname, parts.port), timeout=10, source_address=(source, 0))
            stream.sendall(half) if half else None
            held.append(stream)
            if n % 2500 == 2499:
                begun = time.monotonic()
                assert result(armed.read())
                assert time.monotonic() - begun < 5
        assert armed.spend().status == 200
        grown = house.memory_mb() - before
        assert grown < 150, f"{grown} MiB for {count} connections"
    finally:
        for stream in held:
            stream.close()
    assert result(armed.read()), "and afterwards"


def children(process):
    """The servers that were started for sessions, or are still being ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process.pid and fields[0] != "Z":
            found.append(entry.parent.name)
    return found


@pytest.fixture(scope="module")
def child_front(tmp_path_factory):
    command = line(sys.executable, Path(__file__).parent / "servers/plain.py")
    with Front.running(tmp_path_factory.mktemp("children"), "--upstream-stdio", command) as front:
        yield front


@pytest.fixture(scope="module")
def http_front(tmp_path_factory):
    port = free_port()
    with serving([sys.executable, str(HERE / "servers/plain.py"), str(port)], port) as url, \
            Front.running(tmp_path_factory.mktemp("http"), "--upstream", url) as front:
        yield front


def test_a_stranger_does_not_start_every_child(child_front):  # D-31
    """Sixty sessions from one address: fewer children than there are places, and a session from elsewhere, opened before
    and used by nobody yet, is still there."""
    front = child_front
    known = begin(front.resource, KNOWN)
    assert isinstance(known, str) and lives(front.resource, known, KNOWN) == 200
    strays = [begin(front.resource, STRANGER) for _ in range(60)]
    opened = [session for session in strays if isinstance(session, str)]
    assert opened and lives(front.resource, known, KNOWN) == 200
    alive = [session for session in opened if lives(front.resource, session, STRANGER) == 200]
    assert 0 < len(alive) <= 24, len(alive)
    time.sleep(3)
    assert len(children(front.process)) <= 24 + 1 + 2, "with that of the known one, and those of nobody's"
    others = [begin(front.resource, f"127.0.0.{n}") for n in range(3, 8)]
    assert all(isinstance(session, str) for session in others), others
    assert lives(front.resource, known, KNOWN) == 200


def test_a_stranger_does_not_take_every_session(http_front):  # D-13
    """The same before a server over HTTP, where there are more places than a test opens: nothing of another source's
    goes, and the one that was opened before is still there."""
    front = http_front
    known = begin(front.resource, KNOWN)
    assert all(isinstance(begin(front.resource, STRANGER), str) for _ in range(200))
    assert lives(front.resource, known, KNOWN) == 200
    assert lives(front.resource, "x" * 43, KNOWN) == 404

"""Ways past the gateway that are not in the message: how a request is framed, where it is sent, what rides beside
it, when its sender hangs up, and what a flood leaves behind. Every refusal stands between two looks at what must
not have moved (`Untouched`)."""

import re
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

import pytest

import cast
from cast import TRADE, Armed, House, holding, result
from parties import Agent, Challenge
from wire import mcp_body, mcp_headers, send, sign, spoken, statuses

MIB = 1 << 20


# ---- bytes as they are -----------------------------------------------------------------------------------------------


def trade(armed, target="/mcp", verb="POST", version="HTTP/1.1", extra=(), framing=None, body=None, host=None):
    """The honest single call, signed for where it is sent; only its shape on the wire is what a test alters."""
    parts = urlsplit(armed.resource)
    sent = mcp_body("tools/call", {"name": "execute_trade", "arguments": TRADE})
    url = f"{parts.scheme}://{parts.netloc}{target if target.startswith('/') else '/mcp'}"
    lines = [("Host", host or parts.netloc), *mcp_headers("tools/call", "execute_trade"),
             ("Authorization", f"PoP {armed.trade.token}")]
    lines += sign(armed.agent.key, verb, url, lines, sent)
    lines += [("Content-Length", str(len(sent)))] if framing is None else framing
    head = f"{verb} {target} {version}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in [*lines, *extra])
    return head.encode("latin-1") + b"\r\n" + (sent if body is None else body(sent))


def listing(armed):
    body = mcp_body("tools/list")
    lines = [("Host", urlsplit(armed.resource).netloc), *mcp_headers("tools/list"), ("Content-Length", str(len(body)))]
    return ("POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines) + "\r\n").encode() + body


def connect(armed):
    parts = urlsplit(armed.resource)
    return socket.create_connection((parts.hostname, parts.port), timeout=5)


def exchange(armed, data, wait=1.0):
    """Everything that comes back within a while, and whether the connection was then closed."""
    with connect(armed) as stream:
        return spoken(stream, data, wait)


def chunked(body):
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


# ---- paths, methods, framing ---------------------------------------------------------------------------------------

TARGETS = ["//mcp", "/mcp/", "/%6dcp", "/%6Dcp", "/mcp%2f", "/mcp;x", "/./mcp", "/x/../mcp", "/x/%2e%2e/mcp", "/mcp%00",
           "/MCP", "/mcp?", "/mcp?a=1", "/mcp\\", "*", "mcp", "/.well-known/oauth-protected-resource/../../mcp"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_resource_has_one_address(armed, target):
    with armed.untouched():
        answer, _ = exchange(armed, trade(armed, target))
        assert statuses(answer) in ([400], [404], [421]), answer


@pytest.mark.parametrize("target", ["http://elsewhere.test/mcp", "http://user@{host}/mcp", "http://{host}:1/mcp"])
def test_an_absolute_target_for_another_host(armed, target):  # D-16
    host = urlsplit(armed.resource).netloc
    unsigned = listing(armed).replace(b"POST /mcp ", f"POST {target.format(host=host)} ".encode(), 1)
    with armed.untouched():
        answer, _ = exchange(armed, unsigned)
        assert statuses(answer) in ([400], [421]), answer


@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "PROPFIND"])
def test_a_call_is_a_post(armed, verb):
    with armed.untouched():
        answer, _ = exchange(armed, trade(armed, verb=verb))
        assert statuses(answer) == [405], answer


def test_connect_is_no_tunnel(armed):
    with armed.untouched():
        answer, _ = exchange(armed, trade(armed, urlsplit(armed.resource).netloc, verb="CONNECT"))
        assert statuses(answer)[0] in (400, 404), answer


LENGTH = [("Content-Length", "{n}")]
CHUNKED = [("Transfer-Encoding", "chunked")]
FRAMINGS = {
    "two lengths": ([*LENGTH, ("Content-Length", "5")], None, {400}),
    "a list of lengths": ([("Content-Length", "{n}, {n}")], None, {400}),
    "a signed length": ([("Content-Length", "+{n}")], None, {400}),
    "a length in hexadecimal": ([("Content-Length", "0x1ff")], None, {400}),
    "a length too long for a number": ([("Content-Length", "9" * 30)], None, {400, 413}),
    "a coding before the chunks": ([("Transfer-Encoding", "gzip, chunked")], chunked, {400, 415}),
    "chunks of chunks": ([("Transfer-Encoding", "chunked, chunked")], chunked, {400, 415}),
    "chunked twice": ([*CHUNKED, *CHUNKED], chunked, {400}),
    "a coding after the chunks": ([("Transfer-Encoding", "chunked, identity")], chunked, {400}),
    "a coding nobody knows": ([("Transfer-Encoding", "xchunked")], chunked, {400}),
    "a chunk size that is none": (CHUNKED, lambda body: b"-1\r\n" + body + b"\r\n0\r\n\r\n", {400, 413}),
    "a chunk size too long": (CHUNKED, lambda body: b"F" * 17 + b"\r\n" + body + b"\r\n0\r\n\r\n", {400, 413}),
    "chunks ended by bare line feeds": (CHUNKED, lambda body: b"%x\n%s\n0\n\n" % (len(body), body), {400, 413}),
    "a chunk that runs into the next": (CHUNKED, lambda body: b"%x\r\n%s0\r\n\r\n" % (len(body), body), {400, 413}),
    "a chunk extension without end": (CHUNKED, lambda body: b"%x;" % len(body) + b"a" * 100_000 + b"\r\n" + body
                                      + b"\r\n0\r\n\r\n", {400, 413}),
    "thousands of trailers": (CHUNKED, lambda body: b"%x\r\n%s\r\n0\r\n" % (len(body), body) + b"X: y\r\n" * 5000
                              + b"\r\n", {400, 413}),
}


@pytest.mark.parametrize("shape", FRAMINGS)
def test_a_body_has_one_end(armed, shape):  # CORE-116 MCP-29
    framing, body, expected = FRAMINGS[shape]
    size = len(mcp_body("tools/call", {"name": "execute_trade", "arguments": TRADE}))
    framing = [(name, value.format(n=size)) for name, value in framing]
    with armed.untouched():
        answer, _ = exchange(armed, trade(armed, framing=framing, body=body))
        assert len(statuses(answer)) == 1 and statuses(answer)[0] in expected, answer


@pytest.mark.parametrize("line", ["X-A: a\r\n b", "X-A: a\r\n\tMcp-Name: get_positions", "X-A: a\rb", "X-A: a\0b",
                                  "X-A : b", ": b", "X A: b"])
def test_a_head_is_read_one_way(armed, line):
    with armed.untouched():
        request = trade(armed).replace(b"\r\n\r\n", b"\r\n" + line.encode() + b"\r\n\r\n", 1)
        answer, closed = exchange(armed, request)
        assert (statuses(answer), closed) == ([400], True), answer


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "http/1.1"])
def test_other_versions_of_http(armed, version):
    with armed.untouched():
        answer, _ = exchange(armed, trade(armed, version=version))
        assert statuses(answer) in ([400], []), answer


def test_a_length_beside_chunks_ends_the_connection(armed):
    """The chunks are the body (RFC 9112 section 6.3), and what follows on the connection is nobody's request."""
    smuggled = trade(armed)
    body = mcp_body("tools/list")
    lines = [("Host", urlsplit(armed.resource).netloc), *mcp_headers("tools/list"), ("Content-Length", "4"), *CHUNKED]
    first = "POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines) + "\r\n"
    with armed.untouched():
        answer, closed = exchange(armed, first.encode() + chunked(body) + smuggled)
        assert (statuses(answer), closed) == ([200], True), answer


def test_requests_on_one_connection_are_judged_one_by_one(armed):
    """A good one before a bad one lends it nothing, and a refused body is not the head of the next."""
    with armed.untouched():
        unsigned = trade(armed).replace(b"\r\nSignature: ", b"\r\nX: ", 1)
        elsewhere = trade(armed, "//mcp")
        wrong_type = trade(armed).replace(b"application/json\r\n", b"text/plain\r\n", 1)
        answer, _ = exchange(armed, b"".join([listing(armed), unsigned, elsewhere, wrong_type, listing(armed)]))
        assert statuses(answer) == [200, 401, 404, 415, 200], answer


def test_a_refused_request_is_not_asked_for_its_body(armed):
    with armed.untouched():
        head = trade(armed, "/mcp?a=1", extra=[("Expect", "100-continue")]).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        answer, _ = exchange(armed, head)
        assert statuses(answer) == [400], answer


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.0"])
def test_nothing_is_upgraded(armed, upgrade):
    request = listing(armed).replace(b"\r\n\r\n", f"\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n".encode(), 1)
    assert statuses(exchange(armed, request)[0]) == [200]


# ---- beside the message ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["Mcp-Param-Quantity", "Mcp-Param-Symbol", "Mcp-Anything"])
def test_a_header_nobody_approved_does_not_ride_on_a_single_call(armed, header):  # D-10
    with armed.untouched():
        response = armed.spend(extra=[(header, "9000")])
        assert (response.status, response.json()["error"]) == (400, "invalid_request"), response


@pytest.mark.parametrize("extra", [("mcp_name", "get_positions"), ("Mcp_Method", "tools/list"),
                                   ("MCP_Protocol_Version", "2025-11-25"), ("content_type", "text/plain"),
                                   ("Transfer_Encoding", "chunked")])
def test_spellings_of_a_header_that_some_server_reads_as_it(armed, extra):  # MCP-25
    with armed.untouched():
        response = armed.spend(extra=[extra])
        assert response.status == 400 and response.json()["error"]["code"] == -32020, response


@pytest.mark.parametrize("nominated", ["mcp-name", "authorization, content-digest", "signature", "close, mcp-method"])
def test_no_header_is_talked_away(armed, nominated):
    """What a client calls hop-by-hop is still held against the body and covered by the signature."""
    result(armed.read(extra=[("Connection", nominated)]))
    with armed.untouched():
        lying = mcp_headers("tools/call", "get_positions")
        response = armed.spend(headers=lying, extra=[("Connection", nominated)])
        assert response.status == 400, response


def test_of_two_signatures_neither_is_good_again(armed):  # D-9
    body, lines = mcp_body("tools/call", {"name": "get_positions", "arguments": {}}), mcp_headers("tools/call",
                                                                                                   "get_positions")
    lines.append(("Authorization", f"PoP {armed.positions.token}"))
    one, two = (sign(armed.agent.key, "POST", armed.resource, lines, body, label=label) for label in ("a", "b"))
    both = [one[0], *((name, f"{value}, {other}") for (name, value), (_, other) in zip(one[1:], two[1:]))]
    result(send("POST", armed.resource, [*lines, *both], body))
    with armed.untouched():
        for again in (one, two, both):
            response = send("POST", armed.resource, [*lines, *again], body)
            assert (response.status, response.json()["error"]) == (401, "invalid_token"), response


# ---- hanging up ------------------------------------------------------------------------------------------------------


def test_whoever_hangs_up_leaves_no_gap_in_her_record(house):  # D-14
    """However early: either the grant is unspent, or the trade was made, or her record says what is not known."""
    armed = Armed(house)
    for n in range(12):
        armed.trade = armed.agent.obtain(armed.resource, "execute_trade", TRADE, owner=armed.owner)
        before = holding(result(armed.read()))
        with connect(armed) as stream:
            stream.sendall(trade(armed))
            time.sleep(n / 600)
        deadline = time.monotonic() + 5
        while not (story := told(armed, before)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert story, "spent, and neither made nor told"


def told(armed, before):
    if armed.server.state(armed.trade.token) is True:
        return "unspent"
    rows = [row for row in armed.owner.ledger() if row["family"] == armed.trade.family and row["kind"] == "touched"]
    if any("hung up" in (row["entry"].get("summary") or "") for row in rows):
        return "told"
    return "made" if holding(result(armed.read())) == before + TRADE["quantity"] else None


# ---- floods, and what they leave -------------------------------------------------------------------------------------


def counted(house):
    with closing(sqlite3.connect(f"file:{house.data / 'sayso.db'}?mode=ro", uri=True)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def test_a_flood_of_challenges_writes_nothing(armed):  # D-17
    before, memory = counted(armed.house), armed.house.memory_mb()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: armed.read(token=None), range(600)))
    assert len({Challenge.of(answer).ticket for answer in answers}) == 600
    assert counted(armed.house) == before
    assert armed.house.memory_mb() - memory < 32


def test_unfinished_bodies_are_bounded_together(armed):  # D-10
    """Two hundred megabytes sent and never finished: the most that is held is what there is room for, and whoever sends
    an ordinary request meanwhile is served."""
    head = (f"POST /mcp HTTP/1.1\r\nHost: {urlsplit(armed.resource).netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {4 * MIB}\r\n\r\n").encode()
    before, streams = armed.house.memory_mb(), []
    try:
        for _ in range(50):
            stream = connect(armed)
            streams.append(stream)
            try:
                stream.sendall(head + b" " * (4 * MIB - 10))
            except OSError:
                pass  # Told that there is no room, and closed.
        assert armed.house.memory_mb() - before < 110
        assert result(armed.read())
        assert Challenge.of(armed.read(token=None))
    finally:
        for stream in streams:
            stream.close()


# ---- what is written down -------------------------------------------------------------------------------------------


def test_logs_hold_no_secret_however_much_is_asked_for(tmp_path, monkeypatch):
    """At the finest level: no token, ticket, signature or argument, and nothing of what a tool answered."""
    plain = cast.environment
    monkeypatch.setattr(cast, "environment", lambda home: plain(home) | {"SAYSO_LOG": "trace"})
    house = House(tmp_path)
    try:
        armed = Armed(house)
        rare = {"symbol": "QZX.WJ", "side": "buy", "quantity": 8642}
        armed.trade = armed.agent.obtain(armed.resource, "execute_trade", rare, owner=armed.owner)
        sent, stranger = [], Agent()
        assert holding(result(armed.read(replayable=sent)))
        assert armed.spend(rare).status == 200
        assert armed.read(token=armed.positions.token[:-3] + "AAA").status == 401
        challenge = Challenge.of(stranger.call(armed.resource, "get_positions"))
        signature = dict(sent[0][2])["Signature"].partition(":")[2].rstrip(":")
        secrets = [armed.positions.token, armed.trade.token, armed.positions.token.rpartition(".")[2], challenge.ticket,
                   signature, armed.server.pat, rare["symbol"], str(rare["quantity"]), "VTI", "brokerage-main",
                   *armed.positions.negotiation.tickets, *armed.trade.negotiation.tickets]
    finally:
        house.stop()
    log = house.logged()
    assert "access.allowed" in log and "rpt.consumed" in log
    # As words: times and letters drawn at random spell anything short in time.
    assert [secret for secret in secrets if re.search(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", log)] == []

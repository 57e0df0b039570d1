"""Bytes on sockets, at every host that listens by itself: the gateway, the HTTP door of external authorization, and the
two servers that guard themselves. Nobody is granted anything here: what passes is what is open to everybody, once and
whole, and whatever can be read in two ways is answered once, with an error, and reaches nobody."""

import select
import socket
import struct
import subprocess
import time
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from canary import Canary
from cast import REALM, SCOPES, environment
from test_embedded import PATIENCE, example
from town import Role, free_port, healthy
from wire import Key, mcp_body, mcp_headers, spoken, statuses

DOORS = ("gateway", "ext-authz", "guard_axum", "guard_rmcp")


class Door:
    """Where to connect, what stands before the resource's path, and how many requests got behind it."""

    def __init__(self, name, port, host, prefix="", canary=None):
        self.name, self.port, self.host, self.prefix, self.canary = name, port, host, prefix, canary

    def reached(self):
        return len(self.canary.bodies) if self.canary else None

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def head(self, target="/mcp", verb="POST", version="HTTP/1.1", lines=()):
        listed = [("Host", self.host), *mcp_headers("tools/list"), *lines]
        text = f"{verb} {self.prefix}{target} {version}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in listed)
        return text.encode("latin-1") + b"\r\n"

    def listing(self, **changes):
        """An honest request, whose length says where it ends unless the framing is in `lines`."""
        lines, body = list(changes.pop("lines", ())), changes.pop("body", LIST)
        if not any(name.lower() in ("transfer-encoding", "content-length") for name, _ in lines):
            lines.append(("Content-Length", str(len(body))))
        # A gateway that passed on all of a body says so.
        lines += [("X-Envoy-Auth-Partial-Body", "false")] if self.name == "ext-authz" else []
        return self.head(lines=lines, **changes) + body


LIST = mcp_body("tools/list")


def exchange(door, data, wait=0.4):
    """Everything that comes back within a while, and whether the connection was then closed."""
    with door.connect() as stream:
        return spoken(stream, data, wait)


def chunked(body, after=b"0\r\n\r\n"):
    return b"%x\r\n%s\r\n" % (len(body), body) + after


@contextmanager
def opened(kind, folder):
    folder.mkdir(parents=True, exist_ok=True)
    nobody = f"http://127.0.0.1:{free_port()}"
    if kind.startswith("guard"):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        pem = folder / "notes.pem"
        pem.write_bytes(Key().private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        variables = {"NOTES_AUTHORITY": nobody, "NOTES_URL": url, "NOTES_KEY": str(pem)}
        process = subprocess.Popen([example(kind)], env=environment(folder) | variables, cwd=folder)
        try:
            deadline = time.monotonic() + PATIENCE
            while not healthy(f"127.0.0.1:{port}", url):
                assert process.poll() is None and time.monotonic() < deadline, f"{kind} does not serve"
                time.sleep(0.05)
            yield Door(kind, port, f"127.0.0.1:{port}")
        finally:
            process.kill()
            process.wait(15)
        return
    canary = Canary()
    canary.tools = SCOPES
    resource = {"path": "/mcp", "owner": "alice", "authority": nobody, "realm": REALM}
    tools = [("resource.tools", {"name": tool, "scopes": [scope]}) for tool, scope in SCOPES.items()]
    port, public = free_port(), free_port()
    if kind == "gateway":
        resource["upstream"] = canary.url
        role = Role(kind, folder, {"gateway.listen": f"127.0.0.1:{port}"}, [("resource", resource), *tools])
        door = Door(kind, port, f"127.0.0.1:{port}", canary=canary)
    else:
        role = Role(kind, folder, {"ext_authz.listen": f"127.0.0.1:{port}", "ext_authz.grpc.listen": f"127.0.0.1:{free_port()}",
                                   "ext_authz.public_url": f"http://127.0.0.1:{public}",
                                   "ext_authz.partial_body_flag": True}, [("resource", resource), *tools])
        door = Door(kind, port, f"127.0.0.1:{public}", prefix="/check")
    try:
        role.start()
        yield door
    finally:
        role.end()
        canary.stop()


@pytest.fixture(scope="module", params=DOORS)
def door(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp(request.param) / "role") as door:
        yield door


@contextmanager
def nobody_reached(door):
    """Around what is hostile: nothing got behind the host, and the next honest request is served as ever."""
    before = door.reached()
    yield
    assert door.reached() == before, "it got there"
    answer, _ = exchange(door, door.listing(lines=[("Connection", "close")]))
    assert statuses(answer) == [200], answer
    assert before is None or door.reached() == before + 1


# ---- one body, one end -----------------------------------------------------------------------------------------------

N = str(len(LIST))
CHUNKS = ("Transfer-Encoding", "chunked")
FRAMINGS = {
    "two lengths": ([("Content-Length", N), ("Content-Length", "5")], LIST, 400),
    "a list of lengths": ([("Content-Length", f"{N}, {N}")], LIST, 400),
    "a signed length": ([("Content-Length", "+" + N)], LIST, 400),
    "a length in hexadecimal": ([("Content-Length", hex(len(LIST)))], LIST, 400),
    "a negative length": ([("Content-Length", "-1")], LIST, 400),
    "no length at all": ([("Content-Length", "")], LIST, 400),
    "a coding before the chunks": ([("Transfer-Encoding", "gzip, chunked")], chunked(LIST), 415),
    "chunks of chunks": ([("Transfer-Encoding", "chunked, chunked")], chunked(LIST), 415),
    "chunked twice": ([CHUNKS, CHUNKS], chunked(LIST), 400),
    "a coding after the chunks": ([("Transfer-Encoding", "chunked, identity")], chunked(LIST), 400),
    "a coding nobody knows": ([("Transfer-Encoding", "xchunked")], chunked(LIST), 400),
    "a chunk size that is none": ([CHUNKS], b"-1\r\n" + LIST + b"\r\n0\r\n\r\n", 413),
    "a chunk size too long": ([CHUNKS], b"F" * 17 + b"\r\n" + LIST + b"\r\n0\r\n\r\n", 413),
    "chunks ended by bare line feeds": ([CHUNKS], b"%x\n%s\n0\n\n" % (len(LIST), LIST), 413),
    "a chunk that runs into the next": ([CHUNKS], b"%x\r\n%s0\r\n\r\n" % (len(LIST), LIST), 413),
    "thousands of trailers": ([CHUNKS], chunked(LIST, b"0\r\n" + b"X: y\r\n" * 5000 + b"\r\n"), 413),
    "a compressed body": ([("Content-Encoding", "gzip"), ("Content-Length", N)], LIST, 415),
    "a body compressed twice": ([("Content-Encoding", "identity"), ("Content-Encoding", "br"), ("Content-Length", N)], LIST,
                                415),
}


@pytest.mark.parametrize("shape", FRAMINGS)
def test_a_body_has_one_end_at_every_door(door, shape):  # CORE-116 MCP-29
    lines, body, expected = FRAMINGS[shape]
    with nobody_reached(door):
        answer, _ = exchange(door, door.listing(lines=lines, body=body))
        assert statuses(answer) == [expected], answer


@pytest.mark.parametrize("line", ["X-A: a\r\n b", "X-A: a\r\n\tMcp-Method: tools/call", "X-A: a\rb", "X-A: a\0b", "X-A : b",
                                  ": b", "X A: b", "Transfer-Encoding : chunked", "Content-Length : 3"])
def test_a_head_is_read_one_way_at_every_door(door, line):
    with nobody_reached(door):
        request = door.listing().replace(b"\r\n\r\n", b"\r\n" + line.encode() + b"\r\n\r\n", 1)
        answer, closed = exchange(door, request)
        assert (statuses(answer), closed) == ([400], True), answer


def test_what_is_smuggled_behind_a_body_is_nobodys_request(door):
    """Whether by its length or by its chunks, one of the two is the end, and what follows it is not served."""
    smuggled = door.listing()
    for lines, body in (([("Content-Length", "4"), CHUNKS], chunked(LIST)), ([CHUNKS, ("Content-Length", N)], chunked(LIST))):
        before = door.reached()
        answer, closed = exchange(door, door.listing(lines=lines, body=body) + smuggled)
        # The chunks are the end, whatever length was said; a length beside them ends the connection.
        assert (statuses(answer), closed) == ([200], True), answer
        assert before is None or door.reached() == before + 1


def test_trailers_say_nothing(door):
    """They are read and forgotten: none of them is a header of the request."""
    trailers = b"0\r\nMcp-Method: tools/call\r\nMcp-Name: execute_trade\r\nAuthorization: PoP x\r\nX-Uma-Owner: bob\r\n\r\n"
    before = door.reached()
    answer, _ = exchange(door, door.listing(lines=[CHUNKS], body=chunked(LIST, trailers)))
    assert statuses(answer) == [200], answer
    if door.canary:
        assert door.reached() == before + 1 and door.canary.bodies[-1] == LIST
        assert not {name.lower() for name, _ in door.canary.heads[-1]} & {"authorization", "x-uma-owner", "mcp-name", "trailer"}


# ---- versions, upgrades, and being asked first -----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "http/1.1", "HTTP/1.1.1"])
def test_no_other_version_is_spoken(door, version):
    with nobody_reached(door):
        answer, closed = exchange(door, door.listing(version=version))
        assert (statuses(answer), closed) == ([400], True), answer


def test_http2_is_not_begun(door):
    """Neither by its preface nor by an upgrade."""
    with nobody_reached(door):
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(">HBBBI", 0, 0, 4, 0, 0)
        answer, closed = exchange(door, preface)
        if door.name.startswith("guard"):
            # A server of axum's own speaks it: it begins with its settings, and there is no request.
            assert (answer[3:4], statuses(answer), closed) == (b"\x04", [], False), answer
        else:
            assert (answer, closed) == (b"", True)


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.0"])
def test_nothing_is_upgraded_at_any_door(door, upgrade):
    lines = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", upgrade), ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA")]
    answer, _ = exchange(door, door.listing(lines=lines))
    assert statuses(answer) == [200] and b"101 Switching" not in answer, answer


def test_whoever_asks_first_is_told_before_he_sends(door):
    """`Expect: 100-continue`: what is refused by its head is not asked for; what is not is asked for once."""
    with nobody_reached(door):
        refused, _ = exchange(door, door.head(target="/mcp?x=1", lines=[("Expect", "100-continue"), ("Content-Length", N)]))
        assert statuses(refused) == [400], refused
    with door.connect() as stream:
        stream.settimeout(5)
        flag = [("X-Envoy-Auth-Partial-Body", "false")] if door.name == "ext-authz" else []
        stream.sendall(door.head(lines=[("Expect", "100-continue"), ("Content-Length", N), *flag]))
        assert statuses(stream.recv(65536)) == [100]
        stream.sendall(LIST)
        assert statuses(stream.recv(65536)) == [200]
    with nobody_reached(door):
        odd, _ = exchange(door, door.listing(lines=[("Expect", "a miracle")]).replace(LIST, b"{}" + b" " * (len(LIST) - 2)))
        # Nobody expects one: the body is read, and is no message.
        assert statuses(odd) == [400] and b"-32600" in odd, odd


# ---- slow and half-closed --------------------------------------------------------------------------------------------


def test_a_slow_body_is_waited_for_and_nobody_with_it(door):
    """Byte by byte it is one request; those who wait beside it are served meanwhile."""
    before = door.reached()
    with door.connect() as stream:
        stream.settimeout(10)
        whole = door.listing()
        head, body = whole[:-len(LIST)], whole[-len(LIST):]
        stream.sendall(head)
        for at in range(0, len(body), 12):
            stream.sendall(body[at:at + 12])
            time.sleep(0.03)
            if at % 120 == 0:
                assert statuses(exchange(door, door.listing().replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))[0]) == [200]
        assert statuses(stream.recv(65536)) == [200]
    beside = -(-len(LIST) // 120)
    assert before is None or door.reached() == before + beside + 1


@pytest.mark.parametrize("kept", [0, 1, -1])
def test_a_body_that_stops_short_is_nobodys_request(door, kept):  # MCP-29
    """Half closed in the middle of its body, the other half still listening: nothing is made of a part."""
    before = door.reached()
    whole = door.listing()
    cut = whole[:len(whole) - len(LIST)] + LIST[:kept]
    with door.connect() as stream:
        answer, _ = spoken(stream, cut, 5, done=True)
    assert (statuses(answer), b"request_body_too_large" in answer) == ([413], True), answer
    assert door.reached() == before


def test_whoever_closed_his_half_after_his_answer_has_it_whole(door):
    """What was answered by the time a client says that it says nothing more is there to be read, once."""
    before = door.reached()
    with door.connect() as stream:
        stream.sendall(door.listing())
        assert select.select([stream], [], [], 10)[0], "no answer"
        answer, closed = spoken(stream, b"", 5, done=True)
    assert (statuses(answer), closed) == ([200], True), answer
    assert before is None or door.reached() == before + 1


def test_whoever_closed_his_half_before_his_answer_has_taken_it_back(door):
    """In this revision hanging up cancels, and a closed half is where hanging up begins: there is no answer, and what was
    carried was carried once."""
    if not door.canary:
        pytest.skip("nothing is behind this door that could be held")
    before, held = door.reached(), door.canary.hold()
    with door.connect() as stream:
        stream.sendall(door.listing())
        held.wait()
        answer, closed = spoken(stream, b"", 5, done=True)
    held.release()
    assert (answer, closed) == (b"", True)
    assert door.reached() == before + 1
    assert statuses(exchange(door, door.listing(lines=[("Connection", "close")]))[0]) == [200]
    assert door.reached() == before + 2


def test_a_name_bound_anew_reaches_no_loopback_listener(door):  # D-16
    """DNS rebinding: a page's own host name, pointed at a loopback listener, is not one of its names; nor is a page."""
    for host in ("attacker.example", "attacker.example:80", "localhost.attacker.example", "127.0.0.1.nip.io", "0.0.0.0", ""):
        with nobody_reached(door):
            request = door.listing().replace(f"Host: {door.host}".encode(), f"Host: {host}".encode(), 1)
            answer, _ = exchange(door, request)
            assert statuses(answer) == [421], (host, answer)
    for origin in ("http://attacker.example", "null", f"http://{door.host}.attacker.example"):
        with nobody_reached(door):
            answer, _ = exchange(door, door.listing(lines=[("Origin", origin)]))
            assert statuses(answer) == [403] and b"access-control-" not in answer.lower(), (origin, answer)
    with nobody_reached(door):
        head = door.head(verb="OPTIONS", lines=[("Origin", "http://attacker.example"), ("Content-Length", "0"),
                                                ("Access-Control-Request-Method", "POST")])
        answer, _ = exchange(door, head)
        assert statuses(answer) == [403] and b"access-control-" not in answer.lower(), answer


@pytest.mark.parametrize("target", ["//mcp", "/mcp/", "/%6dcp", "/%6Dcp", "/mcp;x", "/./mcp", "/x/../mcp", "/x/%2e%2e/mcp",
                                    "/mcp%00", "/MCP", "/mcp?", "/mcp?a=1", "/mcp\\", "/\\mcp", "/mcp%2f", "/mcp/%2e", "*",
                                    "/check/mcp", "/mcp%0d%0aX:1", "/.well-known/../mcp",
                                    "/.well-known/oauth-protected-resource/../../mcp"])
def test_a_resource_has_one_address_at_every_door(door, target):
    with nobody_reached(door):
        answer, _ = exchange(door, door.listing(target=target))
        assert statuses(answer) == [400 if "?" in target else 404], (target, answer)


def turned_away(door, answer):
    """A call without a grant got no further than that: the guard says so under 200, as JSON-RPC has it."""
    if door.name == "guard_rmcp" and statuses(answer) == [200]:
        return b'"code":-32002' in answer and b'"result"' not in answer
    return statuses(answer) in ([400], [403], [404], [503])


def test_what_a_listener_takes_off_a_target_lets_no_call_through(door):
    """A fragment is cut off before anybody sees it, and an own address in absolute form is an address."""
    body = mcp_body("tools/call", {"name": "execute_trade", "arguments": {}})
    listed, called = b"Mcp-Method: tools/list\r\n", b"Mcp-Method: tools/call\r\nMcp-Name: execute_trade\r\n"
    path, own = f"POST {door.prefix}/mcp".encode(), f"POST http://{door.host}{door.prefix}/mcp".encode()
    with nobody_reached(door):
        for target in ("/mcp#f", "/mcp#/../x", "/mcp#?x=1", "/mcp"):
            request = door.listing(target=target, body=body)
            assert listed in request
            answer, _ = exchange(door, request.replace(listed, called, 1).replace(path, own if target == "/mcp" else path, 1))
            assert turned_away(door, answer), (target, answer)


def test_an_absolute_target_is_for_its_own_host(door):
    with nobody_reached(door):
        for target in (f"http://attacker.example{door.prefix}/mcp", f"http://user@attacker.example{door.prefix}/mcp"):
            request = door.listing().replace(f"POST {door.prefix}/mcp".encode(), f"POST {target}".encode(), 1)
            answer, _ = exchange(door, request)
            assert statuses(answer) == [421], (target, answer)


def test_a_head_is_bounded_at_every_door_of_ours(door):
    """A server that guards itself listens by its own rules."""
    if door.name.startswith("guard"):
        pytest.skip("the listener is the server's own")
    with nobody_reached(door):
        for lines in ([("X-Large", "a" * 200_000)], [(f"X-{n}", "a") for n in range(200)],
                      [("Authorization", "PoP " + "." * 300_000)], [("Mcp-Name", "=?base64?" + "A" * 100_000 + "?=")]):
            answer, closed = exchange(door, door.listing(lines=lines))
            assert (statuses(answer), closed) == ([431], True), answer[:200]

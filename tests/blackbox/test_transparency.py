"""With `enforce = []` (D-6) a gateway adds nothing and takes nothing away: stock clients have the same session with a
server as directly, message by message, once ids of ours are no longer seen. What is no message stays outside."""

import json
import sys
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from canary import Canary
from stock import HERE, Front, Server, line, node, package
from suite import gateway
from wire import send

EVERYTHING = {"realm": "mcp-servers-everything", "ask": (), "deny": ()}
OVER_STDIO = Server("stdio", command=["node", package("server-everything"), "stdio"], **EVERYTHING)
OVER_HTTP = Server("http", command=["node", package("server-everything"), "streamableHttp"], http=True,
                   variables={"PORT": "{port}"}, **EVERYTHING)
# The one of them that speaks 2026-07-28.
MODERN = Server("modern", realm="word-book", command=[sys.executable, HERE / "servers/wordbook.py", "{port}"], http=True,
                ask=(), deny=())
NOTHING = {"SAYSO_GATEWAY__ENFORCE": "[]"}


def session(client, *target):
    """What a client heard: the answers by id, and the progress it was told of, in order. Other notifications of a
    server's come when they come."""
    heard = node(client, "session", *target)["heard"]
    answers = {message["id"]: message for message in heard if "method" not in message}
    progress = [message for message in heard if message.get("method") == "notifications/progress"]
    assert len(answers) >= 15
    return answers, progress


@pytest.mark.parametrize("client", ["v1", "v2"])
@pytest.mark.parametrize("server", [OVER_STDIO, OVER_HTTP, MODERN], ids=lambda server: server.name)
def test_a_session_is_the_same_as_directly(tmp_path, server, client):
    with server.served(tmp_path) as flags:
        target = flags[1:] if server.http else server.words(tmp_path)
        directly = session(client, *target)
        with Front.running(tmp_path / "up", *flags, **NOTHING) as front:
            through = session(client, front.resource)
    # A client over stdio asks another child which revisions it speaks; over HTTP it hears the answer itself (D-31).
    if not server.http:
        through[0].pop("server-discover-probe-1", None)
    assert through[0].keys() == directly[0].keys()
    for id, answer in directly[0].items():
        assert through[0][id] == answer, id
    assert through[1] == directly[1]


def test_it_is_said_at_every_start_and_only_messages_pass(tmp_path):
    flags = ("--upstream-stdio", line("node", package("server-everything"), "stdio"))
    with Front.running(tmp_path, *flags, **NOTHING) as front:
        for _ in range(2):
            warnings = [entry for entry in map(json.loads, front.logged().splitlines()) if entry["level"] == "WARN"]
            assert any("enforce = []" in entry["message"] for entry in warnings), warnings
            front.log.write_text("")
            front.restart()
        asked = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"),
                 ("MCP-Protocol-Version", "2025-11-25")]
        for body in (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"},"id":2}', b"[]", b"{"):
            assert send("POST", front.resource, asked, body).status == 400
        called = send("POST", front.resource, asked, json.dumps({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"message": "unasked"}},
        }).encode())
        assert called.status == 200 and b"Echo: unasked" in called.body, called
        # Nobody was asked, so there is nothing to record.
        assert not [row for row in front.owner.ledger() if row["kind"] == "touched"]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("role", ["gateway", "up"])
def test_the_host_a_server_is_told(tmp_path, role, kept):
    """Its own unless the public one is to be kept, whatever a caller writes; who names another host is not served."""
    canary = Canary()
    word = "preserve" if kept else "rewrite"
    try:
        with before(role, tmp_path, canary, word) as url:
            public, own = urlsplit(url).netloc, urlsplit(canary.url).netloc
            asked = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
            for number, (host, status) in enumerate(((public, 200), (public.upper(), 200), ("evil.example", 421),
                                                     (own, 421))):
                message = json.dumps({"jsonrpc": "2.0", "id": f"ours-{number}", "method": "tools/list"}).encode()
                answer = send("POST", url, [*asked, ("Host", host)], message)
                assert answer.status == status, answer
                # `up` asks the server this and that by itself.
                told = [dict(head)["host"] for head, body in zip(canary.heads, canary.bodies) if body == message]
                assert told == ([public if kept else own] if status == 200 else []), told
    finally:
        canary.stop()


@contextmanager
def before(role, folder, canary, host):
    if role == "gateway":
        with gateway(folder, canary.url, enforce=[], upstream_host=host) as url:
            yield url
    else:
        settings = NOTHING | {"SAYSO_GATEWAY__UPSTREAM_HOST": host, "SAYSO_GATEWAY__SURVEY_INTERVAL": "600"}
        with Front.running(folder, "--upstream", canary.url, **settings) as front:
            yield front.resource

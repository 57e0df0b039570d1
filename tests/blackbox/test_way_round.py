"""D-32: whoever can reach a server without the gateway is not asked anything. The owner is told at every start, a server
that demands a token is shown one, and the demo vault cannot be found by looking at ports."""

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stock import HERE, Front, line, serving
from town import free_port
from wire import mcp_body, mcp_headers, send

TOOLS = [{"name": "look", "inputSchema": {"type": "object"}}]
TOKEN = "a-token-that-nobody-else-knows"
LISTEN = "0A"


@contextmanager
def server(folder, **variables):
    port, file = free_port(), folder / "tools.json"
    file.write_text(json.dumps(TOOLS))
    with serving([sys.executable, HERE / "servers/shifty.py", file, str(port)], port, **variables) as url:
        yield url


def warnings(front):
    lines = map(json.loads, front.logged().splitlines())
    return [entry["message"] for entry in lines if entry["level"] == "WARN" and "bypasses" in entry["message"]]


def awaited(front):
    deadline = time.monotonic() + 10
    while not (found := warnings(front)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def test_a_server_that_answers_anybody_is_told_of_at_every_start(tmp_path):
    with server(tmp_path) as url, Front.running(tmp_path / "up", "--upstream", url) as front:
        for _ in range(2):
            (warning,) = awaited(front)
            assert url.removesuffix("/mcp") in warning and "--upstream-stdio" in warning
            front.log.write_text("")
            front.restart()


def test_a_server_that_demands_a_token_is_shown_it_and_nobody_else_sees_it(tmp_path):
    variables = {"SAYSO_GATEWAY__UPSTREAM_TOKEN_ENV": "VAULT_TOKEN", "VAULT_TOKEN": TOKEN}
    with server(tmp_path, DEMANDED=TOKEN) as url, Front.running(tmp_path / "up", "--upstream", url, **variables) as front:
        assert front.tools() == ["look"]
        assert "ran look" in front.obtain("look")
        assert warnings(front) == []
        assert TOKEN not in front.logged()
        for path in filter(Path.is_file, front.data.rglob("*")):
            assert TOKEN.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("token", [None, "", "two\nlines"])
def test_a_token_that_is_none_is_refused(tmp_path, token):
    variables = {"SAYSO_GATEWAY__UPSTREAM_TOKEN_ENV": "VAULT_TOKEN"} | ({} if token is None else {"VAULT_TOKEN": token})
    with pytest.raises(pytest.fail.Exception, match="ended with 2.*(?s:.*)VAULT_TOKEN"):
        Front(tmp_path / "up", "--upstream", "http://127.0.0.1:9/mcp", **variables)


def test_a_child_has_no_way_round(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    command = line(sys.executable, HERE / "servers/shifty.py", tmp_path / "tools.json")
    with Front.running(tmp_path / "up", "--upstream-stdio", command) as front:
        assert front.tools() == ["look"] and warnings(front) == []
        assert listening(front.process.pid) == published(front)


def test_the_demo_vault_is_not_found_at_its_port(lone_house):
    (hidden,) = listening(lone_house.process.pid) - published(lone_house)
    body, headers = mcp_body("tools/list", {}), mcp_headers("tools/list")
    for path in ("/mcp", "/", "//mcp", "/0/mcp", "/" + "0" * 32 + "/mcp"):
        assert send("POST", f"http://127.0.0.1:{hidden}{path}", headers, body).status == 404, path
    assert send("POST", lone_house.resource, headers, body).status == 200


def published(front):
    """The ports that the ready line names."""
    return {urlsplit(value).port for name, value in front.ready.items() if name in ("authority", "gateway", "metrics")}


def listening(pid):
    """The ports this process listens on."""
    sockets = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    ports = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == LISTEN and f"socket:[{fields[9]}]" in sockets:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports

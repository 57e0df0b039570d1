"""The configuration files that the documentation shows are a whole installation: started as they are, but for their ports,
they let an agent that asked call a tool of the server behind, and nothing else."""

import json
import sys
import time

from cast import ROOT, Process
from stock import HERE, serving
from test_newcomer import told, typed
from town import free_port

EXAMPLES = ROOT / "docs/examples"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("read_note", "write_note", "burn_note")]


def test_the_examples_are_an_installation(tmp_path):
    ports = {port: str(free_port()) for port in ("8440", "8441", "3001")}
    for kind in ("authority", "gateway"):
        text = (EXAMPLES / f"{kind}.toml").read_text()
        for port, free in ports.items():
            text = text.replace(f":{port}", f":{free}")
        (tmp_path / f"{kind}.toml").write_text(text)
    resource = f"http://127.0.0.1:{ports['8441']}/mcp"
    offers = tmp_path / "tools.json"
    offers.write_text(json.dumps(TOOLS))
    roles = [Process(tmp_path, tmp_path / f"{kind}.log") for kind in ("gateway", "authority")]
    with serving([sys.executable, HERE / "servers/shifty.py", offers, ports["3001"]], int(ports["3001"])):
        try:
            for role, kind in zip(roles, ("gateway", "authority")):
                role.launch(kind, "--config", f"{kind}.toml", "--json")
            walk_through(tmp_path, resource)
        finally:
            for role in roles:
                if role.process is not None:
                    role.kill()


def walk_through(folder, resource):
    def say(*words):
        return typed(folder, "owner", *words, "--data", "authority-data")

    def call(tool, wait=0):
        return typed(folder, "agent", "call", resource, tool, "--accept-terms", "--wait", wait)

    deadline = time.monotonic() + 20
    while "notes/write_note" not in say("resources").stdout:
        assert time.monotonic() < deadline, say("resources")
        time.sleep(0.1)
    told(call("write_note"), 4)  # Nothing governs it yet.
    assert say("accept", "notes/write_note", "--yes").returncode == 0
    told(call("write_note"), 5)
    (family,) = [entry["family"] for entry in json.loads(say("pending", "--json").stdout)]
    assert say("approve", family).returncode == 0
    done = told(call("write_note", wait=20), 0)
    assert "ran write_note" in done.stdout
    told(call("burn_note"), 6, "unknown_tool")
    told(call("read_note"), 4)

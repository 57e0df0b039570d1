"""D-29, D-30: a server that is not there yet when `up` starts is given its first policy once it is heard, and only then;
and what a server over stdio says beside the protocol stays out of the log once it is handed what agents say."""

import json
import sys
import time

from parties import Agent
from stock import HERE, Front, line, serving
from test_changed_tools import ACT, LOOK
from town import free_port

PATIENCE = 30


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_server_heard_late_has_its_first_policy(tmp_path):
    offers, port, script = tmp_path / "tools.json", free_port(), HERE / "servers/shifty.py"
    ran = offers.with_name("tools.json.ran")
    offers.write_text(json.dumps([LOOK, ACT]))
    flags = ("--upstream", f"http://127.0.0.1:{port}/mcp", "--realm", "late")
    with Front.running(tmp_path / "up", *flags, SAYSO_GATEWAY__SURVEY_INTERVAL="1") as front:
        response = Agent().call(front.resource, "look")
        assert (response.status, response.json()["error"]) == (503, "temporarily_unavailable")
        assert front.resources() == {}
        with serving([sys.executable, script, offers, str(port)], port):
            until(lambda: all(entry["unit"] for entry in front.resources().values()) and len(front.resources()) == 2)
            assert "ran look" in front.obtain("look", {"at": "x"})
            # What appears after that is hers to govern, and nobody's until she has.
            offers.write_text(json.dumps([LOOK, ACT, ACT | {"name": "new"}]))
            until(lambda: "late/new" in front.resources())
            assert front.resources()["late/new"]["unit"] is None
            denied = front.call("new", wait=0)
            assert denied.returncode == 4, denied
            # A unit she deleted stays deleted, whatever is listed later.
            assert front.owner.request("DELETE", "/policies/act").status == 200
            offers.write_text(json.dumps([LOOK, ACT]))
            until(lambda: "late/new" not in front.resources())
            assert front.resources()["late/act"]["unit"] is None
            assert ran.read_text().split() == ["look"]


CHATTY = """
import sys
sys.stderr.write("before anybody calls\\n"); sys.stderr.flush()
code = open(sys.argv[1]).read().replace("said = json.loads(line)",
    "said = json.loads(line); sys.stderr.write('heard ' + line); sys.stderr.flush(); open(FILE.with_name('heard'), 'a').write(line)")
sys.argv = [sys.argv[1], sys.argv[2]]
exec(compile(code, sys.argv[0], "exec"))
"""


def test_what_a_server_repeats_of_a_call_is_in_no_log(tmp_path):
    offers, script, chatty = tmp_path / "tools.json", HERE / "servers/shifty.py", tmp_path / "chatty.py"
    offers.write_text(json.dumps([LOOK, ACT]))
    chatty.write_text(CHATTY)
    flags = ("--upstream-stdio", line(sys.executable, chatty, script, offers))
    with Front.running(tmp_path / "up", *flags, SAYSO_LOG="trace") as front:
        assert "ran look" in front.obtain("look", {"at": "a-secret-place"})
        front.stop()
        log = front.log.read_text()
    assert "before anybody calls" in log
    assert "a-secret-place" in offers.with_name("heard").read_text(), "it did say so"
    assert "a-secret-place" not in log

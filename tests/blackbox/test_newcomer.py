"""Whoever types a command wrongly, or meets a server that is not there, is told what to do next in words that can be
acted on; and every command that is printed can be typed as it stands."""

import json
import shlex
import subprocess
import sys
import time

import pytest

from cast import binary, environment
from stock import HERE, Front, line, serving
from test_changed_tools import ACT, LOOK
from town import free_port

TRADE = '{"symbol":"VTI","side":"buy","quantity":1}'


def typed(folder, *words, **variables):
    folder.mkdir(exist_ok=True)
    return subprocess.run([binary(), *map(str, words)], cwd=folder, env=environment(folder) | variables, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def pasted(folder, command):
    """A command as a shell takes it."""
    words = shlex.split(command)
    assert words[0] == "sayso", command
    return typed(folder, *words[1:])


def told(done, code, *words):
    assert done.returncode == code, done
    for word in words:
        assert word in done.stderr, done
    return done


def warned(front, *words):
    """Waits for one line of the log that has all these words."""
    deadline = time.monotonic() + 20
    while True:
        for entry in filter(None, front.logged().splitlines()):
            if all(word in entry for word in words):
                return entry
        assert time.monotonic() < deadline, front.logged()
        time.sleep(0.1)


# ---- flags of `up` -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("flags, words", [
    (["--upstream", ""], ["--upstream is empty"]),
    (["--upstream", " "], ["--upstream is empty"]),
    (["--upstream-stdio", ""], ["--upstream-stdio is empty"]),
    (["--realm", ""], ["--realm is empty"]),
    (["--authority", "8460"], ["8460", "HOST:PORT", "127.0.0.1:8440"]),
    (["--gateway", "localhost:8460"], ["localhost:8460", "HOST:PORT"]),
    (["--upstream-stdio", "x", "--upstream-env", "NOPE"], ["--upstream-env names NOPE", "not set"]),
    (["--upstream-stdio", "API_KEY=abc npx x"], ["API_KEY=…", "--upstream-env API_KEY"]),
])
def test_a_flag_that_means_nothing_starts_nothing(tmp_path, flags, words):
    done = told(typed(tmp_path / "here", "up", "--json", *flags), 2, *words)
    assert done.stdout == "" and "abc" not in done.stderr
    assert not (tmp_path / "here/.sayso").exists()


@pytest.mark.parametrize("flags", [["--upstream", "http://127.0.0.1:1/mcp"], ["--upstream-stdio", "a b"], ["--realm", "r"],
                                   ["--upstream-stdio", "a", "--upstream-env", "HOME"]])
def test_settings_are_printed_whichever_side_of_the_word_the_flags_are(tmp_path, flags):
    before = told(typed(tmp_path, "config", *flags, "print"), 0)
    after = told(typed(tmp_path, "config", "print", *flags), 0)
    assert before.stdout == after.stdout and "# flag" in after.stdout


# ---- servers that are not there ------------------------------------------------------------------------------------

def test_a_command_that_is_none_is_named_as_such(tmp_path):
    for name, command in [("missing", "/no/such/program"), ("ends", line(sys.executable, "-c", "pass"))]:
        with Front.running(tmp_path / name, "--upstream-stdio", command) as front:
            warned(front, "WARN", "--upstream-stdio", "--upstream-env")


def test_a_server_that_is_not_there_is_named(tmp_path):
    address = f"http://127.0.0.1:{free_port()}"
    with Front.running(tmp_path / "up", "--upstream", f"{address}/a-secret/mcp") as front:
        assert "a-secret" not in warned(front, "WARN", address, "--upstream")


def test_a_server_that_refuses_us_is_said_to(tmp_path):
    offers, port = tmp_path / "tools.json", free_port()
    offers.write_text(json.dumps([LOOK]))
    command = [sys.executable, HERE / "servers/shifty.py", offers, str(port)]
    with serving(command, port, DEMANDED="right") as url:
        with Front.running(tmp_path / "none", "--upstream", url) as front:
            warned(front, "WARN", "401", "gateway.upstream_token_env", f"127.0.0.1:{port}")
        wrong = {"SAYSO_GATEWAY__UPSTREAM_TOKEN_ENV": "TOKEN", "TOKEN": "a-wrong-one"}
        with Front.running(tmp_path / "wrong", "--upstream", url, **wrong) as front:
            assert "a-wrong-one" not in warned(front, "WARN", "401", "does not take", "gateway.upstream_token_env")


def test_a_server_that_died_is_told_from_its_gateway(tmp_path):
    offers, port = tmp_path / "tools.json", free_port()
    offers.write_text(json.dumps([LOOK]))
    with serving([sys.executable, HERE / "servers/shifty.py", offers, str(port)], port) as url:
        front = Front(tmp_path / "up", "--upstream", url)
    try:
        told(front.call("look"), 7, "502", "the server behind it")
    finally:
        front.kill()


# ---- an agent's commands -------------------------------------------------------------------------------------------

def test_an_address_that_is_almost_right(house, tmp_path):
    host, port = house.gateway.rsplit(":", 1)
    for written in (f"http://localhost:{port}/mcp", house.gateway, f"{house.resource}/"):
        told(typed(tmp_path, "agent", "tools", written), 6, house.resource, "agents call")
    nowhere = f"{host}:{free_port()}/mcp"
    told(typed(tmp_path, "agent", "call", nowhere, "x"), 7, nowhere, "`sayso up`")


def test_a_tool_that_is_not_there(house, tmp_path):
    done = told(typed(tmp_path, "agent", "call", house.resource, "nope"), 6, "unknown_tool")
    advice = done.stderr.split("`")[1]
    assert "get_positions" in pasted(tmp_path, advice).stdout


@pytest.mark.parametrize("args, word", [
    ('{"a":1,"a":2}', "duplicate member at byte 7"), ("{a:1}", "at byte 1"), ("[1]", "not an object"), ('"x"', "not an object"),
    ('{"a":12345678901234567890}', "2^53"), ('{"a":1.234567890123456789}', "17 significant digits"), ("", "unexpected end"),
    ('{"a":"\\ud800"}', "surrogate"),
])
def test_arguments_that_are_none(house, tmp_path, args, word):
    done = typed(tmp_path, "agent", "call", house.resource, "get_positions", "--args", args, "--json")
    told(done, 2, word, "--args '{")
    assert json.loads(done.stdout)["outcome"] == "usage"


def test_with_json_there_is_always_one_object(house, tmp_path):
    def outcome(code, *words):
        done = typed(tmp_path, "agent", *words, "--json")
        assert done.returncode == code and done.stdout.count("\n") == 1, done
        return json.loads(done.stdout)

    call = ("call", house.resource, "execute_trade", "--args", TRADE)
    assert outcome(3, *call)["outcome"] == "not_accepted"
    waiting = outcome(5, *call, "--accept-terms", "--wait", 0)
    assert (waiting["outcome"], waiting["authority"]) == ("waiting", house.authority)
    assert waiting["family"] in house.owner.pending()
    # What takes the wait up again can be typed as it stands, and needs nobody to agree again.
    again = pasted(tmp_path, waiting["resume"] + " --wait 0")
    assert again.returncode == 5 and "taking up the wait" in again.stderr, again
    done = typed(tmp_path, "owner", "deny", waiting["family"], "--data", house.data)
    assert done.returncode == 0, done
    assert outcome(4, *call, "--accept-terms", "--wait", 20)["outcome"] == "denied"
    refused = outcome(6, "call", house.resource, "nope")
    assert (refused["outcome"], refused["status"], refused["code"]) == ("refused", 403, "unknown_tool")
    nowhere = f"http://127.0.0.1:{free_port()}/mcp"
    assert outcome(7, "call", nowhere, "x")["outcome"] == outcome(7, "tools", nowhere)["outcome"] == "unavailable"
    assert outcome(2, "call", house.resource, "x", "--key", "nowhere.pem")["outcome"] == "usage"


def test_how_to_go_on_says_what_was_said(house, tmp_path):
    folder = tmp_path / "of mine"
    first = typed(tmp_path, "agent", "call", house.resource, "execute_trade", "--args", TRADE, "--accept-terms",
                  "--wait", 0, "--config-dir", folder)
    told(first, 5, "--accept-terms", "--config-dir")
    resume = first.stderr.strip().splitlines()[-1].strip()
    again = pasted(tmp_path, resume + " --wait 0")
    assert again.returncode == 5 and "taking up the wait" in again.stderr, again


# D-25
def test_whoever_can_read_her_key_is_warned_wherever_it_stands(tmp_path):
    front = Front(tmp_path / "up")
    try:
        project, warning = tmp_path / "project", "can read the owner's key"
        (project / "deep/er").mkdir(parents=True)
        (project / ".sayso").symlink_to(front.data)
        call = ("agent", "call", front.resource, "get_positions")
        for folder in (project, project / "deep/er"):
            assert warning in typed(folder, *call).stderr
        elsewhere = tmp_path / "elsewhere"
        assert warning in typed(elsewhere, *call, SAYSO_DATA=str(front.data)).stderr
        assert warning not in typed(elsewhere, *call).stderr
    finally:
        front.kill()


# ---- her commands --------------------------------------------------------------------------------------------------

def test_a_name_that_is_not_there(house, tmp_path):
    where = ("--data", str(house.data))
    lists = {"show": "pending", "approve": "pending", "deny": "pending", "revoke": "connections", "accept": "resources"}
    for act, listed in lists.items():
        told(typed(tmp_path, "owner", act, "nope", *where), 6, f"sayso owner {listed} --data {house.data}")
    told(typed(tmp_path, "owner", "pending"), 7, "`sayso up`", "--data")
    settled = told(typed(tmp_path, "owner", "accept", "alice-vault/get_positions", *where), 6, "nothing to accept")
    assert settled.stdout == ""


def test_nothing_runs_any_more(tmp_path):
    front = Front(tmp_path / "up")
    front.kill()
    told(front.say("pending"), 7, front.authority, "`sayso up`")


def test_an_agent_that_is_let_back_in(tmp_path):
    """The words of the refusal are what happens: the grant stays dead, and the same call asks her anew."""
    front = Front(tmp_path / "up")
    try:
        front.obtain("get_positions")
        (handle,) = front.owner.connections()
        ended = front.say("revoke", handle)
        assert ended.stdout.startswith(f"ended {handle}"), ended
        rows = len(front.owner.ledger())
        again = front.say("revoke", handle)
        assert again.returncode == 0 and "nothing to end" in again.stdout, again
        assert len(front.owner.ledger()) == rows
        told(front.call("get_positions"), 6, "access_revoked", "asks her anew")
        told(front.call("get_positions"), 5)
        (family,) = front.owner.pending()
        assert "to be let in" in front.say("show", family).stdout
        front.answer("approve")
        done = front.call("get_positions", wait=20)
        assert done.returncode == 0, done
    finally:
        front.kill()


# D-18
def test_she_is_told_how_long_a_yes_is_good_for(tmp_path):
    offers = tmp_path / "tools.json"
    offers.write_text(json.dumps([LOOK, ACT]))
    command = ("--upstream-stdio", line(sys.executable, HERE / "servers/shifty.py", offers))
    with Front.running(tmp_path / "up", *command) as front:
        expected = {
            "look": ["good for calls during 1 h", "binds it for 1 d", "promises   none", "Then you are asked again."],
            "act": ["good for this one call, within 15 min", "(upheld by the resource: single-use)", "arguments  {}"],
        }
        for tool, words in expected.items():
            waiting = front.call(tool)
            assert waiting.returncode == 5, waiting
            assert ("for this one call" if tool == "act" else "during 1 h; after that") in waiting.stderr, waiting
            (family,) = front.owner.pending()
            shown = front.say("show", family).stdout
            for word in words:
                assert word in shown, shown
            front.answer("deny")


def test_what_is_printed_can_be_typed(tmp_path):
    """With a folder of another name every command of hers that is printed names it."""
    here = tmp_path / "here"
    here.mkdir()
    process = subprocess.Popen([binary(), "up", "--data", "my data", "--authority", "127.0.0.1:0", "--gateway", "127.0.0.1:0"],
                               cwd=here, env=environment(here), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        lines = [process.stdout.readline() for _ in range(6)]
        assert any("sayso owner open --data 'my data'" in line for line in lines), lines
        assert any("sayso owner pending --data 'my data'" in line for line in lines), lines
        assert pasted(here, "sayso owner pending --data 'my data'").returncode == 0
    finally:
        process.kill()
        process.wait(15)
        process.stdout.close()

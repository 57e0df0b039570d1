"""Flags and arguments given wrongly, folders and keys that cannot be used, ports that are taken: what the command line
says before anything is served."""

import json
import re
import signal
import subprocess
import time

import pytest

from cast import binary, environment
from test_commands import FLAGS, ROLES, refused, run, settings_of, taken, written  # noqa: F401
from town import free_port, toml


def flags_in(text):
    return set(re.findall(r"^\s+(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)) - {"--help", "--version"}


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_is_here(run, command):
    status, out, _ = run(command, "--help")
    assert status == 0
    assert flags_in(out) == FLAGS[command]


@pytest.mark.parametrize("arguments", [
    [], ["frobnicate"], ["--frobnicate"], ["up", "--dta", "x"], ["up", "extra"], ["config"], ["config", "frobnicate"],
    ["owner"], ["owner", "frobnicate"], ["owner", "approve"], ["owner", "approve", "a", "b"],
    ["owner", "ledger", "--after", "x"], ["owner", "pending", "--authority", "http://127.0.0.1:1"],
    ["owner", "pending", "--key", "x"], ["agent"], ["agent", "call"], ["agent", "call", "http://127.0.0.1:1/mcp"],
    ["authority"], ["gateway"], ["authority", "--data", "x"], ["gateway", "--upstream", "x"],
], ids=" ".join)
def test_usage(run, arguments):
    status, out, err = run(*arguments)
    assert status == 2 and out == "", (status, out)
    assert "--help" in err or "Usage:" in err, err
    assert "panicked" not in err, err


@pytest.mark.parametrize("command, flag", [
    (command, flag) for command, flags in FLAGS.items() for flag in sorted(flags - {"--json"})])
def test_a_flag_without_its_value(run, command, flag):
    status, out, err = run(command, flag)
    assert status == 2 and out == "" and flag in err, err


@pytest.mark.parametrize("flag", sorted(FLAGS["up"] - {"--json", "--upstream-env"}))
def test_a_flag_twice(run, flag):
    status, out, err = run("up", flag, "x", flag, "y")
    assert status == 2 and out == "" and flag in err, err


@pytest.mark.parametrize("flag, value, word", [
    ("--authority", "nonsense", "nonsense"), ("--gateway", "nonsense", "nonsense"), ("--authority", "0.0.0.0:0", "loopback"),
    ("--gateway", "[::]:0", "loopback"), ("--owner", "A b", "A b"), ("--data", "", "data"), ("--config", "nowhere", "nowhere"),
    ("--data", "/proc/nowhere", "/proc/nowhere"),
])
def test_a_flag_with_a_bad_value(run, tmp_path, flag, value, word):
    others = {"--data": tmp_path / "data", "--authority": "127.0.0.1:0", "--gateway": "127.0.0.1:0"} | {flag: value}
    refused(run("up", "--json", *[part for pair in others.items() for part in pair]), word)


@pytest.mark.parametrize("role", ["up", *ROLES])
def test_a_port_in_use(run, tmp_path, taken, role):
    for name in ("authority", "gateway"):
        if role in ("up", name):
            settings, tables = settings_of(role, tmp_path, {f"{name}.listen": taken})
            refused(run(role, "--config", written(tmp_path, toml(settings, tables))), taken, "another address")


@pytest.mark.parametrize("role", ["up", *ROLES])
def test_a_folder_in_use(run, tmp_path, role):
    """A second process on one data folder is told who is in the way."""
    settings, tables = settings_of(role, tmp_path)
    file = written(tmp_path, toml(settings, tables))
    first = subprocess.Popen([binary(), role, "--config", file, "--json"], cwd=tmp_path, env=environment(tmp_path),
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert json.loads(first.stdout.readline())["ready"] is True
        refused(run(role, "--config", file), "data")
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(15) == 0
        first.stdout.close()


@pytest.mark.parametrize("name", ["owner-alice.pem", "gateway.pem", "grants.pem", "seal.key"])
@pytest.mark.parametrize("how", ["garbage", "empty", "open to others", "a folder"])
def test_a_key_that_cannot_be_used(run, tmp_path, name, how):
    """Refused by name, never replaced, and its content never shown."""
    keys = tmp_path / "data/keys"
    keys.mkdir(parents=True, mode=0o700)
    (tmp_path / "data").chmod(0o700)
    path = keys / name
    if how == "a folder":
        path.mkdir()
    else:
        path.write_text("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n" if how == "garbage" else "")
        path.chmod(0o644 if how == "open to others" else 0o600)
    before = path.read_bytes() if path.is_file() else None
    outcome = run("up", "--data", tmp_path / "data", "--authority", "127.0.0.1:0", "--gateway", "127.0.0.1:0")
    refused(outcome, name)
    assert "c2VjcmV0" not in outcome[2]
    assert before is None or path.read_bytes() == before


def test_a_store_of_something_else(run, tmp_path):
    import sqlite3
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE mine (x)").connection.commit()
    settings, tables = settings_of("authority", tmp_path, {"store.url": f"sqlite:{tmp_path / 'other.db'}"})
    refused(run("authority", "--config", written(tmp_path, toml(settings, tables))), "other.db")


# ---- her terminal --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("act", [["pending"], ["show", "f"], ["approve", "f"], ["deny", "f"], ["connections"],
                                 ["revoke", "jkt:x"], ["resources"], ["resource-servers"], ["policies"], ["ledger"]],
                         ids=lambda act: act[0])
def test_her_commands_without_an_authority(run, tmp_path, house, act):
    key = house.ready["owner_key"]
    here = ["--authority", house.authority, "--key"]
    refused(run("owner", *act, "--data", tmp_path / "nowhere"), "nowhere", code=7)
    refused(run("owner", *act, "--authority", f"http://127.0.0.1:{free_port()}", "--key", key), "127.0.0.1", code=7)
    refused(run("owner", *act, *here, tmp_path / "missing.pem"), "missing.pem", code=7)
    refused(run("owner", *act, *here, written(tmp_path, "no key", "bad.pem")), "bad.pem", code=7)
    refused(run("owner", *act, "--authority", "nonsense", "--key", key), "nonsense", code=7)
    refused(run("owner", *act, "--authority", house.gateway, "--key", key), "authority", code=7)
    stranger = written(tmp_path, (house.data / "keys/gateway.pem").read_text(), "stranger.pem")
    refused(run("owner", *act, *here, stranger), code=6)
    if len(act) == 2:
        refused(run("owner", *act, *here, key), code=6)


def test_a_broken_ready_file(run, tmp_path):
    for text in ("", "{}", "[]", '{"authority": 7}', "\0"):
        written(tmp_path, text, "ready.json")
        refused(run("owner", "pending", "--data", tmp_path), "ready.json", code=7)


def test_interrupted_while_starting(tmp_path):
    """SIGTERM at any moment of the start ends it, and the folder can be used afterwards."""
    command = [binary(), "up", "--data", tmp_path / "data", "--authority", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--json"]
    for pause in (0, 0.01, 0.03, 0.06, 0.1, 0.2):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        time.sleep(pause)
        process.terminate()
        out, err = process.communicate(timeout=20)
        assert process.returncode in (0, -signal.SIGTERM), (process.returncode, err)
        assert b"panicked" not in err
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE)
    assert json.loads(process.stdout.readline())["ready"] is True
    process.terminate()
    assert process.wait(15) == 0
    process.stdout.close()

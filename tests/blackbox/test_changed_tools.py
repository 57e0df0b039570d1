"""D-30: a tool runs under the definition its owner has seen, or not at all. The server here changes what it says of its
tools while it is served, over stdio, where it says so, and over HTTP, where it is asked every second."""

import json
import sys
import time
from contextlib import ExitStack

import pytest

from parties import Agent
from stock import HERE, Front, line, serving
from town import free_port

HARMLESS = {"readOnlyHint": True, "openWorldHint": False}
LOOK = {"name": "look", "description": "Looks.", "annotations": HARMLESS,
        "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}}}
ACT = {"name": "act", "description": "Acts.", "inputSchema": {"type": "object"}}
CHANGES = {
    "it stops being harmless": {"annotations": HARMLESS | {"destructiveHint": True}},
    "it says nothing of itself": {"annotations": {}},
    "its arguments": {"inputSchema": {"type": "object", "properties": {"at": {"type": "string"}, "to": {"type": "string"}}}},
    "its result": {"outputSchema": {"type": "object", "properties": {"seen": {"type": "string"}}}},
}
PATIENCE = 20


class Shifty:
    """The server, told by its file what to say, and `up` in front of it."""

    def __init__(self, folder, over, stack):
        self.file, self.script = folder / "tools.json", HERE / "servers/shifty.py"
        self.offer(LOOK, ACT)
        command = [sys.executable, self.script, self.file]
        if over == "stdio":
            flags = ("--upstream-stdio", line(*command))
        else:
            port = free_port()
            flags = ("--upstream", stack.enter_context(serving([*command, str(port)], port)))
        self.front = stack.enter_context(Front.running(folder / "up", *flags, SAYSO_GATEWAY__SURVEY_INTERVAL="1"))

    def offer(self, *tools):
        """All at once, as a server restarted with a new version would."""
        new = self.file.with_name("new.json")
        new.write_text(json.dumps(tools))
        new.replace(self.file)

    def ran(self):
        record = self.file.with_name(self.file.name + ".ran")
        return record.read_text().split() if record.exists() else []

    def until(self, condition):
        """Waits for what the owner's authority knows."""
        deadline = time.monotonic() + PATIENCE
        while not condition(known := self.front.resources()):
            assert time.monotonic() < deadline, known
            time.sleep(0.1)
        return known


@pytest.fixture(params=["stdio", "http"])
def shifty(request, tmp_path):
    with ExitStack() as stack:
        yield Shifty(tmp_path, request.param, stack)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_tool_does_not_get_its_next_call(shifty, change):
    front = shifty.front
    assert "ran look" in front.obtain("look")
    assert front.call("look").returncode == 0  # The grant is good for more than one call.
    before = shifty.ran()

    shifty.offer(LOOK | CHANGES[change], ACT)
    shifty.until(lambda known: known["shifty/look"].get("changed"))
    for home in ("agent", "stranger"):
        refused = front.call("look", home=home)
        assert (refused.returncode, refused.stdout) == (6, ""), refused
        assert "403 (tool_changed)" in refused.stderr
    response = Agent().call(front.resource, "look", version="2025-11-25")
    assert response.status == 403 and response.json()["error"] == "tool_changed", response
    assert not response.all("www-authenticate") and "ticket" not in response.json()
    assert (shifty.ran(), front.owner.pending()) == (before, {})

    shown = front.say("resources")
    assert any("look" in line and "changed" in line for line in shown.stdout.splitlines()), shown
    (member, value), = CHANGES[change].items()
    difference = front.say("accept", "shifty/look")
    assert difference.returncode == 0, difference
    changed = [line for line in difference.stdout.splitlines() if line.startswith(("+ ", "- "))]
    assert changed, difference
    told = "\n".join(changed)
    word = next(iter(value), "readOnlyHint") if member == "annotations" else "to" if member == "inputSchema" else "seen"
    assert (word if change != "it stops being harmless" else "destructiveHint") in told, difference
    assert front.call("look").returncode == 6  # Shown is not accepted.

    accepted = front.say("accept", "shifty/look", "--yes")
    assert accepted.returncode == 0, accepted
    shifty.until(lambda known: not known["shifty/look"].get("changed"))
    assert shifty.ran() == before
    unit = front.owner.read("/policies")["look"]
    # What may now do anything is asked about each time, by itself; nothing is ever loosened so.
    assert unit["terms"]["per_operation"] is (member == "annotations") and unit["ask_me"]
    assert "ran look" in front.obtain("look", home="stranger")
    assert shifty.ran() == [*before, "look"]


def test_a_change_of_words_alone_suspends_nothing(shifty):
    front = shifty.front
    front.obtain("look")
    shifty.offer(LOOK | {"description": "Looks closely."}, ACT)
    known = shifty.until(lambda known: known["shifty/look"].get("accepted"))
    # It is shown, and that is all.
    assert known["shifty/look"]["changed"] is False and "accepted" not in known["shifty/act"]
    assert any("look" in line and "other words" in line for line in front.say("resources").stdout.splitlines())
    assert front.call("look").returncode == 0
    shown = front.say("accept", "shifty/look")
    assert '- /description: "Looks."' in shown.stdout and '+ /description: "Looks closely."' in shown.stdout, shown
    rows = len(front.owner.ledger())
    assert front.say("accept", "shifty/look", "--yes").returncode == 0
    assert "accepted" not in front.resources()["shifty/look"]
    assert len(front.owner.ledger()) == rows + 1
    assert front.say("accept", "shifty/look", "--yes").returncode == 6
    assert front.call("look").returncode == 0


def test_a_tool_that_appears_later_is_denied_until_she_governs_it(shifty):
    front = shifty.front
    late = {"name": "late", "description": "Looks as well.", "annotations": HARMLESS, "inputSchema": {"type": "object"}}
    shifty.offer(LOOK, ACT, late, {"name": "risky", "inputSchema": {"type": "object"}})
    known = shifty.until(lambda known: {"shifty/late", "shifty/risky"} <= set(known))
    assert known["shifty/late"].get("unit") is None
    refused = front.call("late")
    assert (refused.returncode, refused.stdout) == (4, ""), refused
    assert "the resource owner has not decided about this tool yet" in refused.stderr
    assert (shifty.ran(), front.owner.pending()) == ([], {})

    # What it says of itself is shown, and nothing is made of it by that.
    assert any("late" in line and "until you accept it" in line for line in front.say("resources").stdout.splitlines())
    shown = front.say("accept", "shifty/late")
    assert shown.returncode == 0 and '+ /description: "Looks as well."' in shown.stdout, shown
    hint = shown.stdout.strip().splitlines()[-1]
    assert hint.endswith(f"sayso owner accept shifty/late --yes --data {front.data}"), shown
    assert front.call("late").returncode == 4 and "late" not in front.owner.read("/policies")

    # Accepted it is in the unit it would have been in at first, made by her.
    first = front.owner.read("/policies")
    for tool, like in (("late", "look"), ("risky", "act")):
        made = front.say("accept", f"shifty/{tool}", "--yes")
        assert made.returncode == 0, made
        unit = front.owner.read("/policies")[tool]
        assert unit["resources"] == [f"shifty/{tool}"] and unit["ask_me"]
        for member in ("purpose", "expires_in", "prohibited", "per_operation", "enforced"):
            assert unit["terms"].get(member) == first[like]["terms"].get(member), member
        assert f"ran {tool}" in front.obtain(tool)
    assert shifty.ran() == ["late", "risky"]
    assert front.say("accept", "shifty/late", "--yes").returncode == 6


def test_a_tool_that_vanishes_is_gone(shifty):
    front = shifty.front
    front.obtain("look")
    before = shifty.ran()
    shifty.offer(ACT)
    shifty.until(lambda known: "shifty/look" not in known)
    refused = front.call("look")
    assert (refused.returncode, refused.stdout) == (6, ""), refused
    assert "unknown_tool" in refused.stderr
    assert shifty.ran() == before

    # With an equal definition it is the tool she knew, in the unit it was in.
    shifty.offer(LOOK, ACT)
    known = shifty.until(lambda known: "shifty/look" in known)
    assert known["shifty/look"]["unit"] == "look" and not known["shifty/look"].get("changed")


def test_an_empty_listing_removes_nothing(shifty):
    front = shifty.front
    shifty.offer()
    time.sleep(2.5)
    assert set(front.resources()) == {"shifty/look", "shifty/act"}
    assert "ran look" in front.obtain("look")

"""D-29, D-30: a data folder that has seen a server serves another one, or the same under another name, without a dead end and
without touching what its owner has; and ids do not turn on how long a server took to say its first word."""

import json
import sys
import time

from parties import Agent
from stock import HERE, Front, line
from test_changed_tools import ACT, LOOK

PATIENCE = 40


def command(offers):
    return ("--upstream-stdio", line(sys.executable, HERE / "servers/shifty.py", offers))


def offering(folder, *tools):
    folder.mkdir(exist_ok=True)
    file = folder / "tools.json"
    file.write_text(json.dumps(tools))
    return file


def units(front):
    return {resource: name for name, unit in front.owner.read("/policies").items() for resource in unit["resources"]}


def test_another_server_with_a_tool_of_the_same_name(tmp_path):
    first, second = offering(tmp_path / "one", LOOK, ACT), offering(tmp_path / "two", LOOK)
    with Front.running(tmp_path / "up", *command(first)) as front:
        # What she made of her units is hers.
        assert front.owner.request("PUT", "/policies/look", {"terms": {"purpose": "hers"}}).status == 200
        mine = front.owner.read("/policies")
        front.stop()
    named = ("--upstream-env", "NAMED")
    with Front.running(tmp_path / "up", *command(second), *named, NAMED="other") as front:
        assert units(front) == {"shifty/look": "look", "shifty/act": "act", "other/look": "look-2"}
        now = front.owner.read("/policies")
        assert {name: now[name]["terms"]["purpose"] for name in mine} == \
            {name: mine[name]["terms"]["purpose"] for name in mine}
        assert {name: now[name]["resources"] for name in mine} == {name: mine[name]["resources"] for name in mine}
        assert "ran look" in front.obtain("look")
        front.stop()
    # Under a realm of one's own it is a third thing, and going back finds everything as it was.
    with Front.running(tmp_path / "up", *command(first), "--realm", "mine") as front:
        assert units(front) == {"shifty/look": "look", "shifty/act": "act", "other/look": "look-2",
                                "mine/look": "look-3", "mine/act": "act-2"}
        front.stop()
    with Front.running(tmp_path / "up", *command(first)) as front:
        assert {key: entry["unit"] for key, entry in front.resources().items()} == \
            {"shifty/look": "look", "shifty/act": "act"}
        assert "ran act" in front.obtain("act", home="third")


def test_a_realm_of_any_length_is_remembered(tmp_path):
    offers = offering(tmp_path / "one", LOOK)
    for _ in range(2):
        with Front.running(tmp_path / "up", *command(offers), "--realm", "r" * 300) as front:
            assert units(front) == {"r" * 300 + "/look": "look"}
            front.stop()


def test_a_slow_first_word_makes_the_ids_of_a_fast_one(tmp_path):
    offers = offering(tmp_path / "one", LOOK, ACT)
    flags = (*command(offers), "--upstream-env", "SLOW")
    with Front.running(tmp_path / "up", *flags, SLOW="12") as front:
        # Nothing is fixed before it was heard, and nobody is challenged.
        assert (front.resources(), units(front)) == ({}, {})
        response = Agent().call(front.resource, "look")
        # While that call waited for its first word it may have said which revision it speaks.
        assert response.status in (400, 503) and not response.all("www-authenticate"), response
        deadline = time.monotonic() + PATIENCE
        while len(units(front)) < 2:
            assert time.monotonic() < deadline, front.logged()
            time.sleep(0.2)
        assert units(front) == {"shifty/look": "look", "shifty/act": "act"}
        assert Agent().call(front.resource, "look", version="2025-11-25").json()["realm"] == "shifty"
        (gateway,) = front.owner.read("/resource-servers")
        assert gateway["name"] == "shifty"
        front.stop()
    with Front.running(tmp_path / "up", *flags, SLOW="0") as front:
        assert {key: entry["unit"] for key, entry in front.resources().items()} == \
            {"shifty/look": "look", "shifty/act": "act"}
        assert units(front) == {"shifty/look": "look", "shifty/act": "act"}

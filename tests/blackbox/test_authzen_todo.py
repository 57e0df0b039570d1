"""AuthZEN's interoperability scenario: a list of things to do, shared by five people with roles. A decision point is
loaded with who they are; what a request says of a todo is its owner's address. Any can be tried, as in `test_authzen.py`.

Everybody sees people and todos. Admins and editors create; an evil genius changes any todo and an admin deletes any;
an editor does both to those of her own. Whoever is only a viewer changes nothing, not even his own."""

from itertools import product

import pytest

from points import TRIED, expect_lacking, opened
from stock import HERE

# Name, subject, address and roles, in the scenario's own identifiers.
PEOPLE = {
    "rick": ("CiRmZDA2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs", "rick@the-citadel.com",
             {"admin", "evil_genius"}),
    "morty": ("CiRmZDE2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs", "morty@the-citadel.com", {"editor"}),
    "summer": ("CiRmZDI2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs", "summer@the-smiths.com", {"editor"}),
    "beth": ("CiRmZDM2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs", "beth@the-smiths.com", {"viewer"}),
    "jerry": ("CiRmZDQ2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs", "jerry@the-smiths.com", {"viewer"}),
}
# The decisions, as who may: on a todo of one's own, and on somebody else's.
CREATES = {"rick", "morty", "summer"}
UPDATES = {"own": {"rick", "morty", "summer"}, "other": {"rick"}}
DELETES = {"own": {"rick", "morty", "summer"}, "other": {"rick"}}


@pytest.fixture(scope="module", params=TRIED)
def point(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp("pdp"), HERE / "data/todo") as point:
        yield point


@pytest.fixture(autouse=True)
def known(request):
    expect_lacking(request, {("test_a_whole_list_at_once", "empty-parts"): "it refuses a part that is empty at the top"})


def subject(who):
    return {"type": "user", "id": PEOPLE[who][0]}


def todo(owner):
    number = 91 + ["morty", "rick", "summer", "beth", "jerry"].index(owner)
    return {"type": "todo", "id": f"7240d0db-8ff0-41ec-98b2-34a096273b{number}",
            "properties": {"ownerID": PEOPLE[owner][1]}}


@pytest.mark.parametrize("who", PEOPLE)
def test_what_everybody_sees(point, who):
    for whom in PEOPLE:
        for name in PEOPLE[whom][:2]:
            assert point.decide(subject=subject(who), action={"name": "can_read_user"},
                                resource={"type": "user", "id": name}) is True
    for context in ({}, {"context": {}}):
        assert point.decide(subject=subject(who), action={"name": "can_read_todos"},
                            resource={"type": "todo", "id": "todo-1"}, **context) is True


@pytest.mark.parametrize("who", PEOPLE)
def test_who_creates(point, who):
    answer = point.decide(subject=subject(who), action={"name": "can_create_todo"},
                          resource={"type": "todo", "id": "todo-1"})
    assert answer is (who in CREATES)


@pytest.mark.parametrize("who, owner", list(product(PEOPLE, PEOPLE)))
def test_who_changes_whose(point, who, owner):
    whose = "own" if who == owner else "other"
    for action, may in (("can_update_todo", UPDATES), ("can_delete_todo", DELETES)):
        answer = point.decide(subject=subject(who), action={"name": action}, resource=todo(owner))
        assert answer is (who in may[whose]), (who, action, owner)


@pytest.mark.parametrize("top", [{}, {"resource": {}, "context": {}}], ids=["bare", "empty-parts"])
@pytest.mark.parametrize("who", PEOPLE)
def test_a_whole_list_at_once(point, who, top):
    # The scenario's own frontend has an empty resource at the top.
    owners = ["rick", "jerry", "morty", "rick", "summer", "beth"]
    may = [who in UPDATES["own" if who == owner else "other"] for owner in owners]
    entries = [{"resource": todo(owner)} for owner in owners]
    assert point.decide_each(entries, subject=subject(who), action={"name": "can_update_todo"}, **top) == may


def test_a_stranger_changes_nothing(point):
    for action in ("can_create_todo", "can_update_todo", "can_delete_todo"):
        assert point.decide(subject={"type": "user", "id": "nobody"}, action={"name": action},
                            resource=todo("morty")) is False
    assert point.decide(subject=subject("rick"), action={"name": "can_burn_todo"}, resource=todo("rick")) is False

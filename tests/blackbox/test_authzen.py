"""What a policy decision point of OpenID AuthZEN 1.0 has to answer to be certified for single decisions, for several, and
for its metadata. Any can be tried: AUTHZEN_PDP_URL names it and AUTHZEN_PDP_TOKEN what it is shown as a bearer token; it
has to be loaded with the fixture below first. Without them it is `sayso pdp` over `data/authzen`, and one by others over
`engines/policies`, which is known to answer some of it otherwise. Search is in `test_authzen_search.py`.

The fixture: users `alice` and `bob`; records `record-1` and `record-2`; actions `read`, `write` and `delete`. On
`record-1` alice reads and writes, bob reads and does not write. Nobody writes a record whose status is archived, but a user
whose role is admin does. Alice deletes `record-1` where the action says that it is soft, and not where it is not."""

import json
import secrets
from urllib.parse import urlsplit

import pytest

from points import JSON, TRIED, expect_lacking, opened
from stock import HERE
from wire import send, unb64

ALICE, BOB = {"type": "user", "id": "alice"}, {"type": "user", "id": "bob"}
FIRST, SECOND = {"type": "record", "id": "record-1"}, {"type": "record", "id": "record-2"}
READ, WRITE = {"name": "read"}, {"name": "write"}
ARCHIVED = SECOND | {"properties": {"status": "archived"}}
ACTIVE = FIRST | {"properties": {"status": "active"}}
ADMIN = BOB | {"properties": {"role": "admin"}}
# What the other engine answers otherwise, by the test and a part of its case.
LACKING = {
    ("test_properties_decide", "subject2"): "it hears of no properties of an action",
    ("test_what_is_more_than_needed_is_passed_over", ""): "it refuses members that it does not know",
    ("test_what_is_no_json_is_400", "another type"): "it takes any media type",
    ("test_a_request_keeps_its_name", ""): "it does not send X-Request-ID back",
    ("test_an_entry_that_is_none_is_a_no_in_its_place", ""): "it refuses the whole request",
    ("test_nothing_is_put_together_of_two_parts", ""): "it refuses the whole request",
    ("test_without_entries_it_is_one_decision", ""): "it wants entries",
}


@pytest.fixture(scope="module", params=TRIED)
def engine(request, tmp_path_factory):
    with opened(request.param, tmp_path_factory.mktemp("pdp"), HERE / "data/authzen") as point:
        yield point


@pytest.fixture(autouse=True)
def known(request):
    expect_lacking(request, LACKING)


# ---- one decision --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject, action, resource, decision", [
    (ALICE, READ, FIRST, True),
    (ALICE, WRITE, FIRST, True),
    (BOB, READ, FIRST, True),
    (BOB, WRITE, FIRST, False),
])
def test_names_alone_decide(engine, subject, action, resource, decision):
    for _ in range(3):
        assert engine.decide(subject=subject, action=action, resource=resource) is decision
    context = {"time": "2026-11-30T18:00-07:00", "ip": "192.0.2.1"}
    assert engine.decide(subject=subject, action=action, resource=resource, context=context) is decision


@pytest.mark.parametrize("subject, action, resource, decision", [
    (ALICE, WRITE, ARCHIVED, False),
    (ADMIN, WRITE, ARCHIVED, True),
    (ALICE, {"name": "delete", "properties": {"soft": True}}, FIRST, True),
    (ALICE, {"name": "delete", "properties": {"soft": False}}, FIRST, False),
])
def test_properties_decide(engine, subject, action, resource, decision):
    assert engine.decide(subject=subject, action=action, resource=resource) is decision


def test_what_is_more_than_needed_is_passed_over(engine):
    subject = ALICE | {"properties": {"department": "Sales", "role": "manager", "level": 1.5, "manager": None}}
    action = READ | {"properties": {"method": "GET"}}
    resource = FIRST | {"properties": {"status": "active", "owner": "bob"}}
    assert engine.decide(subject=subject, action=action, resource=resource) is True
    assert engine.decide(subject=ALICE, action=READ, resource=FIRST, foo="bar", later={"nested": True}) is True


def without(member, part=None):
    request = {"subject": ALICE, "action": READ, "resource": FIRST}
    if part is None:
        del request[member]
    else:
        request[member] = {name: value for name, value in request[member].items() if name != part}
    return request


@pytest.mark.parametrize("request_", [
    without("subject"), without("action"), without("resource"),
    without("subject", "type"), without("subject", "id"), without("action", "name"),
    without("resource", "type"), without("resource", "id"),
    {"subject": "alice", "action": READ, "resource": FIRST},
    {"subject": ALICE, "action": {"name": 123}, "resource": FIRST},
], ids=json.dumps)
def test_what_is_no_request_is_400(engine, request_):
    for url in (engine.single, engine.batch):
        assert engine.post(url, request_).status == 400


@pytest.mark.parametrize("body, headers", [
    (b"{", [JSON]),
    (b"", [JSON]),
    (json.dumps({"subject": ALICE, "action": READ, "resource": FIRST}).encode(), [("Content-Type", "text/plain")]),
], ids=["broken", "empty", "another type"])
def test_what_is_no_json_is_400(engine, body, headers):
    for url in (engine.single, engine.batch):
        assert engine.post(url, body, *headers).status == 400


def test_a_request_keeps_its_name(engine):
    request = {"subject": ALICE, "action": READ, "resource": FIRST}
    name = secrets.token_hex(16)
    for url in (engine.single, engine.batch):
        response = engine.post(url, request, JSON, ("X-Request-ID", name))
        assert (response.status, response.header("x-request-id")) == (200, name)
        assert engine.post(url, request).status == 200


# ---- several -------------------------------------------------------------------------------------------------


def test_each_entry_has_its_decision_in_its_place(engine):
    assert len(engine.decide_each([{"resource": FIRST}, {"resource": SECOND}], subject=ALICE, action=READ)) == 2
    assert engine.decide_each([{"action": READ}, {"action": WRITE}], subject=BOB, resource=FIRST) == [True, False]
    assert engine.decide_each([
        {"subject": ALICE, "action": READ, "resource": FIRST}, {"subject": BOB, "action": WRITE, "resource": FIRST},
    ]) == [True, False]
    assert len(engine.decide_each([
        {"resource": FIRST}, {"resource": SECOND, "context": {"time": "19:00", "source": "entry"}},
    ], subject=ALICE, action=READ, context={"time": "18:00"})) == 2


def test_each_entry_has_its_properties(engine):
    assert engine.decide_each([{"resource": ACTIVE}, {"resource": ARCHIVED}], subject=ALICE, action=WRITE) == \
        [True, False]
    assert engine.decide_each([{"subject": ALICE}, {"subject": ADMIN}], action=WRITE, resource=ARCHIVED) == \
        [False, True]
    # An entry takes a part whole from above, or has one of its own.
    assert engine.decide_each([{}, {"resource": ARCHIVED}], subject=ALICE, action=WRITE, resource=ACTIVE) == [True, False]


def test_an_entry_that_is_none_is_a_no_in_its_place(engine):
    options = {"evaluations_semantic": "execute_all"}
    for more in ({}, {"options": options}):
        assert engine.decide_each([{"resource": FIRST}, {}], subject=ALICE, action=READ, **more) == [True, False]


def test_nothing_is_put_together_of_two_parts(engine):
    top = {"type": "record", "id": "record-1"}
    for part in ({"id": "record-1"}, {"type": "record"}, {"properties": {"status": "active"}}, {}):
        assert engine.decide_each([{"resource": part}, {}], subject=ALICE, action=READ, resource=top) == [False, True]


@pytest.mark.parametrize("evaluations", [{}, {"evaluations": []}], ids=["none", "empty"])
def test_without_entries_it_is_one_decision(engine, evaluations):
    answer = engine.ask(engine.batch, {"subject": ALICE, "action": READ, "resource": FIRST} | evaluations)
    assert answer["decision"] is True and "evaluations" not in answer


@pytest.mark.parametrize("semantic, decisions", [
    ("execute_all", [True, False, True, False]),
    ("deny_on_first_deny", [True, False]),
    ("permit_on_first_permit", [True]),
])
def test_a_semantic_says_where_it_ends(engine, semantic, decisions):
    entries = [{"subject": subject} for subject in (ALICE, BOB, ALICE, BOB)]
    options = {"evaluations_semantic": semantic}
    assert engine.decide_each(entries, action=WRITE, resource=FIRST, options=options) == decisions


# ---- metadata ------------------------------------------------------------------------------------------------


# COAZ-FW-28, COAZ-MCP-21
def test_the_metadata_names_it_and_what_it_offers(engine):
    response = send("GET", engine.metadata_url)
    assert response.status == 200, response
    assert response.header("content-type").split(";")[0].strip() == "application/json"
    known = response.json()
    assert known["policy_decision_point"] == engine.url
    endpoints = [value for name, value in known.items() if name.endswith("_endpoint")]
    assert known["access_evaluation_endpoint"] in endpoints
    for url in endpoints:
        parts = urlsplit(url)
        assert parts.hostname and (parts.scheme == "https" or parts.hostname in ("127.0.0.1", "localhost")), url
    assert all(isinstance(urn, str) for urn in known.get("capabilities", []))
    if "signed_metadata" in known:
        assert "iss" in json.loads(unb64(known["signed_metadata"].split(".")[1]))
    for name in ("search_subject_endpoint", "search_resource_endpoint", "search_action_endpoint"):
        if name not in known:
            path = engine.url + "/access/v1/search/" + name.split("_")[1]
            assert engine.post(path, {"subject": ALICE, "action": READ, "resource": FIRST}).status == 404

"""What a policy decision point of OpenID AuthZEN 1.0 has to answer to be certified for search, beside `test_authzen.py` and
over its fixture. AUTHZEN_PDP_URL names the one to try; what its metadata does not offer is not asked. `sayso pdp` offers
none of it, so without a URL the questions are tried on a small one written here, and on the same with faults: whoever has
a fault fails them.

On the fixture alice and bob read `record-1`, which alice reads and writes as well; bob as an admin writes `record-2` while
it is archived."""

import json

import pytest

from engine import _Served, as_json
from points import JSON, NAMED, Point, opened

USER, RECORD = {"type": "user"}, {"type": "record"}
ALICE, BOB, ADMIN = ({"type": "user", "id": "alice"}, {"type": "user", "id": "bob"},
                     {"type": "user", "id": "bob", "properties": {"role": "admin"}})
FIRST, SECOND = RECORD | {"id": "record-1"}, RECORD | {"id": "record-2"}
ARCHIVED = SECOND | {"properties": {"status": "archived"}}
READ, WRITE = {"name": "read"}, {"name": "write"}
CONTEXT = {"context": {"time": "2026-11-30T18:00-07:00", "ip": "192.0.2.1"}}


class Finder(_Served):
    """A decision point that finds: by trying everything that it knows."""

    def __init__(self, fault=None):
        self.fault = fault
        super().__init__()

    def get(self, path):
        if path != "/.well-known/authzen-configuration":
            return super().get(path)
        names = {f"search_{kind}_endpoint": f"{self.url}/access/v1/search/{kind}"
                 for kind in ("subject", "resource", "action")}
        return as_json({"policy_decision_point": self.url, "access_evaluation_endpoint": self.url + "/e"} | names)

    def post(self, path, headers, body):
        kind, body = path.rsplit("/", 1)[1], json.loads(body)
        needed = {"subject": ("type", "id"), "resource": ("type", "id"), "action": ("name",)}
        needed[kind] = needed[kind][:1] if kind != "action" else ()
        if any(member not in body.get(part, {}) for part, members in needed.items() for member in members):
            return (200, "application/json", b'{"results":[]}') if self.fault == "lenient" else (400, "text/plain", b"no")
        found = list(self.found(kind, body))
        if self.fault == "id" and body.get(kind, {}).get("id"):
            found = [one for one in found if one.get("id") == body[kind]["id"]]
        if not found and self.fault == "empty":
            return 404, "text/plain", b"nobody"
        answer = {"results": found}
        if "page" in body:
            answer["page"] = {"next_token": None if self.fault == "page" else ""}
        return as_json(answer)

    def found(self, kind, body):
        for name in {"subject": ("alice", "bob"), "resource": ("record-1", "record-2"), "action": ("read", "write")}[kind]:
            own = body.get(kind, {})
            one = {"name": name} if kind == "action" else {"type": own["type"], "id": name}
            subject, action, resource = ((one | {"properties": own.get("properties", {})}) if kind == part else body[part]
                                         for part in ("subject", "action", "resource"))
            if kind == "subject" and name == "bob":
                subject["properties"] = {"role": "admin"}
            if kind == "resource" and name == "record-2":
                resource["properties"] = {"status": "archived"}
            if self.may(subject, action["name"], resource):
                yield one

    def may(self, subject, action, resource):
        if (subject["type"], resource["type"]) != ("user", "record") or subject["id"] not in ("alice", "bob"):
            return False
        archived = resource.get("properties", {}).get("status") == "archived"
        if action == "read":
            return resource["id"] == "record-1"
        if archived:
            return subject.get("properties", {}).get("role") == "admin"
        return subject["id"] == "alice"


@pytest.fixture(scope="module")
def point(tmp_path_factory):
    if NAMED:
        with opened("named", tmp_path_factory.mktemp("pdp"), None) as point:
            yield point
        return
    finder = Finder()
    yield Point(finder.url)
    finder.close()


def search(point, kind, **request):
    """What is found, as pairs or names; the whole answer is checked for its form."""
    url = point.endpoint(f"search_{kind}_endpoint") or pytest.skip(f"no search for a {kind} is offered")
    answer = point.ask(url, request)
    assert isinstance(answer["results"], list)
    page = answer.get("page", {"next_token": ""})
    assert isinstance(page, dict) and isinstance(page["next_token"], str)
    if kind == "action":
        return {one["name"] for one in answer["results"]}
    assert all(one["type"] == request[kind]["type"] for one in answer["results"]), answer
    return {one["id"] for one in answer["results"]}


def the_subjects_of_an_action(point):
    found = search(point, "subject", subject=USER, action=READ, resource=FIRST)
    assert found >= {"alice", "bob"}
    assert search(point, "subject", subject=USER, action=READ, resource=FIRST, **CONTEXT) == found
    assert search(point, "subject", subject=ALICE, action=READ, resource=FIRST) == found, "an id there is ignored"
    assert "bob" in search(point, "subject", subject=USER, action=WRITE, resource=ARCHIVED)


def the_resources_of_a_subject(point):
    found = search(point, "resource", subject=ALICE, action=READ, resource=RECORD)
    assert "record-1" in found
    assert search(point, "resource", subject=ALICE, action=READ, resource=RECORD, **CONTEXT) == found
    for resource in (FIRST, SECOND):
        assert search(point, "resource", subject=ALICE, action=READ, resource=resource) == found
    assert "record-2" in search(point, "resource", subject=ADMIN, action=WRITE, resource=RECORD)


def the_actions_of_a_subject_on_a_resource(point):
    found = search(point, "action", subject=ALICE, resource=FIRST)
    assert found >= {"read", "write"}
    assert search(point, "action", subject=ALICE, resource=FIRST, **CONTEXT) == found
    assert "write" in search(point, "action", subject=ADMIN, resource=ARCHIVED)


def pages(point):
    url = point.endpoint("search_subject_endpoint") or pytest.skip("no search for a subject is offered")
    whole = {"subject": USER, "action": READ, "resource": FIRST}
    first = point.ask(url, whole | {"page": {"limit": 1}})
    assert isinstance(first["results"], list)
    token = first.get("page", {}).get("next_token", "")
    assert isinstance(token, str)
    if token:
        second = point.ask(url, whole | {"page": {"token": token}})
        assert isinstance(second["results"], list) and isinstance(second["page"]["next_token"], str)


def nothing_found_is_an_empty_list(point):
    unknown, strange = {"type": "user", "id": "nonexistent-user"}, {"type": "spaceship"}
    record = RECORD | {"id": "nonexistent-record"}
    assert search(point, "subject", subject=USER, action=WRITE, resource=record | {"type": "spaceship"}) == set()
    assert search(point, "resource", subject=unknown, action=READ, resource=RECORD) == set()
    assert search(point, "action", subject=unknown, resource=FIRST) == set()
    assert search(point, "subject", subject=strange, action=READ, resource=FIRST) == set()
    assert search(point, "resource", subject=ALICE, action=READ, resource=strange) == set()
    assert search(point, "action", subject=strange | {"id": "x"}, resource=FIRST) == set()


def what_is_no_search_is_400(point):
    for kind, request in (
        ("subject", {"subject": USER, "resource": FIRST}), ("subject", {"subject": USER, "action": READ}),
        ("subject", {"action": READ, "resource": FIRST}),
        ("subject", {"subject": USER, "action": READ, "resource": RECORD}),
        ("resource", {"action": READ, "resource": RECORD}), ("resource", {"subject": ALICE, "resource": RECORD}),
        ("resource", {"subject": USER, "action": READ, "resource": RECORD}),
        ("action", {"subject": ALICE}), ("action", {"resource": FIRST}), ("action", {"subject": USER, "resource": FIRST}),
    ):
        url = point.endpoint(f"search_{kind}_endpoint") or pytest.skip(f"no search for a {kind} is offered")
        assert point.post(url, request, JSON).status == 400, (kind, request)


QUESTIONS = [the_subjects_of_an_action, the_resources_of_a_subject, the_actions_of_a_subject_on_a_resource, pages,
             nothing_found_is_an_empty_list, what_is_no_search_is_400]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_search(point, question):
    question(point)


@pytest.mark.parametrize("fault", ["id", "page", "empty", "lenient"])
def test_the_questions_find_a_fault(fault):
    finder = Finder(fault)
    try:
        failed = []
        for question in QUESTIONS:
            try:
                question(Point(finder.url))
            except AssertionError:
                failed.append(question)
        assert failed, fault
    finally:
        finder.close()

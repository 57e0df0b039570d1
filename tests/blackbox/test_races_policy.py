"""Two authority processes on one store, and thirty-two callers split over both, at what she does to her policy and to
resource servers, and at requests that count once. The checker is checked here too."""

from urllib.parse import quote

import pytest

from cast import TRADE
from checker import Race, Told, row_of
from test_races import approved, hers, known_agent, later, race_in, theirs
from town import UNITS, Town, unit
from wire import dialling, fetch_json, send

HOLDINGS, _, TRADING = UNITS


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Town.running(tmp_path_factory.mktemp("town"), [HOLDINGS], replicas=2) as town:
        yield town


@pytest.fixture
def lone_town(tmp_path):
    with Town.running(tmp_path, replicas=2) as town:
        yield town


def path_of(one):
    return f"/policies/{quote(one, safe='')}"


def said_why(told):
    return 400 <= told.status < 500 and told.json()["detail"]


def published(town, one):
    """Every version of a unit's terms, by number, as anybody reads it."""
    current = town.owner.read("/policies").get(one)
    template = current["terms"]["template_id"] if current else one
    stem, _, newest = template.rpartition("/v")
    found, number = {}, 0
    while not newest or number < int(newest):
        number += 1
        response = send("GET", f"{town.metadata['terms_endpoint']}/{stem}/v{number}")
        assert response.status == 200, response
        found[number] = response.json()
    beyond = send("GET", f"{town.metadata['terms_endpoint']}/{stem}/v{number + 1}")
    assert beyond.status == 404, "a version nobody was told of"
    return found


def dropped(town, one):
    assert town.owner.request("DELETE", path_of(one)).status == 200


def test_one_unit_of_an_id(town):  # OWN-19
    race = race_in(town)
    race.run(lambda number: ("create", TRADING["id"], lambda: town.owner.request("POST", "/policies", TRADING)))
    (winner,) = race.one_winner("create", lambda told: told.status == 201, said_why).values()
    assert winner.json()["version"] == 1
    assert list(published(town, TRADING["id"])) == [1]
    race.accounts()
    dropped(town, TRADING["id"])


def test_one_unit_of_a_resource(town):  # POL-02
    race = race_in(town)
    race.run(lambda number: ("create", "resource", lambda: town.owner.request(
        "POST", "/policies", TRADING | {"id": f"trading-{number}"})))
    (winner,) = race.one_winner("create", lambda told: told.status == 201, said_why).values()
    units = [name for name in town.owner.read("/policies") if name.startswith("trading-")]
    assert units == [winner.json()["id"]]
    assert len(fetch_json(town.metadata["terms_endpoint"])["terms"]) == 2
    race.accounts()
    dropped(town, units[0])


def test_every_edit_is_a_version(town):  # OWN-21 TERMS-12 TERMS-13
    """Everybody is told yes, each with a version of her own, and every version says what its author was told."""
    town.owner.request("POST", "/policies", TRADING | {"id": "edited"})
    race = race_in(town)
    race.run(lambda number: ("edit", str(number), lambda: town.owner.request(
        "PUT", path_of("edited"), {"terms": {"purpose": f"purpose {number}"}})))
    assert {told.status for told in race.told} == {200}, race.told
    versions = {told.json()["version"]: f"purpose {told.caller}" for told in race.told}
    assert sorted(versions) == list(range(2, race.callers + 2)), "a version number was told twice"
    terms = published(town, "edited")
    assert {number: terms[number]["purpose"] for number in versions} == versions
    assert town.owner.read("/policies")["edited"]["version"] == race.callers + 1
    race.accounts()
    dropped(town, "edited")


def test_an_edit_changes_what_it_names(town):  # OWN-20 OWN-21
    """Two windows edit different members at once: neither takes the other's change back."""
    town.owner.request("POST", "/policies", TRADING | {"id": "shared"})
    race = race_in(town)

    def plan(number):
        change = {"purpose": f"purpose {number}"} if number // 2 % 2 else {"expires_in": 100 + number}
        return "edit", str(number), lambda: town.owner.request("PUT", path_of("shared"), {"terms": change})

    race.run(plan)
    assert {told.status for told in race.told} == {200}
    authors, terms = {told.json()["version"]: told.caller for told in race.told}, published(town, "shared")
    for version, caller in sorted(authors.items()):
        before, after = terms[version - 1], terms[version]
        untouched = "expires_in" if caller // 2 % 2 else "purpose"
        assert after[untouched] == before[untouched], f"v{version} took back the {untouched} of v{version - 1}"
    race.accounts()
    dropped(town, "shared")


def test_one_delete(town):  # OWN-22
    town.owner.request("POST", "/policies", unit("gone", "get_transactions"))
    agent = known_agent(town)
    grant = agent.obtain(town.resource, "get_transactions", {"account": "brokerage-main"}, owner=town.owner)
    server, race = town.resource_server(), race_in(town)
    server.pat
    race.run(lambda number: [
        ("delete", "gone", lambda: town.owner.request("DELETE", path_of("gone"))),
        ("probe", grant.token, lambda: server.introspect(grant.token)),
    ])
    (winner,) = race.one_winner("delete", lambda told: told.status == 200, lambda told: told.status == 404).values()
    winner.rows = [row_of("revoked", by=hers(town), of="gone")]
    race.accounts()
    assert race.dead_after("delete", "probe", lambda told: told.json()["active"])
    assert server.state(grant.token) == "revoked"


@pytest.mark.parametrize("delay", [0, 0.02, 0.04])
def test_a_delete_against_commits_and_edits(town, delay):  # OWN-22 POL-03 CORE-94
    """She takes a unit away while agents are signing its terms: what was issued before is counted and dead, and nothing
    is issued after, under whatever version."""
    name = f"closing-{int(delay * 100)}"
    town.owner.request("POST", "/policies", unit(name, "get_transactions"))
    agent = known_agent(town)
    offers = [agent.negotiate(town.resource, "get_transactions", {"account": "brokerage-main"}) for _ in range(20)]
    server, race = town.resource_server(), race_in(town)
    server.pat

    def plan(number):
        if number < 20:
            return "commit", offers[number].family, lambda: later(number * 0.003, offers[number].commit)
        if number < 28:
            return "edit", name, lambda: later(number % 4 * 0.01, town.owner.request, "PUT", path_of(name),
                                               {"ask_me": False})
        return "delete", name, lambda: later(delay, town.owner.request, "DELETE", path_of(name))

    race.run(plan)
    (ended,) = race.one_winner("delete", lambda told: told.status == 200, lambda told: told.status == 404).values()
    ended.rows = [row_of("revoked", by=hers(town), of=name)]
    tokens = []
    for told in race.of("commit"):
        row = dict(family=told.artifact, handle=agent.handle)
        if told.status == 200:
            tokens.append(told.json()["access_token"])
            told.rows = [row_of("promised", by="agent", **row)]
        elif told.error == "request_denied":
            told.rows = [row_of("refused", by="policy", **row)]
        else:  # An edit came first: the new version is proffered.
            assert told.error == "need_info", told
    for told in race.of("edit"):
        assert told.status in (200, 404), told
    race.accounts()
    (row,) = [row for row in race.record() if row["kind"] == "revoked"]
    assert row["entry"]["rpts_deactivated"] == len(tokens)
    assert all(late["kind"] != "promised" for late in race.record() if late["seq"] > row["seq"])
    assert {server.state(token) for token in tokens} <= {"revoked"}
    assert name not in town.owner.read("/policies")


def test_created_and_deleted_in_turns(town):  # OWN-19 OWN-22
    """Half of her windows create a unit and half delete it: no version number is used twice, and what is left is what
    the last one was told."""
    one, race = unit("flicker", "get_transactions"), race_in(town)

    def plan(number):
        if number // 2 % 2:
            return "delete", "flicker", lambda: town.owner.request("DELETE", path_of("flicker"))
        return "create", "flicker", lambda: town.owner.request("POST", "/policies", one)

    race.run(plan)
    made = [told for told in race.of("create") if told.status == 201]
    ended = [told for told in race.of("delete") if told.status == 200]
    for told in ended:
        told.rows = [row_of("revoked", by=hers(town), of="flicker")]
    assert sorted(told.json()["version"] for told in made) == list(range(1, len(made) + 1))
    left = "flicker" in town.owner.read("/policies")
    assert len(made) - len(ended) == left
    assert all(told in made or said_why(told) for told in race.of("create"))
    assert all(told in ended or told.status == 404 for told in race.of("delete"))
    race.accounts()
    if left:
        dropped(town, "flicker")


def test_a_withdrawn_resource_server_at_either_process(lone_town):  # FED-34 FED-35 FED-53
    """She withdraws it at one process; from her answer on no protection call goes through at the other, no token she
    drew meanwhile opens anything, and the spends that were told yes are rows before hers."""
    town = lone_town
    agent = known_agent(town)
    trades = []
    for quantity in range(1, 5):
        trade = approved(town, agent, tool="execute_trade", arguments=TRADE | {"quantity": quantity})
        trades.append(trade.grant(trade.poll()))
    server, race = town.resource_server(), race_in(town)
    server.pat
    probes = 6 * [("probe", agent.read.token, lambda: server.introspect(agent.read.token))]

    def plan(number):
        if number < 8:
            return [("judge", town.url, lambda: later(0.02, town.owner.request, "POST", "/resource-servers/decision",
                                                      {"client_id": town.url, "decision": "revoked"})), *probes[:2]]
        if number < 16:
            return "login", town.url, lambda: later(number * 0.002, server.ask_token)
        if number < 20:
            trade = trades[number - 16]
            return "consume", trade.family, lambda: later((number - 16) * 0.01, server.consume, trade.token)
        return probes

    race.run(plan)
    (ended,) = race.one_winner("judge", lambda told: told.status == 200, lambda told: told.status == 404).values()
    ended.rows = [row_of("revoked", by=hers(town), of=town.url)]
    for told in race.of("consume"):
        if told.status == 200 and told.json()["consumed"]:
            told.rows = [row_of("touched", family=told.artifact, handle=agent.handle, by=theirs(town))]
        else:
            assert told.status == 401 or told.error == "revoked", told
    race.accounts()
    assert race.record()[-1]["kind"] == "revoked", "something was spent after she had withdrawn it"
    assert race.dead_after("judge", "probe", lambda told: told.status == 200)
    pats = [told.json()["access_token"] for told in race.of("login") if told.status == 200]
    for listen in town.listens:
        with dialling(town.issuer, listen):
            for pat in [server.pat, *pats]:
                assert server.introspect(agent.read.token, pat).status == 401
            assert server.ask_token().status == 403


def test_a_signed_request_counts_once_everywhere(town):
    """D-9: one signature sent to both processes by everybody is one request."""
    sent, drawn = [], []
    town.owner.request("POST", "/policies", unit("once", "get_transactions"))
    with dialling(town.issuer, "127.0.0.1:1"), pytest.raises(OSError):
        town.owner.request("PUT", path_of("once"), {"ask_me": True}, replayable=sent)
    server = town.resource_server()
    with dialling(town.issuer, "127.0.0.1:1"), pytest.raises(OSError):
        server.ask_token(replayable=drawn)
    race = race_in(town)
    race.run(lambda number: [("edit", "once", lambda: send(*sent[0])), ("login", "once", lambda: send(*drawn[0]))])
    race.one_winner("edit", lambda told: told.status == 200, lambda told: told.status == 401)
    race.one_winner("login", lambda told: told.status == 200, lambda told: told.error == "invalid_client")
    assert list(published(town, "once")) == [1, 2]
    race.accounts()
    dropped(town, "once")


# ---- the checker ---------------------------------------------------------------------------------------------------

class Book:
    """A record that says what a test wants."""

    def __init__(self, rows):
        self.rows = [{"seq": n + 1, "kind": kind, "family": family, "handle": None, "author": "agent", "entry": {}}
                     for n, (kind, family) in enumerate(rows)]

    def ledger(self):
        return self.rows


def told(response, rows=(), intent="x"):
    return Told(intent, "thing", 0, 1.0, 2.0, response, [row_of(kind, family=f, by="agent") for kind, f in rows])


class Said:
    body = b"{}"

    def __init__(self, status):
        self.status = status

    def json(self):
        return {}


@pytest.mark.parametrize("rows, callers, complaint", [
    ([("touched", "a")], [told(Said(200), [("touched", "a")])], None),
    ([], [told(Said(200), [("touched", "a")])], "not in the record"),
    ([("touched", "a")], [told(Said(409))], "told to nobody"),
    ([("touched", "a"), ("touched", "a")], [told(Said(200), [("touched", "a")])], "told to nobody"),
    ([("touched", "a")], [told(None, [("touched", "a")])], None),
    ([], [told(None, [("touched", "a")])], None),
    ([("touched", "b")], [told(None, [("touched", "a")])], "told to nobody"),
])
def test_the_checker_can_count(rows, callers, complaint):
    race = Race(Book([]), None)
    race.owner, race.told = Book(rows), callers
    if complaint is None:
        race.accounts()
        return
    with pytest.raises(AssertionError, match=complaint):
        race.accounts()


def test_the_checker_sees_two_winners_gaps_and_the_undead():
    race = Race(Book([]), None)
    race.told = [told(Said(200)), told(Said(200))]
    with pytest.raises(AssertionError, match="won 2 times"):
        race.one_winner("x", lambda one: one.status == 200, lambda one: True)
    race.owner = Book([("touched", "a"), ("touched", "b")])
    race.owner.rows[1]["seq"] = 3
    with pytest.raises(AssertionError, match="gap"):
        race.accounts()
    race.told = [told(Said(200), intent="end"), Told("probe", "thing", 1, 3.0, 4.0, Said(200))]
    with pytest.raises(AssertionError, match="alive"):
        race.dead_after("end", "probe", lambda one: one.status == 200)
    assert race.dead_after("end", "probe", lambda one: False) == 1

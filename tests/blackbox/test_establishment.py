"""A resource server that nobody configured introduces itself, and the owner alone lets it in and puts it out. What
proves nothing is answered alike, kept nowhere, and makes the authority ask nobody twice."""

import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cast import REALM, SCOPES, TRADE, binary, environment, result
from origin import Origin
from parties import Agent, Owner, ResourceServer, metadata_of
from test_events import Listener
from test_roles import refused
from town import PATIENCE, UNITS, Town
from wire import Key, send


class Strangers(Town):
    """Authority and gateway that know nothing of each other but the issuer the gateway was told."""

    def _authority(self, n, listen, edition, settings):
        role = super()._authority(n, listen, edition, settings)
        role.write(role.settings, [("owner", {"name": "alice"}), ("owner", {"name": "bob"})])
        return role

    def open(self):
        self.authority.start()
        self.metadata = metadata_of(self.issuer)
        self.owner = Owner(self.issuer, Key.from_pem(self.authority.ready["owner_key"]))
        return self

    def row(self, client_id=None):
        rows = [row for row in self.owner.read("/resource-servers") if row["client_id"] == (client_id or self.url)]
        return rows[0] if rows else None

    def await_row(self, status):
        deadline = time.monotonic() + PATIENCE
        while (self.row() or {}).get("status") != status:
            assert time.monotonic() < deadline, f"never {status}: {self.row()}\n{self.gateway.logged()}"
            time.sleep(0.05)

    def decide(self, client_id, decision):
        return self.owner.request("POST", "/resource-servers/decision", {"client_id": client_id, "decision": decision})

    def await_calls(self):
        """Until the gateway has noticed her approval; a login that failed is not tried again within the second."""
        deadline = time.monotonic() + 3
        while Agent().call(self.resource, "get_positions").status == 503:
            assert time.monotonic() < deadline, self.gateway.logged()
            time.sleep(0.1)

    def cli(self, *arguments):
        """Her terminal."""
        command = [binary(), "owner", "resource-servers", *arguments, "--authority", self.issuer, "--key",
                   self.authority.ready["owner_key"]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=self.folder,
                              env=environment(self.folder))
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def strangers(tmp_path):
    town = Strangers(tmp_path)
    yield town.open()
    town.close()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """An authority alone, for origins of the tests' own."""
    town = Strangers(tmp_path_factory.mktemp("authority"))
    yield town.open()
    town.close()


@pytest.fixture
def origin(town):
    origin = Origin(town.issuer)
    yield origin
    origin.close()
    if (town.row(origin.url) or {}).get("status") == "pending":
        assert town.decide(origin.url, "revoked").status == 200


def pending(response, client_id):
    answer = response.json()
    assert response.status == 202 and response.header("cache-control") == "no-store", response
    assert set(answer) == {"client_id", "status", "error", "error_description"}
    assert (answer["client_id"], answer["status"], answer["error"]) == (client_id, "pending", "authorization_pending")


def unproven(response):
    answer = response.json()
    assert (response.status, answer["error"]) == (401, "invalid_client"), response
    assert set(answer) == {"error", "error_description"}
    return response.body


# ---- the story of one gateway --------------------------------------------------------------------------------------


def test_a_gateway_from_stranger_to_stranger(strangers):
    # FED-20 FED-26 FED-27 FED-28 FED-30 FED-32 FED-33 FED-34 FED-35 FED-36 FED-37 FED-53 OWN-15 OWN-16 OWN-25
    town, agent = strangers, Agent()
    events = Listener(town.owner)
    town.gateway.start()
    town.await_row("pending")
    kind, _, data = events.next()
    assert (kind, data["what"], data["resource_server"]) == ("resource_server", "promised", town.url)
    events.close()
    row = town.row()
    assert (row["introduced_by"], row["auth_method"], row["resource_uri"]) == ("itself", "signature", town.resource)
    assert "secret" not in str(row)
    server = town.resource_server()
    early = server.ask_token()
    assert (early.status, early.json()["error"]) == (403, "authorization_pending"), early
    refused(agent.call(town.resource, "get_positions"), 503, "temporarily_unavailable")

    status, out, _ = town.cli()
    assert status == 0 and town.url in out and "pending" in out and "itself" in out, out
    status, out, _ = town.cli("approve", town.url)
    assert (status, out.split()[0]) == (0, "approved")
    town.await_registry()  # Read at once: she need not wait for the next pull.
    for one in UNITS:
        assert town.owner.request("POST", "/policies", one).status == 201
    pat = server.pat
    assert server.perm(f"{REALM}/get_positions", [SCOPES["get_positions"]]).status == 201
    town.await_calls()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    result(agent.call(town.resource, "get_positions", token=grant.token))
    waiting = agent.negotiate(town.resource, "execute_trade", TRADE)
    waiting.pending(waiting.commit())

    before = town.canary.calls()
    status, out, _ = town.cli("revoke", town.url)
    assert (status, out.split()[0]) == (0, "withdrew")
    for response in (server.introspect(grant.token), server.consume(grant.token),
                     server.perm(f"{REALM}/get_positions", [SCOPES["get_positions"]])):
        assert (response.status, response.json()["error"]) == (401, "invalid_token"), response
    for token in (None, grant.token):
        refused(agent.call(town.resource, "get_positions", token=token), 503, "temporarily_unavailable")
    gone = server.ask_token()
    assert (gone.status, gone.json()["error"]) == (403, "access_denied"), gone
    assert town.cli("approve", town.url)[0] == 6 and town.cli("deny", town.url)[0] == 6
    assert town.row()["status"] == "revoked"

    # Its restart asks her nothing: she answered. Its operator may say that it is to ask again.
    town.gateway.restart()
    time.sleep(2.5)
    assert town.row()["status"] == "revoked"
    town.gateway.kill()
    town.gateway.write(town.gateway.settings | {"gateway.ask_again": True}, town.gateway.tables)
    town.gateway.start()
    town.await_row("pending")
    assert server.introspect(grant.token, pat).status == 401
    again = server.ask_token()
    assert (again.status, again.json()["error"]) == (403, "authorization_pending"), again
    assert town.cli("approve", town.url)[0] == 0
    assert server.introspect(grant.token, pat).status == 401, "the old token stays dead"
    fresh = town.resource_server()
    assert fresh.state(grant.token) == "revoked", "and so do the grants"
    assert town.canary.calls() == before
    town.await_calls()
    renewed = Agent().obtain(town.resource, "get_positions", owner=town.owner)
    assert fresh.state(renewed.token) is True
    kinds = [(row["kind"], next(iter(row["author"]), None) if isinstance(row["author"], dict) else row["author"])
             for row in town.owner.ledger() if row["entry"].get("resource_server") == town.url]
    assert kinds == [("promised", "resource_server"), ("approved", "owner"), ("revoked", "owner"),
                     ("promised", "resource_server"), ("approved", "owner")]


def test_it_waits_over_restarts_and_asks_her_once(strangers):  # FED-27 FED-28
    town = strangers
    town.gateway.start()
    town.await_row("pending")
    for role in (town.gateway, town.authority, town.gateway):
        role.restart()
    time.sleep(2)
    assert town.row()["status"] == "pending"
    assert [row["kind"] for row in town.owner.ledger()] == ["promised"]
    assert town.decide(town.url, "approved").status == 200
    town.await_registry()
    agent = Agent()
    for one in UNITS:
        assert town.owner.request("POST", "/policies", one).status == 201
    town.await_calls()
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    result(agent.call(town.resource, "get_positions", token=grant.token))


def test_set_up_is_not_hers(house):  # D-22
    (row,) = house.owner.read("/resource-servers")
    assert (row["status"], row["introduced_by"], row["client_id"]) == ("active", "setup", house.gateway)
    (entry,) = [row for row in house.owner.ledger() if row["entry"].get("resource_server") == house.gateway]
    assert (entry["kind"], entry["author"]) == ("approved", "setup")


def stored(house):
    """How often the store was asked what."""
    shown = send("GET", house.ready["metrics"] + "/metrics").body.decode()
    counts = re.findall(r'^sayso_store_seconds_count\{op="(\w+)"\} (\d+)', shown, re.M)
    return {op: int(count) for op, count in counts}


def test_the_gateway_of_a_house_comes_in_by_the_door(lone_house):  # D-22 FED-20 FED-30
    """It is expected, before anybody is heard and as it comes, introduces itself over HTTP and draws a token by signature: at
    each start, under whatever address."""
    house = lone_house
    rows = lambda: [(row["kind"], row["entry"].get("moved_from")) for row in house.owner.ledger() if row["author"] == "setup"
                    and "resource_server" in row["entry"]]
    for _ in range(2):
        asked = stored(house)
        assert (asked["pre_approve"], asked["introduce"], asked["grant_pat"]) == (2, 1, 1), asked
        assert "settle_resource_server" not in asked
        assert rows() == [("approved", None)]
        house.restart()
    agent, before = Agent(), house.gateway
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    server, units = house.resource_server(), house.owner.read("/policies")
    pat, connections = server.pat, [row["handle"] for row in house.owner.read("/connections")]
    house.stop()
    house.listen = (house.listen[0], "127.0.0.1:0")
    house.start()
    (row,) = house.owner.read("/resource-servers")
    assert (row["client_id"], row["status"], row["introduced_by"]) == (house.gateway, "active", "setup")
    assert house.gateway != before and rows() == [("approved", None), ("approved", before)]
    # Units and connections stay; grants and tokens end.
    assert (house.owner.read("/policies"), [row["handle"] for row in house.owner.read("/connections")]) == (units, connections)
    assert server.introspect(grant.token, pat).status == 401
    assert house.resource_server().state(grant.token) is not True
    renewed = agent.obtain(house.resource, "get_positions", owner=house.owner)
    result(agent.call(house.resource, "get_positions", token=renewed.token))
    # Its key at an address that set-up did not name is a stranger's.
    elsewhere = Origin(house.authority)
    elsewhere.key = elsewhere.signer = house.resource_server().key
    pending(elsewhere.introduce(), elsewhere.url)
    elsewhere.close()


def test_a_house_whose_gateway_she_withdrew_stays_so(lone_house):  # FED-36 FED-37
    """Also when it has asked again, neither a restart nor another address is her approval; and she can still come in."""
    house = lone_house
    decision = {"client_id": house.gateway, "decision": "revoked"}
    assert house.owner.request("POST", "/resource-servers/decision", decision).status == 200
    server = house.resource_server()
    origin = type("Itself", (), {"issuer": house.authority, "resource": house.resource, "key": server.key})()
    pending(Origin.introduce(origin), house.gateway)
    standing = lambda: [(row["client_id"], row["status"]) for row in house.owner.read("/resource-servers")]
    house.restart()
    assert standing() == [(house.gateway, "pending")]
    refused(Agent().call(house.resource, "get_positions"), 503, "temporarily_unavailable")
    before = house.gateway
    house.stop()
    house.listen = (house.listen[0], "127.0.0.1:0")
    house.start()
    assert house.gateway != before and standing() == [(house.gateway, "pending")]
    decision = {"client_id": house.gateway, "decision": "approved"}
    assert house.owner.request("POST", "/resource-servers/decision", decision).status == 200
    deadline = time.monotonic() + 5
    while Agent().call(house.resource, "get_positions").status != 401:
        assert time.monotonic() < deadline, house.logged()
        time.sleep(0.2)
    agent = Agent()
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    result(agent.call(house.resource, "get_positions", token=grant.token))


def test_a_withdrawn_house_asks_again_when_told_to(lone_house):  # FED-36
    house = lone_house
    decision = {"client_id": house.gateway, "decision": "revoked"}
    assert house.owner.request("POST", "/resource-servers/decision", decision).status == 200
    house.restart()
    time.sleep(1.5)
    assert [row["status"] for row in house.owner.read("/resource-servers")] == ["revoked"]
    house.variables = {"SAYSO_GATEWAY__ASK_AGAIN": "true"}
    house.restart()
    deadline = time.monotonic() + PATIENCE
    while [row["status"] for row in house.owner.read("/resource-servers")] != ["pending"]:
        assert time.monotonic() < deadline, house.logged()
        time.sleep(0.1)
    assert house.process.poll() is None
    assert house.stop() == 0
    house.start()  # For the fixture to end.


# ---- what proves nothing ---------------------------------------------------------------------------------------------


def changed(**members):
    def change(origin):
        origin.members |= members
    return change


def attribute(name, value):
    return lambda origin: setattr(origin, name, value(origin) if callable(value) else value)


LIES = {
    "another resource": changed(resource="http://127.0.0.1:1/mcp"),
    "another authority": changed(authorization_servers=["https://other.example"]),
    "no authority": changed(authorization_servers=[]),
    "the authority with a slash": lambda origin: origin.members.update(authorization_servers=[origin.issuer + "/"]),
    "keys elsewhere": changed(jwks_uri="http://127.0.0.1:1/jwks"),
    "keys under another name": lambda origin: origin.members.update(
        jwks_uri=f"{origin.url.replace('127.0.0.1', 'localhost')}/jwks"),
    "a listing elsewhere": changed(owner_resources_endpoint="https://other.example/x"),
    "an odd consequence": changed(tool_surfaces=[{"tool": "t", "resource_scopes": [], "consequence": "grave"}]),
    "unsigned": attribute("strip", True),
    "signed by another": attribute("signer", lambda _: Key()),
    "signed as another": attribute("signed_as", {"iss": "https://other.example/mcp"}),
    "a signed copy that says something else": attribute("signed_as", {"scopes_supported": []}),
    "a redirect": attribute("status", 302),
    "an error": attribute("status", 500),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_document_that_does_not_hold(town, origin, lie):  # FED-22 FED-23 FED-25 FED-50
    rows, servers = town.owner.ledger(), town.owner.read("/resource-servers")
    origin.members["to"] = f"{town.issuer}/jwks"
    lie(origin)
    first = unproven(origin.introduce())
    assert len(origin.looked) <= 2, "and it was not followed anywhere"
    looked = list(origin.looked)
    again = origin.introduce()
    assert (again.status, again.header("retry-after")) == (429, "60"), again  # FED-51
    assert origin.looked == looked
    assert (town.owner.ledger(), town.owner.read("/resource-servers")) == (rows, servers)
    nobody = Origin(town.issuer)
    assert unproven(nobody.introduce("nobody")) == first, "no failure looks like another"
    nobody.close()


UNSIGNED = {
    "no signature": dict(signed=False),
    "no digest": dict(digest=False),  # FED-21
    "digest uncovered": dict(drop=["content-digest"]),
    "digest of something else": dict(digest="sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"),
    "another body": dict(body=b'{"owner":"bob","resource_uri":"https://x.example/mcp","name":"n"}'),
    "authorization uncovered": dict(drop=["authorization"]),
    "path uncovered": dict(drop=["@path"]),
    "a credential": dict(extra=[("Authorization", "Bearer x")]),
    "stale": dict(created=1_700_000_000),
    "an algorithm of another kind": dict(parameters='created=1;keyid="x";alg="hmac-sha256"'),
}


@pytest.mark.parametrize("how", UNSIGNED.values(), ids=UNSIGNED)
def test_what_could_prove_nothing_is_not_looked_at(town, origin, how):  # FED-21 FED-25 CORE-61 CORE-62
    before = town.owner.read("/resource-servers")
    unproven(origin.introduce(**how))
    assert origin.looked == []
    assert town.owner.read("/resource-servers") == before


def test_a_key_that_is_not_published(town, origin):  # FED-24 FED-51
    unproven(origin.introduce(key=Key()))
    assert len(origin.looked) == 2
    for _ in range(3):
        assert origin.introduce(key=Key()).status == 429
    unheard = origin.introduce(authority="other.example")
    assert unheard.status == 429, "that it is for another authority shows only under the key"
    pending(origin.introduce(), origin.url)
    assert len(origin.looked) == 2, "known, good and bad, without another look"


def test_another_origins_resource(town, origin):  # FED-22 FED-24
    victim = Origin(town.issuer)
    unproven(origin.introduce(resource=victim.resource))
    assert town.row(victim.url) is None and town.row(origin.url) is None
    pending(victim.introduce(), victim.url)
    victim.close()
    assert town.decide(victim.url, "revoked").status == 200


@pytest.mark.parametrize("path", ["/mcp/../mcp", "/x/%2e%2e/mcp", "//mcp", "/mcp%2f", "/mcp?x", "/mcp#x", "/mcp/"])
def test_a_resource_written_another_way(town, origin, path):  # FED-22
    unproven(origin.introduce(resource=origin.url + path))
    assert "/jwks" not in origin.looked
    assert town.row(origin.url) is None


@pytest.mark.parametrize("resource", [
    "http://agents.example.test/a", "https://10.0.0.1/a", "https://100.64.0.1/a", "https://169.254.169.254/latest",
    "https://[fd00::1]/a", "https://[fe80::1]/a", "https://0.0.0.0/a", "https://[64:ff9b::7f00:1]/a", "https://192.0.2.1/a",
    "https://user:pw@agents.example.test/a", "https://agents.example.test/a#f", "file:///etc/passwd", "gopher://x/a",
    "http://127.0.0.1:9/closed",
])
def test_places_no_stranger_leads_to(town, origin, resource):  # FED-25 FED-50
    began = time.monotonic()
    unproven(origin.introduce(resource=resource))
    assert time.monotonic() - began < 8
    assert origin.looked == []


def test_no_introduction_makes_an_owner(town, origin):  # FED-29
    unproven(origin.introduce("mallory"))
    assert origin.introduce("mallory").status == 429
    device = town.owner.read("/resource-servers")
    assert all(row["client_id"] != origin.url for row in device)
    pending(origin.introduce("bob"), origin.url)
    assert town.row(origin.url) is None, "it is bob's to answer"


def test_a_signed_introduction_counts_once(town, origin):  # D-9
    sent = []
    pending(origin.introduce(replayable=sent), origin.url)
    assert town.decide(origin.url, "revoked").status == 200
    unproven(send(*sent[0]))
    assert town.row(origin.url)["status"] == "revoked"


def test_only_she_answers_and_once(town, origin):  # OWN-02 OWN-08 OWN-16 CORE-109
    pending(origin.introduce(), origin.url)
    bob = Owner(town.issuer, Key.from_pem(town.authority.ready["owner_keys"][1]))
    approve = {"client_id": origin.url, "decision": "approved"}
    assert bob.request("POST", "/resource-servers/decision", approve).status == 404
    assert town.owner.request("POST", "/resource-servers/decision", approve, key=origin.key).status == 401
    assert town.decide(origin.url, "maybe").status == 400
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: town.decide(origin.url, "approved").status, range(16)))
    assert sorted(answers) == [200] + [404] * 15
    server = ResourceServer(town.issuer, origin.url, origin.key)
    assert server.perm("origin/look", ["x:read"]).status == 201
    again = origin.introduce()
    assert (again.status, again.json()) == (200, {"client_id": origin.url, "status": "active"})
    assert server.perm("origin/look", ["x:read"]).status == 201, "asking again took nothing away"
    assert town.decide(origin.url, "revoked").status == 200
    assert server.perm("origin/look", ["x:read"]).status == 401


def test_she_is_not_asked_by_more_than_she_can_look_at(town):  # D-22
    origins = [Origin(town.issuer) for _ in range(36)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda origin: origin.introduce().status, origins))
    assert sorted(answers) == [202] * 32 + [429] * 4
    for origin, answer in zip(origins, answers):
        assert (town.row(origin.url) is None) == (answer == 429)
        if answer == 202:
            assert town.decide(origin.url, "revoked").status == 200
        origin.close()


def test_what_it_calls_itself_is_shown_as_text(town, origin):  # OWN-15 D-28
    pending(origin.introduce(name="\x1b[2J<b>vault</b>\u202e"), origin.url)
    assert town.row(origin.url)["name"] == "\x1b[2J<b>vault</b>\u202e"
    status, out, _ = town.cli()
    line = next(line for line in out.splitlines() if origin.url in line)
    assert status == 0 and "\x1b" not in out and "\u202e" not in out
    assert line.index(origin.url) < line.index("<b>vault</b>")
    assert "vault" not in str(town.owner.ledger())

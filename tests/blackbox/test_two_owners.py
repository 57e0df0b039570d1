"""Two owners of one authority behind one gateway: each resource is its owner's, each listing is read in her name, and
what one of them gave opens nothing of the other's."""

import pytest

from canary import Canary
from cast import REALM, SCOPES, TRADE, result
from parties import Agent, Challenge, Owner, metadata_of
from test_roles import refused
from town import UNITS, Town, unit
from wire import Key

BOBS = "bobs-vault"


def of_bob(policy):
    return policy | {"resources": [resource.replace(REALM, BOBS) for resource in policy["resources"]]}


class Neighbours(Town):
    """Alice at `/mcp`, Bob at `/bob`, each with a server of their own behind."""

    def __init__(self, folder):
        self.bobs_canary = Canary()
        self.bobs_canary.tools = SCOPES
        super().__init__(folder)
        self.bobs_resource = f"{self.url}/bob"

    def _authority(self, n, listen, edition, settings):
        role = super()._authority(n, listen, edition, settings)
        bob = {"client_id": self.url, "owner": "bob", "resource_uri": f"{self.url}/bob"}
        role.write(role.settings, [*role.tables, ("owner", {"name": "bob"}), ("resource_server", bob)])
        return role

    def resource_tables(self):
        bob = {"path": "/bob", "owner": "bob", "authority": self.issuer, "realm": BOBS,
               "upstream": self.bobs_canary.url, "single_use": ["execute_trade"]}
        tools = [("resource.tools", {"name": tool, "scopes": [scope]}) for tool, scope in SCOPES.items()]
        return [*super().resource_tables(), ("resource", bob), *tools]

    def settle(self, units=UNITS):
        super().settle(units)
        keys = self.authority.ready["owner_keys"]
        self.bob = Owner(self.issuer, Key.from_pem(keys[1]))
        alice, self.owner = self.owner, self.bob
        self.await_registry()
        self.owner = alice
        for one in map(of_bob, units):
            response = self.bob.request("POST", "/policies", one)
            assert response.status == 201, response

    def close(self):
        super().close()
        self.bobs_canary.stop()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Neighbours.running(tmp_path_factory.mktemp("neighbours")) as town:
        yield town


def test_each_sees_what_is_hers(town):  # FED-09 FED-16 CORE-112 CORE-109
    ids = lambda owner: sorted(entry["_id"] for entry in owner.read("/resources"))
    assert ids(town.owner) == sorted(f"{REALM}/{tool}" for tool in SCOPES)
    assert ids(town.bob) == sorted(f"{BOBS}/{tool}" for tool in SCOPES)
    assert metadata_of(town.issuer)["issuer"] == town.issuer


def test_what_one_gave_opens_nothing_of_the_others(town, agent):  # CORE-72 CORE-81 CORE-86 CORE-100 CORE-108
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    result(agent.call(town.resource, "get_positions", token=grant.token))
    before, rows = town.bobs_canary.calls(), town.bob.ledger()
    # Unknown to his resource server's name at the authority: a fresh question, to be asked of him.
    challenge = Challenge.of(agent.call(town.bobs_resource, "get_positions", token=grant.token))
    assert challenge.realm == BOBS
    assert (town.bobs_canary.calls(), town.bob.ledger()) == (before, rows)
    assert agent.handle not in town.bob.connections()


def test_neither_decides_or_ends_for_the_other(town, agent):  # CORE-109 OWN-02
    negotiation = agent.negotiate(town.bobs_resource, "execute_trade", TRADE)
    negotiation.pending(negotiation.commit())
    assert negotiation.family not in town.owner.pending()
    for decision in ("approved", "denied"):
        assert town.owner.answer(negotiation.family, decision).status == 404
    town.bob.decide(negotiation.family, "approved")
    grant = negotiation.grant(negotiation.poll())
    assert town.owner.request("POST", "/connections/revoke", {"handle": agent.handle}).status == 404
    before = town.bobs_canary.calls()
    result(agent.call(town.bobs_resource, "execute_trade", TRADE, token=grant.token))
    refused(agent.call(town.bobs_resource, "execute_trade", TRADE, token=grant.token), 403, "already_consumed")
    assert town.bobs_canary.calls() == before + 1
    assert not any(row["handle"] == agent.handle for row in town.owner.ledger())


def test_an_ending_is_one_owners(town):  # CORE-103
    agent = Agent()
    hers = agent.obtain(town.resource, "get_positions", owner=town.owner)
    his = agent.obtain(town.bobs_resource, "get_positions", owner=town.bob)
    town.owner.revoke(agent.handle)
    before = town.canary.calls()
    refused(agent.call(town.resource, "get_positions", token=hers.token), 403, "access_revoked")
    assert town.canary.calls() == before
    result(agent.call(town.bobs_resource, "get_positions", token=his.token))


def test_a_listing_is_read_in_one_name(town):  # FED-09 FED-10
    tool = unit("again", "get_positions")
    assert town.bob.request("POST", "/policies", tool).status in (400, 409), "her resource in his policy"

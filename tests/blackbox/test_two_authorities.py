"""One resource server, two owners, and each has chosen an authority of her own: every address names its owner's, neither
authority knows what the other gave, and the ending of one leaves the other alone."""

import pytest

from canary import Canary
from cast import REALM, SCOPES, TRADE, result
from parties import Agent, Challenge, Negotiation, Owner, ResourceServer, metadata_of
from test_roles import refused
from town import UNITS, Role, Town, free_port
from wire import Key, fetch_json, verify_jws

BOBS = "bobs-vault"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


def of_bob(policy):
    return policy | {"resources": [resource.replace(REALM, BOBS) for resource in policy["resources"]]}


class Two(Town):
    """Alice at `/mcp` under one authority, Bob at `/mcp/bob` under another, and one gateway."""

    def __init__(self, folder):
        self.bobs_canary = Canary()
        self.bobs_canary.tools = SCOPES
        listen = f"127.0.0.1:{free_port()}"
        self.bobs_issuer = f"http://{listen}"
        super().__init__(folder)
        self.bobs_resource = f"{self.url}/mcp/bob"
        self.bobs_authority = Role("authority", folder / "bobs-authority", {
            "authority.listen": listen, "authority.interval": 1,
        }, [
            ("owner", {"name": "bob"}),
            ("resource_server", {"client_id": self.url, "owner": "bob", "resource_uri": self.bobs_resource}),
        ])

    def resource_tables(self):
        bob = {"path": "/mcp/bob", "owner": "bob", "authority": self.bobs_issuer, "realm": BOBS,
               "upstream": self.bobs_canary.url, "single_use": ["execute_trade"]}
        tools = [("resource.tools", {"name": tool, "scopes": [scope]}) for tool, scope in SCOPES.items()]
        (_, alice), *rest = super().resource_tables()
        return [("resource", alice | {"aliases": ["/mcp/alice"]}), *rest, ("resource", bob), *tools]

    def start(self, units=UNITS):
        super().start(units)
        self.bobs_authority.start()
        self.bob = Owner(self.bobs_issuer, Key.from_pem(self.bobs_authority.ready["owner_key"]))
        alice, self.owner = self.owner, self.bob
        self.await_registry()
        self.owner = alice
        for one in map(of_bob, units):
            response = self.bob.request("POST", "/policies", one)
            assert response.status == 201, response
        return self

    def server_at(self, issuer):
        """The protection API of an authority, as the gateway uses it."""
        return ResourceServer(issuer, self.url, Key.from_pem(self.gateway.data / "keys/gateway.pem"))

    def close(self):
        self.bobs_authority.end()
        super().close()
        self.bobs_canary.stop()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Two.running(tmp_path_factory.mktemp("two")) as town:
        yield town


def document(town, path):
    found = fetch_json(f"{town.url}{WELL_KNOWN}{path}")
    _, signed = verify_jws(found["signed_metadata"], fetch_json(found["jwks_uri"]))
    assert signed["authorization_servers"] == found["authorization_servers"]
    return found


def test_each_address_names_its_owners_authority(town, agent):  # CORE-08 CORE-11 CORE-113 CORE-114 CORE-115 BASE-09
    assert town.gateway.ready["resources"] == [f"{town.url}{path}" for path in ("/mcp", "/mcp/alice", "/mcp/bob")]
    for path, issuer, realm in (("/mcp", town.issuer, REALM), ("/mcp/alice", town.issuer, REALM),
                                ("/mcp/bob", town.bobs_issuer, BOBS)):
        found = document(town, path)
        assert found["resource"] == f"{town.url}{path}"
        assert found["authorization_servers"] == [issuer] == [metadata_of(issuer)["issuer"]]
        challenge = Challenge.of(agent.call(f"{town.url}{path}", "get_positions"))
        assert (challenge.as_uri, challenge.realm) == (issuer, realm)
        assert challenge.resource_metadata == f"{town.url}{WELL_KNOWN}{path}"
        agent.corroborate(f"{town.url}{path}", challenge)


def test_neither_knows_what_the_other_gave(town, agent):  # CORE-86 CORE-100 CORE-108 FED-39
    hers = agent.obtain(town.resource, "get_positions", owner=town.owner)
    his = agent.obtain(town.bobs_resource, "get_positions", owner=town.bob)
    calls = lambda: (town.canary.calls(), town.bobs_canary.calls())
    before = calls()
    result(agent.call(town.resource, "get_positions", token=hers.token))
    result(agent.call(town.bobs_resource, "get_positions", token=his.token))
    assert calls() == (before[0] + 1, before[1] + 1)
    for resource, token, issuer in ((town.bobs_resource, hers.token, town.bobs_issuer),
                                    (town.resource, his.token, town.issuer)):
        assert Challenge.of(agent.call(resource, "get_positions", token=token)).as_uri == issuer
        assert town.server_at(issuer).introspect(token).json() == {"active": False, "error": "unknown_token"}
    assert calls() == (before[0] + 1, before[1] + 1)
    # A ticket of one is none at the other, and so is a resource server's login.
    ticket = Challenge.of(agent.call(town.resource, "get_positions")).ticket
    refused(Negotiation(agent, town.bobs_issuer, ticket, {}).present(), 400, "invalid_grant")
    assert town.server_at(town.bobs_issuer).introspect(his.token, town.server_at(town.issuer).pat).status == 401


def test_what_is_granted_is_the_thing_behind_its_addresses(town, agent):  # CORE-11 CORE-115
    alias = f"{town.resource}/alice"
    grant = agent.obtain(alias, "execute_trade", TRADE, owner=town.owner)
    before = town.canary.calls()
    result(agent.call(town.resource, "execute_trade", TRADE, token=grant.token))
    # Once, wherever it is shown.
    refused(agent.call(alias, "execute_trade", TRADE, token=grant.token), 403, "already_consumed")
    assert town.canary.calls() == before + 1
    assert len(town.owner.read("/resources")) == len(SCOPES)


def test_one_owners_ending_is_hers_alone(town):  # CORE-103
    agent = Agent()
    hers = agent.obtain(town.resource, "get_positions", owner=town.owner)
    his = agent.obtain(town.bobs_resource, "get_positions", owner=town.bob)
    town.owner.revoke(agent.handle)
    refused(agent.call(town.resource, "get_positions", token=hers.token), 403, "access_revoked")
    result(agent.call(town.bobs_resource, "get_positions", token=his.token))


def test_an_authority_that_is_away_is_away_for_its_owner_alone(town):
    agent = Agent()
    hers = agent.obtain(town.resource, "execute_trade", TRADE, owner=town.owner)
    his = agent.obtain(town.bobs_resource, "execute_trade", TRADE, owner=town.bob)
    town.bobs_authority.kill()
    before = town.bobs_canary.calls()
    refused(agent.call(town.bobs_resource, "execute_trade", TRADE, token=his.token), 503, "temporarily_unavailable")
    assert town.bobs_canary.calls() == before
    result(agent.call(town.resource, "execute_trade", TRADE, token=hers.token))
    town.bobs_authority.start()
    result(agent.call(town.bobs_resource, "execute_trade", TRADE, token=his.token))
    assert town.bobs_canary.calls() == before + 1

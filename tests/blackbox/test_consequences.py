"""A tool's declared consequence class, from the gateway's configuration to the grant and back: what became graver since
she gave it is refused, what became gentler is not, and that nothing was declared is neither."""

import time

import pytest

from cast import REALM, SCOPES, TRADE, result
from parties import Challenge
from test_roles import refused
from town import PATIENCE, Town
from wire import fetch_json, verify_jws

GENTLE, GRAVE = "compensatable", "irreversible"


class Declaring(Town):
    """A town whose trading tool is of a class, or of none."""

    def __init__(self, folder, consequence):
        self.consequence = consequence
        super().__init__(folder)

    def resource_tables(self):
        def declared(name, table):
            if name == "resource.tools" and table["name"] == "execute_trade" and self.consequence:
                return name, table | {"consequence": self.consequence}
            return name, table

        return [declared(name, table) for name, table in super().resource_tables()]

    def redeclare(self, consequence):
        """The gateway's operator says something else of the tool, and starts it anew."""
        self.consequence = consequence
        self.gateway.write(self.gateway.settings, self.resource_tables())
        self.gateway.restart()

    def surfaces(self):
        document = fetch_json(f"{self.url}/.well-known/oauth-protected-resource/mcp")
        _, signed = verify_jws(document["signed_metadata"], fetch_json(document["jwks_uri"]))
        assert signed["tool_surfaces"] == document["tool_surfaces"]
        return {surface["tool"]: surface.get("consequence") for surface in document["tool_surfaces"]}


@pytest.fixture
def declaring(tmp_path, request):
    with Declaring.running(tmp_path, consequence=request.param) as town:
        yield town


def traded(town, agent, quantity=TRADE["quantity"]):
    return agent.obtain(town.resource, "execute_trade", TRADE | {"quantity": quantity}, owner=town.owner)


@pytest.mark.parametrize("declaring", [GENTLE], indirect=True)
def test_what_became_graver_is_refused(declaring, agent):  # CORE-74 CORE-76 FED-04 FED-12
    town = declaring
    assert town.surfaces() == {tool: GENTLE if tool == "execute_trade" else None for tool in SCOPES}
    listed = {entry["_id"]: entry.get("consequence") for entry in town.owner.read("/resources")}
    assert listed.get(f"{REALM}/execute_trade", GENTLE) == GENTLE
    grant = traded(town, agent)
    assert grant.claims["consequence"] == GENTLE
    read = agent.obtain(town.resource, "get_positions", owner=town.owner)
    assert "consequence" not in read.claims
    town.redeclare(GRAVE)
    before = town.canary.calls()
    refused(agent.call(town.resource, "execute_trade", TRADE, token=grant.token), 403, "consequence_changed")
    assert town.canary.calls() == before
    # Nothing was spent: as soon as it is what she was told it was, it is good.
    town.redeclare("reversible")
    result(agent.call(town.resource, "execute_trade", TRADE, token=grant.token))
    refused(agent.call(town.resource, "execute_trade", TRADE, token=grant.token), 403, "already_consumed")


@pytest.mark.parametrize("declaring", [None], indirect=True)
def test_that_nothing_was_declared_says_nothing(declaring, agent):  # CORE-77 FED-05
    town = declaring
    assert set(town.surfaces().values()) == {None}
    grant = traded(town, agent)
    assert "consequence" not in grant.claims
    town.redeclare(GRAVE)
    result(agent.call(town.resource, "execute_trade", TRADE, token=grant.token))
    # Once her authority has read it, the next grant is of the class that is declared now.
    town.authority.restart()
    deadline, quantity = time.monotonic() + PATIENCE, 10
    while (fresh := traded(town, agent, quantity).claims.get("consequence")) is None:
        assert time.monotonic() < deadline, "the authority never read the new class"
        quantity += 1
    assert fresh == GRAVE
    town.redeclare(None)
    challenge = Challenge.of(agent.call(town.resource, "execute_trade", TRADE))
    assert challenge.ticket


@pytest.mark.parametrize("declaring", [GRAVE], indirect=True)
def test_a_class_that_is_withdrawn_is_no_gentler(declaring, agent):  # FED-05
    town = declaring
    grant = traded(town, agent)
    town.redeclare(None)
    assert town.surfaces()["execute_trade"] is None
    result(agent.call(town.resource, "execute_trade", TRADE, token=grant.token))

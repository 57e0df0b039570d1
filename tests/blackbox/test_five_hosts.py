"""One resource behind all five hosts at once: a gateway, external authorization over HTTP and over gRPC behind real Envoys,
and the two servers that guard themselves. One public URL, one key, one authority; and a grant is for the resource,
wherever its agent was told to negotiate."""

import time
from contextlib import ExitStack

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from canary import Canary
from cast import result
from envoy import KINDS, Envoy
from parties import Agent, Challenge, Negotiation, Owner
from test_embedded import PATIENCE, UNIT, challenged, village  # noqa: F401  (a fixture)
from town import Role, free_port
from wire import Key, dialling

TOOL = "read_note"
SINGLE = {"id": "notes", "name": "Notes", "resources": ["notes/read_note"], "ask_me": True, "rules": [],
          "terms": UNIT["terms"] | {"per_operation": True}}


class Street:
    """Everything but the server that guards itself, at addresses of its own; `at` dials one of them by its name."""

    def __init__(self, folder, issuer, resource, pem):
        self.folder, self.resource, self.canary = folder, resource, Canary()
        self.url = resource.removesuffix("/mcp")
        table = {"path": "/mcp", "owner": "alice", "authority": issuer, "realm": "notes"}
        tools = [("resource.tools", {"name": TOOL, "scopes": ["notes:read"]})]
        gateway, http, grpc = free_port(), free_port(), free_port()
        self.roles = [
            self.role("gateway", {"gateway.listen": f"127.0.0.1:{gateway}", "gateway.public_url": self.url}, pem,
                      [("resource", table | {"upstream": self.canary.url}), *tools]),
            self.role("ext-authz", {"ext_authz.listen": f"127.0.0.1:{http}", "ext_authz.public_url": self.url,
                                    "ext_authz.grpc.listen": f"127.0.0.1:{grpc}",
                                    "ext_authz.partial_body_flag": True}, pem, [("resource", table), *tools]),
        ]
        ports = {8442: http, 8443: grpc, 8000: self.canary.port}
        self.envoys = {kind: Envoy(folder / kind, kind, ports | {10000: free_port()}) for kind in KINDS}
        self.addresses = {"gateway": f"127.0.0.1:{gateway}"} | {
            kind: f"127.0.0.1:{envoy.port}" for kind, envoy in self.envoys.items()}

    def role(self, kind, settings, pem, tables):
        """A role that holds the key of the resource server."""
        role = Role(kind, self.folder / kind, settings, tables)
        keys = role.data / "keys"
        for folder in (role.data, keys):
            folder.mkdir(mode=0o700)
        own = keys / "gateway.pem"
        own.touch(mode=0o600)
        own.write_bytes(pem)
        return role

    def __enter__(self):
        for one in (*self.envoys.values(), *self.roles):
            one.start()
        return self

    def __exit__(self, *_):
        for one in (*self.roles, *self.envoys.values()):
            one.end()
        self.canary.stop()

    def each(self, ask):
        """What each host but the guards answers to what is asked of the one public URL."""
        answers = {}
        for name, address in self.addresses.items():
            with dialling(self.url, address):
                answers[name] = ask()
        return answers


def granted(agent, owner, refused):
    """The grant that comes of a challenge, in whichever envelope."""
    said = refused if isinstance(refused, dict) else {"as_uri": refused.as_uri, "ticket": refused.ticket}
    negotiation = Negotiation(agent, said["as_uri"], said["ticket"], {"tool": TOOL, "params": {}})
    negotiation.ask()
    negotiation.pending(negotiation.commit())
    owner.decide(negotiation.family, "approved")
    return negotiation.grant(negotiation.poll())


def error(response):
    word = response.json()["error"]
    return word if isinstance(word, str) else word["data"]["error"]


def without_ticket(challenge):
    said = dict(challenge if isinstance(challenge, dict) else challenge.body)
    said.pop("status", None)
    remediation = dict(said.pop("authorization_remediation"))
    assert said.pop("ticket") == remediation.pop("ticket")
    return said, remediation


def opened(stack, guard, folder, notes, authority, resource, first):
    """The first guard, its authority, and the other hosts."""
    guard.enter_context(notes(first))
    authority.start()
    issuer = authority.settings["authority.public_url"]
    owner = Owner(issuer, Key.from_pem(authority.ready["owner_key"]))
    deadline = time.monotonic() + PATIENCE
    while not owner.read("/resources"):
        assert time.monotonic() < deadline, "the authority never read the server's listing"
        time.sleep(0.05)
    pem = (folder / "notes.pem").read_bytes()
    return owner, stack.enter_context(Street(folder, issuer, resource, pem))


@pytest.mark.parametrize("first, second", [("guard_axum", "guard_rmcp"), ("guard_rmcp", "guard_axum")])
def test_a_grant_of_either_encoding_is_good_at_every_host(village, tmp_path, first, second):  # noqa: F811
    # CORE-15 CORE-83 CORE-115 MCP-07 MCP-10 MCP-11 MCP-12 MCP-16 MCP-18 FED-48
    notes, authority, resource = village
    agent = Agent()
    with ExitStack() as stack, ExitStack() as guard:
        owner, street = opened(stack, guard, tmp_path, notes, authority, resource, first)
        assert owner.request("POST", "/policies", UNIT).status == 201
        told = challenged(first, agent.call(resource, TOOL))
        for name, answer in street.each(lambda: agent.call(resource, TOOL)).items():
            assert without_ticket(Challenge.of(answer)) == without_ticket(told), name
        grant = granted(agent, owner, told)
        call = lambda: agent.call(resource, TOOL, token=grant.token)  # noqa: E731
        assert result(call())["content"][0]["text"] == "buy milk"
        for name, answer in street.each(call).items():
            assert result(answer)["structuredContent"]["tool"] == TOOL, name
        assert street.canary.calls() == 3
        # A grant whose negotiation began at any of the others is the same thing.
        for name, address in street.addresses.items():
            other = Agent()
            with dialling(street.url, address):
                refused = Challenge.of(other.call(resource, TOOL))
            token = granted(other, owner, refused).token
            assert result(other.call(resource, TOOL, token=token))["content"][0]["text"] == "buy milk", name
        guard.close()
        guard.enter_context(notes(second))
        # A server that begins anew remembers no signature, and so takes none from before.
        time.sleep(1.1)
        assert result(call())["content"][0]["text"] == "buy milk"
        owner.revoke(agent.handle)
        for name, answer in street.each(call).items():
            assert (answer.status, error(answer), answer.all("www-authenticate")) == (403, "access_revoked", []), name
        assert error(call()) == "access_revoked"
        assert street.canary.calls() == 3
        deadline = time.monotonic() + PATIENCE
        while owner.kinds(grant.family).count("touched") < 5:
            assert time.monotonic() < deadline, "her record lacks a call"
            time.sleep(0.05)
        assert owner.kinds(grant.family).count("touched") == 5


@pytest.mark.parametrize("first", ["guard_axum", "guard_rmcp"])
def test_one_call_is_one_call_whichever_host_it_is_made_at(village, tmp_path, first):  # noqa: F811
    # CORE-18 CORE-92 CORE-94 CORE-95
    notes, authority, resource = village
    with ExitStack() as stack, ExitStack() as guard:
        owner, street = opened(stack, guard, tmp_path, notes, authority, resource, first)
        assert owner.request("POST", "/policies", SINGLE).status == 201
        for spender in (None, *street.addresses):
            agent, before = Agent(), street.canary.calls()
            token = granted(agent, owner, challenged(first, agent.call(resource, TOOL))).token
            call = lambda: agent.call(resource, TOOL, token=token)  # noqa: B023, E731
            if spender is None:
                assert result(call())["content"][0]["text"] == "buy milk"
            else:
                with dialling(street.url, street.addresses[spender]):
                    assert result(call())["structuredContent"]["tool"] == TOOL
            spent = street.canary.calls()
            assert spent == before + (spender is not None), spender
            for name, answer in street.each(call).items():
                assert (answer.status, error(answer)) == (403, "already_consumed"), (spender, name)
            assert error(call()) == "already_consumed", spender
            assert street.canary.calls() == spent, spender

"""A server that guards itself: the examples of sayso-embed as processes of their own, before a real authority. One
answers a refused call with a status, the other with a JSON-RPC error, and a grant does not care which."""

import json
import os
import subprocess
import time

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cast import binary, environment, result
from parties import Agent, Challenge, Negotiation, Owner
from town import PATIENCE, Role, free_port, healthy
from wire import Key, send

UNIT = {"id": "notes", "name": "Notes", "resources": ["notes/read_note"], "ask_me": True, "rules": [],
        "terms": {"purpose": "reading", "scope": ["notes:read"], "expires_in": 3600, "prohibited": ["marketing"],
                  "per_operation": False}}


def example(name):
    """Beside the binary, or where the Rust tests leave it."""
    built = binary().parent
    for path in (built / "examples" / name, built.parent / "debug/examples" / name):
        if path.is_file():
            return path
    pytest.fail(f"no example {name}: cargo build -p sayso-embed --examples")


class Notes:
    """One of the examples. It has no ready line; it serves when its /health does."""

    def __init__(self, name, folder, issuer, url, pem):
        self.variables = {"NOTES_AUTHORITY": issuer, "NOTES_URL": url, "NOTES_KEY": str(pem)}
        self.name, self.folder, self.url = name, folder, url

    def __enter__(self):
        self.process = subprocess.Popen([example(self.name)], env=environment(self.folder) | self.variables)
        deadline = time.monotonic() + PATIENCE
        while not healthy(self.url.removeprefix("http://"), self.url):
            assert self.process.poll() is None and time.monotonic() < deadline, f"{self.name} does not serve"
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(15)


@pytest.fixture
def village(tmp_path):
    """An authority that knows a server which is not there yet."""
    url = f"http://127.0.0.1:{free_port()}"
    listen = f"127.0.0.1:{free_port()}"
    authority = Role("authority", tmp_path / "authority", {
        "edition": os.environ.get("SAYSO_EDITION", "2026-09-11"), "authority.listen": listen,
        "authority.public_url": f"http://{listen}", "authority.interval": 1,
    }, [("owner", {"name": "alice"}),
        ("resource_server", {"client_id": url, "owner": "alice", "resource_uri": f"{url}/mcp"})])
    pem = tmp_path / "notes.pem"
    pem.write_bytes(Key().private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        yield lambda name: Notes(name, tmp_path, f"http://{listen}", url, pem), authority, f"{url}/mcp"
    finally:
        authority.end()


def challenged(name, response):
    """The challenge, from whichever envelope this server uses."""
    if name == "guard_axum":
        return Challenge.of(response)
    error = response.json()["error"]
    assert (response.status, error["code"], error["data"]["status"]) == (200, -32001, 401), response
    assert response.all("www-authenticate") == []
    return error["data"]


@pytest.mark.parametrize("first, second", [("guard_axum", "guard_rmcp"), ("guard_rmcp", "guard_axum")])
def test_a_grant_of_one_encoding_is_good_at_the_other(village, agent, first, second):
    # CORE-15 MCP-03 MCP-10 MCP-13 MCP-16 MCP-18 MCP-19 CORE-83 CORE-115
    notes, authority, resource = village
    with notes(first):
        authority.start()
        owner = Owner(authority.settings["authority.public_url"], Key.from_pem(authority.ready["owner_key"]))
        deadline = time.monotonic() + PATIENCE
        while not owner.read("/resources"):
            assert time.monotonic() < deadline, "the authority never read the server's listing"
            time.sleep(0.05)
        assert owner.request("POST", "/policies", UNIT).status == 201
        refused = challenged(first, agent.call(resource, "read_note"))
        said = refused if isinstance(refused, dict) else {"as_uri": refused.as_uri, "ticket": refused.ticket}
        negotiation = Negotiation(agent, said["as_uri"], said["ticket"], {"tool": "read_note", "params": {}})
        negotiation.ask()
        negotiation.pending(negotiation.commit())
        owner.decide(negotiation.family, "approved")
        token = negotiation.grant(negotiation.poll()).token
        sent = []
        shown = result(agent.call(resource, "read_note", token=token, replayable=sent))
        assert shown["content"][0]["text"] == "buy milk"
        again = send(*sent[0])
        word = again.json()["error"]
        assert (word if isinstance(word, str) else word["data"]["error"]) == "invalid_token"
    with notes(second):
        # A server that begins anew remembers no signature, and so takes none from before.
        time.sleep(1.1)
        assert result(agent.call(resource, "read_note", token=token))["content"][0]["text"] == "buy milk"
        challenged(second, agent.call(resource, "read_note"))
        owner.revoke(agent.handle)
        ended = agent.call(resource, "read_note", token=token)
        word = ended.json()["error"]
        assert (word if isinstance(word, str) else word["data"]["error"]) == "access_revoked"
    assert owner.kinds(negotiation.family).count("touched") == 2


def test_on_a_pipe_a_call_gets_a_ticket_and_no_more(village, tmp_path):
    # MCP-03 MCP-06 MCP-11
    notes, authority, resource = village
    with notes("guard_rmcp") as served:
        authority.start()
        issuer = authority.settings["authority.public_url"]
        owner = Owner(issuer, Key.from_pem(authority.ready["owner_key"]))
        deadline = time.monotonic() + PATIENCE
        while not owner.read("/resources"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}}
        pipe = subprocess.Popen([example("guard_rmcp"), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=environment(tmp_path) | served.variables, text=True)
        try:
            answers = []
            for number, (method, params) in enumerate([("server/discover", {}), ("tools/call", {"name": "read_note"}),
                                                       ("resources/read", {"uri": "x"})]):
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params | {"_meta": meta}}
                pipe.stdin.write(json.dumps(message) + "\n")
                pipe.stdin.flush()
                answers.append(json.loads(pipe.stdout.readline()))
        finally:
            pipe.kill()
            pipe.wait(15)
        discovered, called, read = answers
        assert "dev.uma4agents/uma-enforcement" in discovered["result"]["capabilities"]["extensions"]
        data = called["error"]["data"]
        assert (called["error"]["code"], data["as_uri"]) == (-32001, issuer)
        origin = resource.removesuffix("/mcp")
        assert data["resource_metadata"] == f"{origin}/.well-known/oauth-protected-resource/mcp"
        assert read["error"]["code"] == -32601
        # The ticket is a real one: it opens a negotiation, whose grant is for the HTTP address.
        assert owner.request("POST", "/policies", UNIT).status == 201
        Negotiation(Agent(), data["as_uri"], data["ticket"], {"tool": "read_note", "params": {}}).ask()

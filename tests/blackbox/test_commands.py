"""Every flag, every setting and every table of a configuration file, given wrongly: the command does not start, says in
a sentence what to do about it, and exits with 2 for usage. The lists here are held against what the program says
of itself, so a new key or flag must be added here too."""

import re
import socket
import subprocess
import time

import pytest

from cast import binary, environment
from town import free_port, toml

PATIENCE = 10
ROLES = ("authority", "gateway", "ext-authz")
OWNER = [("owner", {"name": "alice"})]
SERVER = ("resource_server", {"client_id": "http://127.0.0.1:2", "owner": "alice",
                              "resource_uri": "http://127.0.0.1:2/mcp"})
RESOURCE = {"path": "/mcp", "owner": "alice", "authority": "http://127.0.0.1:1", "realm": "vault",
            "upstream": "http://127.0.0.1:3/mcp", "single_use": ["trade"]}
TOOL = {"name": "trade", "scopes": ["trade:call"]}

# Who reads what is set about policies, whether or not a resource asks for one.
POLICED = "up gateway ext-authz"

# What each key refuses, and who reads it.
KEYS = {
    "data": ("up authority gateway ext-authz", ["", 1.5, [1], "{file}", "{file}/below"]),
    "edition": ("up authority gateway ext-authz", ["", "2026", 20260911, "2026-09-15 ", ["2026-09-11"]]),
    "owner.name": ("up", ["", "Alice", "a b", "../a", "a" * 65, "\u00e4", 2.5]),
    "authority.listen": ("up authority", ["", "nonsense", "127.0.0.1", "127.0.0.1:99999", "0.0.0.0:0", "[::]:0",
                                          "localhost:0", 8440, "{taken}", "192.0.2.1:0"]),
    "authority.public_url": ("up authority", ["nonsense", "ftp://as.example", "https://as.example/x", "https://as.example?x",
                                              "https://u@as.example", "http://as.example", "https://AS.example"]),
    "authority.require_signed_polls": ("up authority", ["", "maybe", 1, "True", 0.5]),
    "authority.interval": ("up authority", ["", "x", -1, 0, 61, 1.5, "99999999999999999999"]),
    "authority.identity_providers": ("up authority", ["nonsense", "http://idp.example", "https://idp.example/",
                                                      "https://idp.example/?tenant=1"]),
    "authority.identity_claim": ("up authority", []),
    "authority.trusted_agent_issuers": ("up authority", ["nonsense", "http://ps.example", "https://ps.example/",
                                                         "https://ps.example/t1", "https://PS.example",
                                                         ["https://ps.example", "x"], [1], 1.5]),
    "store.url": ("up authority", ["postgres://db/sayso", "nonsense", "sqlite:", "sqlite:/nowhere/at/all.db",
                                   "sqlite:{folder}", "sqlite:{file}", "SQLITE:x"]),
    "authority.portal_url": ("up authority", ["nonsense", "http://portal.example", "https://portal.example/x",
                                              "https://127.0.0.1", "http://127.0.0.1:8440", "http://[::1]:8440",
                                              "https://PORTAL.example", "ftp://localhost"]),
    "gateway.upstream": ("up", ["nonsense", "ftp://127.0.0.1/mcp", "http://127.0.0.1:1/mcp#x"]),
    "gateway.upstream_stdio": ("up", ['unbalanced "']),
    "gateway.upstream_env": ("up", [["LANG"]]),  # For a command that is not named.
    "gateway.upstream_token_env": ("up", []),
    "gateway.upstream_host": ("up", ["", "keep", "Preserve", "gw.example", 1]),
    "gateway.ask_again": ("up gateway", ["", "maybe", 1, "True", 0.5]),
    "gateway.survey_interval": ("up", ["", "x", -1, 0, 1.5, "99999999999999999999"]),
    "gateway.enforce": ("up", ["maybe", ["uma", "x"], 1]),
    "gateway.pdp": ("up", []),
    "gateway.extra_defaults": ("up", []),
    "gateway.filter_lists": ("up", ["", "maybe", 1, "True", 0.5]),
    "gateway.subject_claim": ("up", []),
    "gateway.trust": ("up", ["", "trust", "Strict", 1]),
    "gateway.binding": ("up", ["", "2026-08", "July", 1]),
    "gateway.audit_arguments": ("up", ["", "maybe", 1, "True", 0.5]),
    "gateway.denials": ("up", ["", "maybe", 1, "Error"]),
    "gateway.denial_text": ("up", ["a..b", ".", "a" * 257]),
    "pdp.url": (POLICED, ["nonsense", "http://pdp.example", "ftp://pdp.example", "https://pdp.example/?a", "embedded"]),
    "pdp.policies": (POLICED, ["/nowhere/at/all", "{file}"]),
    "pdp.ca": (POLICED, ["/nowhere/at/all", "{file}"]),
    "pdp.certificate": (POLICED, ["{file}", "/nowhere/at/all"]),
    "pdp.key": (POLICED, ["{file}", "/nowhere/at/all"]),
    "pdp.token_env": (POLICED, ["SAYSO_NO_SUCH"]),
    "pdp.token_file": (POLICED, ["/nowhere/at/all"]),
    "pdp.timeout": (POLICED, ["", "x", -1, 0, 30001, 1.5]),
    "oauth.issuers": (POLICED, ["nonsense", "http://idp.example", ["https://idp.example", "https://idp.example"], [1]]),
    "oauth.jwks_uri": (POLICED, ["https://keys.example", "https://idp.example https://keys.example", "a b c"]),
    "oauth.audience": (POLICED, [[1], 1.5]),
    "oauth.algorithms": (POLICED, ["none", ["EdDSA", "HS256"], "eddsa"]),
    "oauth.require_at_jwt": (POLICED, ["", "maybe", 1, "True", 0.5]),
    "gateway.realm": ("up", []),
    "metrics.listen": ("up authority gateway ext-authz", ["", "nonsense", "127.0.0.1:-1", "0.0.0.0:0", "{taken}"]),
    "gateway.listen": ("up gateway", ["", "nonsense", "127.0.0.1:-1", "0.0.0.0:0", "{taken}"]),
    "gateway.public_url": ("up gateway", ["nonsense", "ftp://gw.example", "https://gw.example/x", "http://gw.example",
                                          "https://GW.example"]),
    "gateway.body_limit": ("up gateway", ["", "x", -1, 0, "4M", 1.5, "99999999999999999999"]),
    "ext_authz.listen": ("ext-authz", ["", "nonsense", "127.0.0.1:-1", "0.0.0.0:0", "{taken}"]),
    "ext_authz.grpc.listen": ("ext-authz", ["", "nonsense", "127.0.0.1:-1", "0.0.0.0:0", "{taken}"]),
    "ext_authz.public_url": ("ext-authz", ["", "nonsense", "ftp://gw.example", "https://gw.example/x", "http://gw.example",
                                           "https://GW.example"]),
    "ext_authz.hosts": ("ext-authz", [[1], 1.5]),
    "ext_authz.body_limit": ("ext-authz", ["", "x", -1, 0, "4M", 1.5, "99999999999999999999"]),
    "ext_authz.partial_body_flag": ("ext-authz", ["", "maybe", 1, "True", 0.5]),
    "ext_authz.pass_headers": ("ext-authz", ["a b", ["x-tenant", "Cookie"], ["Authorization"], "signature", [1], 1.5]),
    "gateway.allowed_origins": ("up", ["nonsense", "*", "https://app.example/x", ["https://app.example", "x"], [1], 1.5]),
}
MISSPELLED = {"dta": "data", "editon": "edition", "authority.lisen": "authority.listen", "gateway.listn": "gateway.listen",
              "authority.intervall": "authority.interval", "stor.url": "store.url", "owner.nam": "owner.name",
              "gateway.body-limit": "gateway.body_limit",
              "ext_authz.grpc_listen": "ext_authz.grpc.listen", "authority.Listen": "authority.listen"}
UP = {"--data", "--store", "--owner", "--authority", "--gateway", "--metrics", "--config", "--upstream", "--upstream-stdio",
      "--upstream-env", "--realm"}
FLAGS = {
    "up": UP | {"--json"},
    "authority": {"--config", "--json"}, "gateway": {"--config", "--json"}, "ext-authz": {"--config", "--json"},
    "config": UP,
    "owner": {"--data", "--authority", "--key", "--json"},
    "agent": {"--config-dir", "--json"},
}


@pytest.fixture(scope="module")
def taken():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield "127.0.0.1:%d" % held.getsockname()[1]


@pytest.fixture
def run(tmp_path):
    """Runs a command to its end; one that starts serving instead is ended and fails the test."""

    def run(*arguments, **variables):
        process = subprocess.Popen([binary(), *map(str, arguments)], cwd=tmp_path, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(tmp_path) | variables)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"it went on with that: {out}{err}")
        return process.returncode, out, err

    return run


def refused(outcome, *words, code=2):
    """A sentence for a person, once, and nothing on stdout that a script could take for an answer."""
    status, out, err = outcome
    assert status == code, (status, out, err)
    assert out == "", out
    assert len(err.split()) >= 5, err
    for rough in ("panicked", "RUST_BACKTRACE", ".rs:", "unwrap", "Err(", "Some(", "Os {"):
        assert rough not in err, err
    for word in words:
        assert word in err, err


def written(tmp_path, text, name="sayso.toml"):
    file = tmp_path / name
    file.write_text(text)
    return file


def without_upstream(members):
    """A resource whose server the gateway that asks knows."""
    return {name: value for name, value in members.items() if name != "upstream"}


def settings_of(role, tmp_path, more=()):
    """A file with which this role would start."""
    settings = {"data": str(tmp_path / "data"), "authority.listen": "127.0.0.1:0", "gateway.listen": "127.0.0.1:0",
                "ext_authz.listen": "127.0.0.1:0", "ext_authz.grpc.listen": "127.0.0.1:0",
                "ext_authz.public_url": "http://127.0.0.1:2"}
    tables = {"authority": [*OWNER, SERVER], "gateway": [("resource", RESOURCE), ("resource.tools", TOOL)],
              "ext-authz": [("resource", without_upstream(RESOURCE)), ("resource.tools", TOOL)]}
    return settings | dict(more), tables.get(role, [])


def cases():
    for key, (roles, values) in KEYS.items():
        for role in roles.split():
            for value in values:
                yield pytest.param(role, key, value, id=f"{role} {key}={str(value)[:30]!r}")


@pytest.mark.parametrize("role, key, value", list(cases()))
def test_a_value_that_is_none(run, tmp_path, taken, role, key, value):
    file = written(tmp_path, "not a folder, not a store\n", "file")
    if isinstance(value, str):
        value = value.replace("{file}", str(file)).replace("{folder}", str(tmp_path)).replace("{taken}", taken)
    settings, tables = settings_of(role, tmp_path, {key: value})
    outcome = run(role, "--config", written(tmp_path, toml(settings, tables)), "--json")
    last = key.rsplit(".", 1)[-1]
    known = [key, last.replace("_", " "), "--" + last.replace("_", "-"), str(value)]
    refused(outcome)
    assert any(word and word in outcome[2] for word in known), f"it does not say which setting: {outcome[2]}"
    if role == "up" and value not in (taken, "192.0.2.1:0") and key not in ("store.url", "data", "gateway.upstream"):
        refused(run("config", "check", "--config", tmp_path / "sayso.toml"))  # What can be known without starting.


@pytest.mark.parametrize("role", ["up", *ROLES])
@pytest.mark.parametrize("key, meant", MISSPELLED.items())
def test_a_key_nobody_knows(run, tmp_path, role, key, meant):
    settings, tables = settings_of(role, tmp_path, {key: "x"})
    tables = [table for table in tables if not key.startswith(table[0] + ".")]
    refused(run(role, "--config", written(tmp_path, toml(settings, tables)), "--json"), f"`{key}`", f"`{meant}`")


@pytest.mark.parametrize("variable, meant", [
    ("SAYSO_GATEWAY__LISTN", "gateway.listen"), ("SAYSO_GATWAY__LISTEN", "gateway.listen"), ("SAYSO_EDITON", "edition"),
    ("SAYSO_STORE__URI", "store.url"),
])
def test_a_variable_nobody_knows(run, tmp_path, variable, meant):
    outcome = run("up", "--data", tmp_path / "data", "--authority", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--json",
                  **{variable: "x"})
    refused(outcome, variable, f"`{meant}`")


def test_a_variable_with_a_bad_value(run, tmp_path):
    refused(run("up", "--data", tmp_path / "data", SAYSO_AUTHORITY__LISTEN="nonsense"), "authority.listen", "nonsense")
    refused(run("config", "check", SAYSO_EDITION="1"), "edition")


def test_every_key_is_here(run):
    """The program lists its keys itself; each has a default that passes, or none."""
    status, out, err = run("config", "print")
    assert status == 0, err
    assert {line.split(" = ")[0] for line in out.splitlines()} == set(KEYS)
    assert all(re.fullmatch(r'\S+ = ".*"  # default: .+', line) for line in out.splitlines()), out
    assert run("config", "check")[0] == 0


def test_where_a_value_came_from(run, tmp_path):
    file = written(tmp_path, "edition = '2026-09-15'\n[gateway]\nlisten = '127.0.0.1:1'\n")
    status, out, _ = run("config", "print", "--config", file, "--owner", "bob", SAYSO_GATEWAY__LISTEN="127.0.0.1:2")
    assert status == 0
    for line in ('edition = "2026-09-15"  # file', 'gateway.listen = "127.0.0.1:2"  # environment',
                 'owner.name = "bob"  # flag', 'data = ".sayso"  # default'):
        assert line in out, out


# ---- files ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("command", [["up"], ["authority"], ["gateway"], ["config", "check"], ["config", "print"]])
def test_a_file_that_is_none(run, tmp_path, command):
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"data = '\xff\xfe'\n")
    for name, text in {"broken": "data = 'x", "twice": "data = 'x'\ndata = 'y'\n", "json": '{"data": "x"}\n',
                       "binary": "\0\1\2"}.items():
        written(tmp_path, text, name)
    for name in ("missing", "folder", "bytes", "broken", "twice", "json", "binary"):
        refused(run(*command, "--config", tmp_path / name), name)


@pytest.mark.parametrize("role", ROLES)
def test_an_empty_file(run, tmp_path, role):
    table = {"authority": "[[owner]]", "gateway": "[[resource]]", "ext-authz": "[[resource]]"}[role]
    refused(run(role, "--config", written(tmp_path, "")), table)


AUTHORITY_TABLES = {
    "no owner": ([], "[[owner]]"),
    "an owner without a name": ([("owner", {})], "name"),
    "an owner twice": (OWNER * 2, "alice"),
    "an owner with a bad name": ([("owner", {"name": "Al ice"})], "Al ice"),
    "an owner with an empty name": ([("owner", {"name": ""})], "name"),
    "an owner of a wrong type": ([("owner", {"name": 7})], "name"),
    "an owner's unknown member": ([("owner", {"name": "alice", "nme": "x"})], "nme"),
    "a server of nobody": ([*OWNER, ("resource_server", SERVER[1] | {"owner": "bob"})], "bob"),
    "a server whose id is no origin": ([*OWNER, ("resource_server", SERVER[1] | {"client_id": "gw"})], "client_id"),
    "a server whose id has a path": (
        [*OWNER, ("resource_server", SERVER[1] | {"client_id": "http://127.0.0.1:2/x"})], "client_id"),
    "a server elsewhere": (
        [*OWNER, ("resource_server", SERVER[1] | {"resource_uri": "http://127.0.0.1:4/mcp"})], "resource_uri"),
    "a server whose resource is no url": ([*OWNER, ("resource_server", SERVER[1] | {"resource_uri": "mcp"})],
                                          "resource_uri"),
    "a server over plain http": ([*OWNER, ("resource_server", SERVER[1] | {
        "client_id": "http://gw.example", "resource_uri": "http://gw.example/mcp"})], "https"),
    "a server twice": ([*OWNER, SERVER, SERVER], "http://127.0.0.1:2"),
    "a server's unknown member": ([*OWNER, ("resource_server", SERVER[1] | {"uri": "x"})], "uri"),
    "a table nobody knows": ([*OWNER, ("resource_servers", SERVER[1])], "[[resource_server]]"),
}
AUTHORITY_TABLES |= {f"a server without {member}": (
    [*OWNER, ("resource_server", {k: v for k, v in SERVER[1].items() if k != member})], member) for member in SERVER[1]}


def resource(**members):
    return [("resource", RESOURCE | members), ("resource.tools", TOOL)]


GATEWAY_TABLES = {
    "a path without a slash": (resource(path="mcp"), "mcp"),
    "a path with a query": (resource(path="/mcp?x"), "/mcp?x"),
    "an empty path": (resource(path=""), "path"),
    "a path of the gateway's own": (resource(path="/jwks"), "/jwks"),
    "a well-known path": (resource(path="/.well-known/x"), "/.well-known/x"),
    "a path twice": (resource() * 2, "/mcp"),
    "a path of a wrong type": (resource(path=7), "path"),
    "an authority that is no url": (resource(authority="nonsense"), "authority"),
    "an authority with a path": (resource(authority="https://as.example/x"), "authority"),
    "an authority with a slash": (resource(authority="https://as.example/"), "authority"),
    "an authority over plain http": (resource(authority="http://as.example"), "https"),
    "an owner with a bad name": (resource(owner=""), "owner"),
    "an upstream that is no url": (resource(upstream="nonsense"), "upstream"),
    "an upstream of another scheme": (resource(upstream="ftp://127.0.0.1/x"), "upstream"),
    "an upstream with a password": (resource(upstream="http://u:p@127.0.0.1/x"), "upstream"),
    "a host to be told that is neither": (resource(upstream_host="keep"), "preserve"),
    "a host to be told of a wrong type": (resource(upstream_host=7), "upstream_host"),
    "a realm that is empty": (resource(realm=""), "realm"),
    "single use of no tool": (resource(single_use=["other"]), "other"),
    "a protected method opened": (resource(open_methods=["tools/call"]), "method"),
    "an origin that is none": (resource(allowed_origins=["*"]), "allowed_origins"),
    "an origin with a path": (resource(allowed_origins=["https://app.example/x"]), "allowed_origins"),
    "a flag of a wrong type": (resource(accept_uncovered_body="yes"), "accept_uncovered_body"),
    "an unknown member": (resource(upstrem="x"), "upstrem"),
    "a tool twice": (resource() + [("resource.tools", TOOL)], "trade"),
    "a tool without scopes": ([("resource", RESOURCE), ("resource.tools", TOOL | {"scopes": []})], "scope"),
    "a tool without a name": ([("resource", RESOURCE), ("resource.tools", {"scopes": ["x"]})], "name"),
    "a scope with a space": ([("resource", RESOURCE), ("resource.tools", TOOL | {"scopes": ["a b"]})], "scope"),
    "a consequence nobody knows": ([("resource", RESOURCE), ("resource.tools", TOOL | {"consequence": "bad"})], "bad"),
    "a tool's unknown member": ([("resource", RESOURCE), ("resource.tools", TOOL | {"scope": "x"})], "scope"),
    "a table nobody knows": (resource() + [("resourcs", {"path": "/x"})], "[[resource]]"),
}
GATEWAY_TABLES |= {f"no {member}": (
    [("resource", {k: v for k, v in RESOURCE.items() if k != member}), ("resource.tools", TOOL)], member)
    for member in RESOURCE if member != "single_use"}
EXT_AUTHZ_TABLES = {name: ([(table, without_upstream(members)) for table, members in tables], word)
                    for name, (tables, word) in GATEWAY_TABLES.items() if "upstream" not in name}
EXT_AUTHZ_TABLES["an upstream"] = (resource(), "upstream")
TABLES = [pytest.param(role, tables, word, id=f"{role}: {name}")
          for role, all_of in (("authority", AUTHORITY_TABLES), ("gateway", GATEWAY_TABLES),
                              ("ext-authz", EXT_AUTHZ_TABLES))
          for name, (tables, word) in all_of.items()]


@pytest.mark.parametrize("role, tables, word", TABLES)
def test_a_table_that_is_none(run, tmp_path, role, tables, word):
    settings, _ = settings_of(role, tmp_path)
    refused(run(role, "--config", written(tmp_path, toml(settings, tables)), "--json"), word)


def test_a_table_written_once(run, tmp_path):
    """`[resource]` for `[[resource]]` is the likeliest slip."""
    settings, _ = settings_of("gateway", tmp_path)
    refused(run("gateway", "--config", written(tmp_path, toml(settings) + "[resource]\npath = '/mcp'\n")), "[[resource]]")
    settings, _ = settings_of("authority", tmp_path)
    refused(run("authority", "--config", written(tmp_path, toml(settings) + "[owner]\nname = 'alice'\n")), "[[owner]]")


def test_what_she_answers_may_begin_with_a_hyphen(run):
    """Names of negotiations are random text."""
    for word in ("show", "approve", "deny"):
        for family in ("-P0qnaeSjV12hXRpIv0-dw", "--qnaeSjV12hXRpIv0-dwP"):
            refused(run("owner", word, family, "--data", "nowhere"), "no `sayso up` has run on nowhere", code=7)

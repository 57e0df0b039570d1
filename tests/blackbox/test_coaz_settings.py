"""What is set about policies: values that cannot be used are refused at the start whoever would use them, a policy engine
is asked with the roots and the credentials that are set, and each setting of a resource does what it says."""

import json
import re
import ssl
import subprocess

import pytest

from cast import ROOT, binary, environment, result
from engine import Engine, Issuer
from test_coaz_hosts import DECLARED, Shop, Stand, ended, refused
from tls import certificate
from town import toml
from wire import send

UNASKED = {"path": "/mcp", "enforce": [], "owner": "alice", "authority": "http://127.0.0.1:9", "realm": "shop",
           "upstream": "http://127.0.0.1:9/mcp"}
WRONG = [
    ({"pdp.url": "pdp.example.test"}, "https URL"), ({"pdp.url": "http://pdp.example.test"}, "use https"),
    ({"pdp.policies": "/no/such/folder"}, "pdp.policies"), ({"pdp.timeout": 0}, "between 1 and 30000"),
    ({"pdp.ca": "/no/such/file"}, "pdp.ca"), ({"pdp.key": "/dev/null"}, "set both, or neither"),
    ({"pdp.token_env": "SAYSO_NO_SUCH"}, "SAYSO_NO_SUCH"), ({"oauth.issuers": ["idp.example.test"]}, "https URL"),
    ({"oauth.algorithms": ["HS256"]}, "HS256"), ({"oauth.require_at_jwt": "maybe"}, "require_at_jwt"),
    ({"oauth.jwks_uri": "https://keys.example.test"}, "0 issuers"),
]


@pytest.mark.parametrize("settings, word", WRONG)
def test_a_value_that_cannot_be_used_is_refused_though_nobody_asks(tmp_path, settings, word):  # COAZ-MCP-86
    for kind, listen in (("gateway", {"gateway.listen": "127.0.0.1:0"}), ("ext-authz", {
            "ext_authz.public_url": "http://127.0.0.1:2", "ext_authz.listen": "127.0.0.1:0",
            "ext_authz.grpc.listen": "127.0.0.1:0"})):
        table = UNASKED if kind == "gateway" else {k: v for k, v in UNASKED.items() if k != "upstream"}
        status, said = ended(tmp_path / kind, kind, listen | settings, [("resource", table)])
        assert status != 0 and word in said, said
    file = tmp_path / "up.toml"
    file.write_text(toml({"data": str(tmp_path / "data")} | settings))
    for command in (["config", "check"], ["up", "--json"]):
        done = subprocess.run([binary(), *command, "--config", file], cwd=tmp_path, capture_output=True, timeout=30,
                              env=environment(tmp_path), check=False)
        assert done.returncode != 0 and word in done.stderr.decode(), done


@pytest.mark.parametrize("wishes, word", [
    ({}, "`mappings`"), ({"mappings": "none", "upstream": "http://127.0.0.1:9/mcp"}, "leave one of them out"),
    ({"mappings": "none", "denials": "tool_result"}, "error status"), ({"mappings": "none", "filter_lists": True}, "lists"),
    ({"mappings": "none", "denial_text": "a..b"}, "denial_text"), ({"upstream": "ftp://127.0.0.1/mcp"}, "upstream"),
    ({"upstream_stdio": "cat"}, "leave it out"), ({"mappings": "none", "denials": "result"}, "tool_result"),
])
def test_what_an_external_authorizer_cannot_do_it_does_not_start_with(tmp_path, wishes, word):  # COAZ-MCP-79 D-36
    settings = {"ext_authz.public_url": "http://127.0.0.1:2", "ext_authz.listen": "127.0.0.1:0",
                "ext_authz.grpc.listen": "127.0.0.1:0", "pdp.url": "https://pdp.example.test",
                "oauth.issuers": ["https://idp.example.test"]}
    table = {"path": "/mcp", "enforce": ["coaz"]} | wishes
    status, said = ended(tmp_path, "ext-authz", settings, [("resource", table)])
    assert status != 0 and word in said, said


# ---- how it is asked ---------------------------------------------------------------------------------------


class Locked(Engine):
    """A policy engine that speaks https and lets in only who shows a certificate by its own root."""

    def __init__(self, files):
        root, chain, key = files
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain, key)
        tls.load_verify_locations(root)
        tls.verify_mode = ssl.CERT_REQUIRED
        super().__init__(tls)


def test_a_policy_engine_is_asked_with_the_roots_and_credentials_that_are_set(tmp_path):  # COAZ-MCP-80 AZ-11 AZ-13
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    own, other = certificate(tmp_path / "own"), certificate(tmp_path / "other")
    (tmp_path / "token").write_text("s3cret\n")
    engine = Locked(own)
    right = {"pdp.url": engine.url, "pdp.ca": str(own[0]), "pdp.certificate": str(own[1]), "pdp.key": str(own[2]),
             "pdp.token_file": str(tmp_path / "token")}
    try:
        with Stand(tmp_path / "right", settings=right) as stand:
            result(stand.ask())
            (head,) = engine.heads
            assert head["authorization"] == "Bearer s3cret" and stand.token() not in json.dumps(head)
            assert "s3cret" not in stand.role.logged()
            result(stand.ask())
            engine.answer = lambda body: False
            refused(stand.ask(), -32001, "denied")
        engine.answer = lambda body: True
        for name, wrong in {
            "another root": {"pdp.ca": str(other[0])}, "the system's roots": {"pdp.ca": ""},
            "no certificate": {"pdp.certificate": "", "pdp.key": ""},
            "another's certificate": {"pdp.certificate": str(other[1]), "pdp.key": str(other[2])},
        }.items():
            engine.asked.clear()
            with Stand(tmp_path / name, settings=right | wrong) as stand:
                error = refused(stand.ask(), -32603, "pdp_unavailable")
                assert "localhost" not in json.dumps(error), name
                assert engine.asked == [] and stand.shop.calls() == 0, name
    finally:
        engine.close()


class Elsewhere(Issuer):
    """An issuer whose keys are where it does not say."""

    def get(self, path):
        return super().get("/jwks") if path == "/keys/here" else (404, "text/plain", b"")


def test_each_issuer_may_have_its_keys_elsewhere(tmp_path):  # COAZ-MCP-81
    other = Elsewhere()
    try:
        with Stand(tmp_path) as stand:
            token = other.token(stand.resource)
            assert stand.ask(token=token).status == 401, "nobody named it"
            both = {"oauth.issuers": [stand.issuer.url, other.url],
                    "oauth.jwks_uri": [f"{other.url} {other.url}/keys/here"]}
            stand.role.end()
            stand.role.write(stand.role.settings | both, stand.role.tables)
            stand.role.start()
            result(stand.ask(token=token))
            result(stand.ask())
            mixed = other.token(stand.resource, iss=stand.issuer.url)
            assert stand.ask(token=mixed).status == 401, "a key of one issuer is none of the other's"
    finally:
        other.close()


# ---- what a resource's settings do ---------------------------------------------------------------------------


class Loose(Shop):
    """The shop, with a tool whose mapping takes the subject from an argument, and a card that declares others."""

    def _result(self, message):
        answer = super()._result(message)
        if message["method"] == "server/discover":
            answer["tools"] = [{"name": "look", "inputSchema": {"x-authzen-mapping": None}}]
        if message["method"] == "tools/list" and self.listed:
            loose = {"evaluation": DECLARED["evaluation"] | {"subject": {"type": "identity", "id": "$params.arguments.who"}}}
            answer["tools"].append({"name": "send", "inputSchema": {"type": "object", "x-authzen-mapping": loose}})
        return answer


SEND = {"name": "send", "arguments": {"who": "u-bob", "account": "acc-9", "amount": 1}}


def test_a_subject_that_is_its_mappings_word_is_warned_of_once(tmp_path):  # COAZ-MCP-58 COAZ-MCP-82 COAZ-MCP-24
    with Stand(tmp_path, shop=Loose()) as stand:
        for _ in range(3):
            result(stand.ask(name="send", params=SEND))
        assert [asked["subject"]["id"] for asked in stand.engine.asked] == ["u-bob"] * 3
        assert stand.role.logged().count("mapping.unverified") == 1
        metrics = stand.role.ready["metrics"] + "/metrics"
        assert 'sayso_mapping_warnings_total{notice="subject_unverified"} 1' in send("GET", metrics).body.decode()
        # What a card repeats is no listing: its mapping neither counts nor harms.
        result(stand.ask())


def test_strictly_such_a_subject_is_refused(tmp_path):  # COAZ-FW-48 COAZ-MCP-82
    with Stand(tmp_path, shop=Loose(), wishes={"trust": "strict"}) as stand:
        error = refused(stand.ask(name="send", params=SEND), -32602, "mapping_error")
        assert "u-bob" not in json.dumps(error)
        assert stand.engine.asked == [] and stand.shop.calls() == 0
        result(stand.ask(name="pay", params={"name": "pay", "arguments": {"account": "a", "amount": 1}}))
        result(stand.ask())


def test_a_denial_is_told_as_is_set(tmp_path):  # COAZ-MCP-78 COAZ-MCP-79
    context = {"reason": "R", "reason_user": {"en": "not\u202e today\n- or ever", "de": "nein"}}
    said = json.dumps({"decision": False, "context": context}).encode()
    wishes = {"denials": "tool_result", "denial_text": "reason_user.en"}
    with Stand(tmp_path, wishes=wishes) as stand:
        stand.engine.answer = lambda body: (200, "application/json", said)
        answer = stand.ask(request_id="n-7")
        assert answer.status == 200 and answer.json()["id"] == "n-7" and "error" not in answer.json()
        denied = answer.json()["result"]
        assert denied["isError"] is True and denied["resultType"] == "complete"
        (content,) = denied["content"]
        assert content == {"type": "text", "text": "Access denied: not today - or ever"}
        error = refused(stand.ask("prompts/list"), -32001, "denied")
        assert error["message"] == "Access denied: not today - or ever"
        for context in ({"reason": "R"}, {}, {"reason_user": "x"}, {"reason_user": {"en": 7}}):
            body = json.dumps({"decision": False, "context": context}).encode()
            stand.engine.answer = lambda asked, body=body: (200, "application/json", body)
            assert stand.ask().json()["result"]["content"][0]["text"] == "Access denied: the policy says no"
        stand.engine.answer = lambda body: (500, "text/plain", b"")
        refused(stand.ask(), -32603, "pdp_unavailable")
        refused(stand.ask(name="odd", params={"name": "odd"}), -32602, "mapping_error")
        assert stand.shop.calls() == 0
        metrics = stand.role.ready["metrics"] + "/metrics"
        assert 'sayso_policy_decisions_total{decision="deny"} 6' in send("GET", metrics).body.decode()


def test_the_statement_of_conformance_says_what_a_gateway_does(tmp_path):  # COAZ-FW-44
    page = (ROOT / "docs/coaz.md").read_text()
    statement = page.split("## Conformance")[1].split("\n## ")[0]
    points = re.findall(r"\*([a-z -]+?)\*", " ".join(statement.split()))
    assert points == ["language", "marker", "variables", "envelopes", "operations in scope", "operations that pass",
                      "declared mappings", "anchored member", "errors", "discovery", "fall-back"]
    codes = dict(re.findall(r"\| `(\w+)` \| \u2212(\d+) \|", page))
    with Stand(tmp_path) as stand:
        def category(no):
            error = no.json()["error"]
            return error["data"]["coaz"]["category"], str(-error["code"])

        stand.engine.answer = lambda body: False
        met = [category(stand.ask())]
        stand.engine.answer = lambda body: (500, "text/plain", b"")
        met += [category(stand.ask()), category(stand.ask(name="odd", params={"name": "odd"}))]
    with Stand(tmp_path / "unlisted", shop=Unlisted()) as stand:
        met.append(category(stand.ask()))
    assert dict(met) == codes


class Unlisted(Shop):
    """One that never lists."""

    listed = False


# ---- external authorization that asks the server itself -------------------------------------------------------


def test_an_external_authorizer_asks_the_server_for_its_mappings(tmp_path):  # D-30 D-36 COAZ-MCP-04
    shop = Shop()
    with Stand(tmp_path, "ext-authz", wishes={"upstream": shop.url}, shop=shop) as stand:
        check = stand.role.ready["check"] + "/mcp"
        host = [("Host", stand.url.removeprefix("http://")), ("X-Envoy-Auth-Partial-Body", "false")]

        def asked(**changes):
            return stand.ask(to=check, extra=host + changes.pop("more", []), **changes)

        arguments = {"account": "acc-9", "amount": 12}
        assert asked(name="pay", params={"name": "pay", "arguments": arguments}).status == 200
        assert stand.engine.asked[-1]["resource"] == {"type": "account", "id": "acc-9"}
        odd = asked(name="odd", params={"name": "odd"})
        assert odd.status == 403 and odd.json()["error"]["code"] == -32602
        assert shop.calls() == 0, "it lists, and calls nothing"
        # A session it does not see begin is whose call was first let through in it.
        inside = [("Mcp-Session-Id", "s-1")]
        assert asked(version="2025-11-25", more=inside).status == 200
        no = asked(version="2025-11-25", more=inside, token=stand.token(sub="u-eve"))
        assert (no.status, no.json()["error"]) == (403, "session_bound")
        assert asked(version="2025-11-25", more=inside).status == 200


def test_an_external_authorizer_that_gets_no_listing_lets_no_call_through(tmp_path):  # D-36
    shop = Unlisted()
    with Stand(tmp_path, "ext-authz", wishes={"upstream": shop.url}, shop=shop) as stand:
        check = stand.role.ready["check"] + "/mcp"
        host = [("Host", stand.url.removeprefix("http://")), ("X-Envoy-Auth-Partial-Body", "false")]
        no = stand.ask(to=check, extra=host)
        assert no.status == 403 and no.json()["error"]["data"]["coaz"]["category"] == "mapping_unavailable"
        assert stand.engine.asked == []
        assert stand.ask("prompts/list", to=check, extra=host).status == 200

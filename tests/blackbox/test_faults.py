"""Public faults of other implementations, tried here: what docs/faults.md lists and no other file shows. Between an
authority and a gateway as processes of their own, before an upstream that keeps every byte it gets."""

import json
import re
import secrets
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from cast import REALM, TRADE, result
from parties import FORM, JSON, UMA_TICKET, Agent, Challenge
from test_altered_terms import TYP
from town import Town
from wire import b64, compact_jws, fetch_json, mcp_body, mcp_headers, send, verify_jws

EVIL = "evil.example.test"


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with Town.running(tmp_path_factory.mktemp("town")) as town:
        yield town


@pytest.fixture(scope="module")
def known(town):
    known = Agent()
    known.read = known.obtain(town.resource, "get_positions", owner=town.owner)
    return known


@contextmanager
def behind_untouched(town):
    """Around a hostile request: nothing reaches the server behind, and she is told of nothing."""
    before = len(town.canary.bodies), len(town.owner.ledger()), sorted(town.owner.pending())
    yield
    assert (len(town.canary.bodies), len(town.owner.ledger()), sorted(town.owner.pending())) == before


def raw(town, target, body=None, extra=()):
    """An unsigned trade, or another body, sent to this target exactly as it is written; the status."""
    parts = urlsplit(town.resource)
    body = mcp_body("tools/call", {"name": "execute_trade", "arguments": TRADE}) if body is None else body
    lines = [("Host", parts.netloc), *mcp_headers("tools/call", "execute_trade"), ("Content-Length", str(len(body))),
             *extra]
    head = f"POST {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as stream:
        stream.sendall(head.encode() + body)
        return int(re.match(rb"HTTP/1\.1 (\d{3})", stream.recv(65536)).group(1))


# ---- where a request goes (case 16), and who may send it from a browser (case 17) ------------------------------------


@pytest.mark.parametrize("target", [
    "/mcp#f", "/mcp#", "http://{host}/mcp", "http://{host}/mcp#f", "http://{host}//mcp", "http://{host}/%6dcp",
    "http://{host}", "http://evil.example.test/mcp", "//{host}/mcp",
])
def test_no_spelling_of_the_address_is_a_way_in(town, target):
    with behind_untouched(town):
        assert raw(town, target.format(host=urlsplit(town.resource).netloc)) in (400, 401, 404, 421)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"jsonrpc":"2.0","jsonrpc":"2.0"}'])
def test_an_origin_is_refused_before_the_body_is_read(town, body):
    with behind_untouched(town):
        assert raw(town, "/mcp", body, [("Origin", f"https://{EVIL}")]) == 403


@pytest.mark.parametrize("verb, body", [("GET", None), ("HEAD", None), ("DELETE", None), ("POST", b"")])
def test_no_verb_is_passed_through_unasked(town, verb, body):
    """The stream of server messages and the end of a session behind are not for whoever asks (E23)."""
    heads = len(town.canary.heads)
    lines = [("Accept", "text/event-stream"), ("MCP-Protocol-Version", "2025-11-25")]
    lines += [JSON] if body is not None else []
    for session in ([], [("Mcp-Session-Id", "s")]):
        assert send(verb, town.resource, lines + session, body).status in (400, 404, 405)
    assert len(town.canary.heads) == heads


# ---- what is dear to read (case 10) ----------------------------------------------------------------------------------

DEAR = {
    "lists": b"[" * 200_000, "objects": b'{"a":' * 100_000, "a long string": b'"' + b"x" * 3_000_000,
    "many members": b"{" + b",".join(b'"%d":0' % n for n in range(300_000)), "white space": b" " * 4_000_000,
    "equal names": b"{" + b'"a":0,' * 300_000, "a long number": b"9" * 3_000_000,
}


@pytest.mark.parametrize("body", DEAR)
def test_what_is_dear_to_read_is_refused_soon(town, body):
    with behind_untouched(town):
        began = time.monotonic()
        assert raw(town, "/mcp", DEAR[body]) in (400, 413)
        assert time.monotonic() - began < 3
    assert send("POST", town.resource, mcp_headers("tools/list"), mcp_body("tools/list")).status == 200


# ---- who somebody says they are (case 22) ----------------------------------------------------------------------------

SPOOFED = [
    ("X-Uma-Owner", "owner-b"), ("x-uma-agent", "jkt:attacker"), ("X-Uma-Scopes", "trades:execute"),
    ("X_Uma_Owner", "b"), ("X-Forwarded-Host", EVIL), ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-User", "alice"), ("X-Real-Ip", "127.0.0.1"), ("Forwarded", f"host={EVIL};for=127.0.0.1"),
    ("X-Original-Url", "/admin"), ("X-Rewrite-Url", "/admin"), ("X-Http-Method-Override", "DELETE"),
    ("X-User", "alice"), ("X-Remote-User", "alice"), ("Remote-User", "alice"), ("X-Auth-Request-User", "alice"),
    ("X-Ssl-Client-Verify", "SUCCESS"), ("Cookie", "session=x"), ("Proxy-Authorization", "Basic x"),
    ("x-envoy-auth-failure-mode-allowed", "true"), ("x-ext-authz-check-result", "allowed"),
]
PASSED = {"host", "content-type", "content-length", "accept", "mcp-protocol-version", "mcp-method", "mcp-name"}


def test_what_a_caller_says_of_itself_goes_nowhere(town, known):
    """An open call and a granted one, each with every header somebody might believe: none of them arrives, and neither
    does anything that could be used again."""
    result(known.call(town.resource, "get_positions", token=known.read.token, extra=SPOOFED))
    granted = town.canary.heads[-1], town.canary.bodies[-1]
    assert known.request(town.resource, "tools/list", extra=SPOOFED).status == 200
    opened = town.canary.heads[-1], town.canary.bodies[-1]
    for head, body in (granted, opened):
        names = [name.lower() for name, _ in head]
        assert set(names) <= PASSED and len(names) == len(set(names)), names
        text = json.dumps(head) + body.decode()
        secret = [known.read.token, known.read.token.rpartition(".")[2], "PoP", known.key.thumbprint, EVIL, "alice"]
        assert [word for word in secret if word in text] == []


@pytest.mark.parametrize("extra", [SPOOFED[-2:], SPOOFED], ids=["said to be allowed", "all of them"])
def test_nobody_is_let_in_for_what_a_header_says(town, extra):
    with behind_untouched(town):
        response = Agent().call(town.resource, "execute_trade", TRADE, extra=extra)
        challenge = Challenge.of(response)
        assert (challenge.as_uri, challenge.realm) == (town.issuer, REALM)
        assert EVIL not in response.body.decode()


def test_her_authority_believes_no_such_header_either(town, known):
    server = town.resource_server()
    for verb, url, body in [
        ("GET", town.owner.endpoint + "/pending", None), ("GET", town.owner.endpoint + "/ledger", None),
        ("POST", town.metadata["introspection_endpoint"], f"token={known.read.token}".encode()),
        ("POST", town.metadata["consume_endpoint"], f"token={known.read.token}".encode()),
    ]:
        response = send(verb, url, [*([FORM] if body else []), *SPOOFED], body)
        assert response.status in (400, 401), response
        assert known.read.token not in response.body.decode() and "active" not in response.body.decode()
    document = send("GET", f"{town.issuer}/.well-known/uma2-configuration", SPOOFED[4:12])
    assert document.json() == town.metadata
    assert server.state(known.read.token) is True


# ---- one spelling of every identifier (case 23) ----------------------------------------------------------------------


def test_every_identifier_is_the_configured_text(town, known):
    """Nothing went through a URL library on its way: no slash came or went, anywhere it is said."""
    challenge = Challenge.of(known.call(town.resource, "execute_trade", TRADE))
    document = fetch_json(challenge.resource_metadata)
    _, signed = verify_jws(document["signed_metadata"], fetch_json(document["jwks_uri"]))
    _, receipt = verify_jws(known.read.receipt, fetch_json(town.metadata["jwks_uri"]))
    introspected = town.resource_server().introspect(known.read.token).json()
    issuers = [challenge.as_uri, challenge.remediation["authorization_server"], *document["authorization_servers"],
               *signed["authorization_servers"], town.metadata["issuer"], known.read.claims["iss"], introspected["iss"],
               known.read.negotiation.template["proffered_by"], receipt["iss"]]
    assert set(issuers) == {town.issuer}
    assert {document["resource"], signed["resource"], signed["iss"]} == {town.resource}
    assert {known.read.claims["aud"], introspected["aud"]} == {town.url}


# ---- times that are no times (case 32) -------------------------------------------------------------------------------

TIMES = ['"{now}"', '"soon"', "null", "true", "[{now}]", "{{}}", "{now}.0", "{now}.5", "1.8e9", "1e400", "1e30", "-1",
         "0", "{now}000", "18446744073709551616", None]


@pytest.mark.parametrize("time_", TIMES, ids=str)
def test_an_agreement_is_dated_in_whole_seconds(town, known, time_):
    negotiation = known.negotiate(town.resource, "get_positions")
    claims = negotiation.claims() | {"iat": "@"}
    if time_ is None:
        del claims["iat"]
    text = json.dumps(claims).replace('"@"', (time_ or "").format(now=int(time.time())))
    jws = compact_jws(known.key, {"typ": TYP, "alg": "EdDSA", "jwk": known.key.jwk}, text.encode())
    response = negotiation.commit(claim_token=b64(jws.encode()))
    assert (response.status, response.json()["error"]) == (403, "request_denied"), response
    assert not {"promised", "connected", "touched"} & set(town.owner.kinds(negotiation.family))
    assert negotiation.present().status == 400


# ---- keys that prove nothing (case 37) -------------------------------------------------------------------------------

POINTS = {
    "identity": "01" + 31 * "00", "identity, signed": "01" + 30 * "00" + "80", "order 2": "ec" + 30 * "ff" + "7f",
    "order 4": 32 * "00", "order 4, signed": 31 * "00" + "80",
    "order 8": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "another of order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "beyond the field": "ed" + 30 * "ff" + "7f", "one further": "ee" + 30 * "ff" + "7f",
}
UNIVERSAL = b64(b"\x01" + bytes(63))


@pytest.mark.parametrize("point", POINTS)
def test_a_key_anybody_can_sign_with_agrees_to_nothing(town, known, point):
    """Under such a key one signature fits many texts: whoever saw it could act, and its holder could deny it."""
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(bytes.fromhex(POINTS[point]))}
    negotiation = known.negotiate(town.resource, "get_positions")
    header = {"typ": TYP, "alg": "EdDSA", "jwk": jwk}
    signed = compact_jws(known.key, header, negotiation.claims()).rpartition(".")[0]
    before = sorted(town.owner.connections())
    response = negotiation.commit(claim_token=b64(f"{signed}.{UNIVERSAL}".encode()))
    assert (response.status, response.json()["error"]) == (403, "request_denied"), response
    assert sorted(town.owner.connections()) == before and negotiation.family not in town.owner.pending()


@pytest.mark.parametrize("jwk", [
    {"kty": "OKP", "crv": "X25519", "x": "A" * 43}, {"kty": "OKP", "crv": "Ed25519", "x": "A" * 42},
    {"kty": "OKP", "crv": "Ed25519", "x": "A" * 44}, {"kty": "OKP", "crv": "Ed25519"}, ["Ed25519", "OKP", "A" * 43],
    "x",
], ids=["X25519", "short", "long", "none", "a list", "text"])
def test_a_key_of_another_kind_agrees_to_nothing(town, known, jwk):
    negotiation = known.negotiate(town.resource, "get_positions")
    response = negotiation.commit(header={"typ": TYP, "alg": "EdDSA", "jwk": jwk})
    assert (response.status, response.json()["error"]) == (403, "request_denied"), response


# ---- an end is an end at once (case 51) ------------------------------------------------------------------------------


def test_no_call_begun_after_her_revocation_is_answered(town):
    """While eight callers go on calling: what was sent after she had her answer is refused, and offers no new start."""
    agent, told, ended = Agent(), [], []
    grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
    deadline = time.monotonic() + 20

    def calls(_):
        while time.monotonic() < deadline and (not ended or time.monotonic() < ended[0] + 0.5):
            sent = time.monotonic()
            told.append((sent, agent.call(town.resource, "get_positions", token=grant.token)))

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(calls, number) for number in range(8)]
        while sum(response.status == 200 for _, response in list(told)) < 20:
            assert time.monotonic() < deadline, told[-1:]
        assert town.owner.revoke(agent.handle)["rpts_deactivated"] == 1
        ended.append(time.monotonic())
        for one in running:
            one.result()
    late = [response for sent, response in told if sent > ended[0]]
    assert len(late) >= 8
    for response in late:
        assert (response.status, response.json()["error"]) == (403, "access_revoked"), response
        assert response.all("www-authenticate") == [] and "ticket" not in response.body.decode()
    assert {response.status for _, response in told} == {200, 403}
    answered = sum(response.status == 200 for _, response in told)
    assert town.owner.kinds(grant.family).count("touched") == answered


# ---- what an earlier laboratory got wrong (E15, E22) -----------------------------------------------------------------


@pytest.mark.parametrize("form", [
    {"client_secret": "gehe\u00edm"}, {"client_id": "https://\u00e9.example"}, {"owner": "\u202e"}, {"scope": "\u00e9"},
    {"client_assertion": "\ud7ff"}, {"client_id": "x" * 5000},
], ids=lambda form: next(iter(form)))
def test_odd_letters_in_a_form_are_an_answer_and_no_crash(town, form):
    response = town.resource_server().ask_token(form=form)
    assert response.status in (400, 401) and response.json()["error"], response
    assert response.json()["error_description"] and "panicked" not in response.body.decode()
    ticket = {"grant_type": UMA_TICKET, "ticket": "\u00e9\u202e", "claim_token": "\u00e9"}
    body = "&".join(f"{name}={value}" for name, value in ticket.items()).encode()
    assert send("POST", town.metadata["token_endpoint"], [FORM], body).status == 400


def test_her_record_holds_no_argument_of_a_call(town, known):
    """Of a call under a reusable grant she is told which tool, and a digest that her agent can check."""
    word = "zq" + secrets.token_hex(8)
    grant = known.obtain(town.resource, "get_transactions", {"account": word}, owner=town.owner)
    result(known.call(town.resource, "get_transactions", {"account": word, "limit": 7}, token=grant.token))
    assert json.loads(town.canary.bodies[-1])["params"]["arguments"] == {"account": word, "limit": 7}
    rows = [row for row in town.owner.ledger() if row["family"] == grant.family]
    assert [row["kind"] for row in rows].count("touched") == 1
    assert word not in json.dumps(rows)

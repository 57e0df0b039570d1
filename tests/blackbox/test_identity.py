"""Who an agent is: named by an issuer that somebody else wrote, described by documents that we write and an operator
hosts, and the same agent under a new key when the owner says so."""

import hashlib
import json
import os
import secrets
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

import pytest
from aauth.keys.jwk import generate_jwks, public_key_to_jwk
from aauth.keys.keypair import generate_ed25519_keypair
from aauth.metadata.agent import generate_agent_metadata
from aauth.tokens.agent_token import create_agent_token
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms

from cast import TRADE, binary, environment
from shims import Person, client, command, run, text_of
from stock import Front
from tls import Origin, certificate
from wire import Key, b64, unb64

DIRECTORY = "/.well-known/http-message-signatures-directory"
WORKER = "aauth:worker@localhost"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def issuer(tmp_path_factory, files):
    try:
        origin = Origin(tmp_path_factory.mktemp("issuer"), files, 443)
    except PermissionError:
        pytest.skip("an AAuth issuer has no port in its name, and port 443 is not ours to listen on here")
    yield Issuer(origin)
    origin.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory, files):
    variables = {"SAYSO_AUTHORITY__TRUSTED_AGENT_ISSUERS": "https://localhost", "SSL_CERT_FILE": str(files[0])}
    with Front.running(tmp_path_factory.mktemp("house"), **variables) as front:
        yield front


class Issuer:
    """PyPI's `aauth`, behind https."""

    def __init__(self, origin):
        self.origin, self.url = origin, origin.url
        self.private, public = generate_ed25519_keypair()
        self.origin.put("/.well-known/aauth-agent.json",
                        json.dumps(generate_agent_metadata(self.url, self.url + "/jwks.json", client_name="People")))
        self.origin.put("/jwks.json", json.dumps(generate_jwks([public_key_to_jwk(public, "issuer-1")])))

    def name(self, jwk, subject=WORKER, private=None, **more):
        return create_agent_token(self.url, subject, jwk | {"alg": "Ed25519"}, private or self.private, "issuer-1", **more)


def seen_at(house, home, *words):
    """Who an agent says it is to the authority of this house."""
    done = house.type("agent", "id", "--authority", house.authority, *words, "--json", home=home)
    assert done.returncode == 0, done
    (identity,) = json.loads(done.stdout)
    return identity


def kept(house, home, token):
    path = house.folder / home / "credential"
    path.touch(mode=0o600)
    path.write_text(token)
    return path


def call(house, home, *words, tool="get_positions", wait=0):
    return house.type("agent", "call", house.resource, tool, "--accept-terms", "--wait", wait, *words, home=home)


def test_an_agent_that_an_issuer_names(house, issuer):  # CORE-46 CORE-48 CORE-49 AAUTH-01 AAUTH-11
    credential = kept(house, "one", issuer.name(seen_at(house, "one")["jwk"]))
    shown = seen_at(house, "one", "--credential", credential)
    assert (shown["handle"], shown["identity"], shown["issuer"]) == (WORKER, "identified", issuer.url), shown
    waiting = call(house, "one", "--credential", credential)
    assert waiting.returncode == 5, waiting
    (item,) = house.owner.pending().values()
    assert (item["identity"], item["agent"], item["assurance"]["provenance"]) == ("identified", WORKER, 1), item
    told = house.say("show", item["family"])
    assert WORKER in told.stdout and "https://localhost says that it is" in told.stdout, told
    house.answer("approve")
    done = call(house, "one", "--credential", credential, wait=20)
    assert done.returncode == 0, done
    assert house.owner.connections()[WORKER]["identity"] == "identified"
    # Another machine, another session key: the same agent, whom she let in already.
    credential = kept(house, "two", issuer.name(seen_at(house, "two")["jwk"]))
    done = call(house, "two", "--credential", credential, wait=5)
    assert done.returncode == 0, done
    assert list(house.owner.connections()) == [WORKER]
    assert issuer.origin.asked == ["/.well-known/aauth-agent.json", "/jwks.json"], "asked once"


def test_a_word_that_does_not_count(house, issuer):  # CORE-46 AAUTH-06 AAUTH-14
    jwk = seen_at(house, "three")["jwk"]
    before = (house.owner.ledger(), sorted(house.owner.connections()))
    forged, _ = generate_ed25519_keypair()
    stranger = Key()
    others = {
        "forged": (6, issuer.name(jwk, private=forged)),
        "for another key": (2, issuer.name({"kty": "OKP", "crv": "Ed25519", "x": stranger.jwk["x"]})),
        "for another authority": (6, issuer.name(jwk, aud="https://as.example")),
        "no credential": (2, "a.b.c"),
    }
    told = {}
    for name, (code, token) in others.items():
        done = call(house, "three", "--credential", kept(house, "three", token))
        assert done.returncode == code, (name, done)
        # What comes before the terms says whether they are new to the agent or were left unanswered.
        told[name] = done.stderr.partition("Terms the owner sets")[2]
    assert told["forged"] and told["forged"] == told["for another authority"], "one answer, whatever was wrong"
    assert (house.owner.ledger(), sorted(house.owner.connections())) == before
    assert not house.owner.pending()
    exposed = kept(house, "three", issuer.name(jwk))
    os.chmod(exposed, 0o644)
    assert call(house, "three", "--credential", exposed).returncode == 2


def test_a_credential_that_does_not_count_is_no_denial(house, issuer):
    credential = kept(house, "six", issuer.name(seen_at(house, "six")["jwk"], private=generate_ed25519_keypair()[0]))
    done = call(house, "six", "--credential", credential, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["outcome"]) == (6, "not_believed") and "--or-bare" in done.stderr, done
    assert not house.owner.pending()
    # The same terms, under the bare key, and only because it was said.
    done = call(house, "six", "--credential", credential, "--or-bare")
    assert done.returncode == 5 and "bare key" in done.stderr, done
    (item,) = house.owner.pending().values()
    assert item["identity"] == "pseudonymous" and item["agent"].startswith("jkt:"), item
    house.answer("deny")


def test_a_shim_that_an_issuer_names(house, issuer):
    subject = "aauth:shim@localhost"
    credential = kept(house, "shim", issuer.name(seen_at(house, "shim")["jwk"], subject=subject))

    async def positions(*flags):
        async with client(command(house.resource, house.folder / "shim", "--hold", 1, *flags), "auto", Person(True, False)) as it:
            return await it.call_tool("get_positions", {})

    said = run(positions("--credential", credential))
    assert said.is_error and "owner of the resource" in text_of(said), said
    (item,) = house.owner.pending().values()
    assert (item["identity"], item["agent"], item["assurance"]["provenance"]) == ("identified", subject, 1), item
    house.answer("approve")
    said = run(positions("--credential", credential))
    assert not said.is_error, said
    assert house.owner.connections()[subject]["identity"] == "identified"
    # One that does not count is not passed over in silence.
    forged = kept(house, "shim", issuer.name(seen_at(house, "shim")["jwk"], private=generate_ed25519_keypair()[0],
                                             subject="aauth:other@localhost"))

    async def trade(*flags):
        async with client(command(house.resource, house.folder / "shim", *flags), "auto", Person(True)) as it:
            return await it.call_tool("execute_trade", TRADE)

    said = run(trade("--credential", forged))
    assert said.is_error and "does not count" in text_of(said) and "Denied" not in text_of(said), said
    assert not house.owner.pending()


class Directory(HTTPSignatureKeyResolver):
    """The keys of a directory, as somebody else reads them."""

    def __init__(self, document):
        self.keys = {key["kid"]: key for key in json.loads(document)["keys"]}

    def resolve_public_key(self, key_id):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        return Ed25519PublicKey.from_public_bytes(unb64(self.keys[key_id]["x"]))


class Message:
    """A response as the verifier wants it."""

    def __init__(self, url, headers):
        self.request = type("Request", (), {"method": "GET", "url": url, "headers": {}})()
        self.status_code, self.headers, self.url = 200, headers, url


def test_what_is_published_is_found(house, files, tmp_path):  # CORE-51 CORE-52 POL-30 POL-31 POL-52
    origin = Origin(tmp_path, files)
    try:
        published = house.folder / "public"
        done = house.type("agent", "publish", published, "--origin", origin.url, "--authority", house.authority,
                          "--name", "Ledger <bot>", "--json", home="four")
        assert done.returncode == 0, done
        told = json.loads(done.stdout)
        flags = ("--client-id", told["client_id"], "--signature-agent", told["signature_agent"])
        level = lambda item: (item["assurance"]["accountability"], item["assurance_notes"][2])

        def waiting():
            done = call(house, "four", *flags, tool="execute_trade")
            assert done.returncode == 5, done
            (item,) = house.owner.pending().values()
            house.answer("deny")
            assert call(house, "four", *flags, tool="execute_trade", wait=5).returncode == 4
            return level(item)

        unhosted = waiting()
        origin.put("/agent.json", (published / "agent.json").read_bytes())
        described = waiting()
        lines = (published / (DIRECTORY[1:] + ".headers")).read_text().splitlines()
        headers = [tuple(line.split(": ", 1)) for line in lines]
        document = (published / DIRECTORY[1:]).read_bytes()
        origin.put(DIRECTORY, document, headers)
        found = waiting()
        assert [level for level, _ in (unhosted, described, found)] == [0, 1, 2]
        assert len({note for _, note in (unhosted, described, found)}) == 3
        # The directory is signed by its key for the place it is at, as another program checks it.
        verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Directory(document))
        assert dict(headers)["Content-Type"] == "application/http-message-signatures-directory+json"
        (result,) = verifier.verify(Message(origin.url + DIRECTORY, dict(headers)))
        assert result.parameters["tag"] == "http-message-signatures-directory"
        assert result.parameters["keyid"] == seen_at(house, "four")["thumbprint"]
        with pytest.raises(Exception):
            verifier.verify(Message("https://elsewhere.example" + DIRECTORY, dict(headers)))
    finally:
        origin.close()


def test_publishing_is_said_key_by_key(house, tmp_path):
    done = house.type("agent", "publish", tmp_path, "--origin", "https://op.example", home="four")
    assert done.returncode != 0 and "belong together" in done.stderr, done
    for origin in ("http://op.example", "https://op.example/x", "op.example"):
        done = house.type("agent", "publish", tmp_path, "--origin", origin, "--authority", house.authority, home="four")
        assert done.returncode != 0, done
    for path in ("/../up.json", "agent.json", "/"):
        done = house.type("agent", "publish", tmp_path, "--origin", "https://op.example", "--path", path,
                          "--authority", house.authority, home="four")
        assert done.returncode != 0, done
    assert not list(tmp_path.iterdir())


def test_a_new_key_in_the_place_of_the_old(house):  # CORE-103 CORE-104
    house.obtain("get_positions", home="five")
    old = seen_at(house, "five")["handle"]
    stated = house.type("agent", "rotate", house.authority, home="five")
    assert stated.returncode == 0 and "relink" in stated.stderr, stated
    file = house.folder / "statement.json"
    file.write_text(stated.stdout)
    shown = house.say("relink", file)
    assert shown.returncode == 0 and old in shown.stdout and "--yes" in shown.stdout, shown
    assert house.owner.connections()[old]["status"] == "active", "shown is not done"
    assert seen_at(house, "five")["handle"] == old
    # Half of it, or altered, or by somebody who is not her: nothing happens.
    statement = json.loads(stated.stdout)
    for other, status in [({"by_old": statement["by_old"]}, 400), (statement | {"by_new": statement["by_old"]}, 400),
                          (statement | {"more": 1}, 400)]:
        assert house.owner.request("POST", "/connections/relink", other).status == status, other
    assert house.owner.request("POST", "/connections/relink", statement, key=Key()).status == 401
    done = house.say("relink", file, "--yes")
    assert done.returncode == 0, done
    done = house.type("agent", "rotate", house.authority, "--done", home="five")
    assert done.returncode == 0, done
    new = seen_at(house, "five")["handle"]
    assert new != old and done.stdout.strip() == new
    connections = house.owner.connections()
    assert (connections[old]["status"], connections[new]["status"]) == ("revoked", "active")
    assert connections[new]["first_seen"] == connections[old]["first_seen"]
    assert call(house, "five", wait=5).returncode == 0, "she is not asked again"
    again = house.say("relink", file, "--yes")
    assert again.returncode == 6 and "connection of its own" in again.stderr, again
    kinds = [(row["kind"], row["handle"]) for row in house.owner.ledger() if row["entry"].get("relinked_from")]
    assert kinds == [("connected", new)]


class Provider:
    """An identity provider over https: keys, metadata, and an exchange that signs what it was asked for."""

    def __init__(self, folder, files):
        self.key, self.asked = Ed25519PrivateKey.generate(), []
        provider = self

        class Exchange(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, value):
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                raw = provider.key.public_key().public_bytes_raw()
                self.answer({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": b64(raw), "kid": "p1"}]}
                            if self.path == "/keys" else
                            {"issuer": provider.url, "jwks_uri": provider.url + "/keys",
                             "token_endpoint": provider.url + "/token"})

            def do_POST(self):
                form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
                provider.asked.append(form)
                jwk = json.loads(unb64(self.headers["dpop"].split(".")[0]))["jwk"]
                self.answer({"access_token": provider.word(form["audience"], jwk), "token_type": "N_A", "expires_in": 60,
                             "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"})

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files[1:])
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def word(self, audience, jwk, **claims):
        text = json.dumps({name: jwk[name] for name in ("crv", "kty", "x")}, separators=(",", ":"))
        body = {"iss": self.url, "sub": "kim", "aud": audience, "client_id": "sayso", "jti": secrets.token_hex(8),
                "iat": int(time.time()), "exp": int(time.time()) + 60,
                "cnf": {"jkt": b64(hashlib.sha256(text.encode()).digest())}} | claims
        head = {"alg": "EdDSA", "typ": "oauth-id-jag+jwt", "kid": "p1"}
        signed = ".".join(b64(json.dumps(part).encode()) for part in (head, body))
        return f"{signed}.{b64(self.key.sign(signed.encode()))}"


def test_an_agent_whose_provider_says_whom_it_acts_for(tmp_path, files):  # CORE-35 CORE-36 CORE-37 CORE-38
    provider = Provider(tmp_path, files)
    variables = {"SAYSO_AUTHORITY__IDENTITY_PROVIDERS": provider.url, "SSL_CERT_FILE": str(files[0])}
    with Front.running(tmp_path / "up", **variables) as front:
        (front.folder / "one").mkdir()
        token = kept(front, "one", "an-id-token")

        def call(*flags, wait=0):
            words = [binary(), "agent", "call", front.resource, "get_positions", "--accept-terms", "--wait", wait, "--json",
                     *flags]
            return subprocess.run(list(map(str, words)), env=environment(front.folder / "one") | variables, text=True,
                                  cwd=front.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

        bare = call()
        told = json.loads(bare.stdout)
        assert (bare.returncode, told["outcome"], told["providers"]) == (6, "identity_wanted", [provider.url]), bare
        assert not front.owner.pending() and "Terms the owner sets" not in bare.stderr, "no terms before a name"
        other = call("--provider", "https://other.example", "--subject-token", token)
        assert (other.returncode, provider.asked) == (6, []), other
        waiting = call("--provider", provider.url, "--subject-token", token, "--provider-client", "sayso")
        assert waiting.returncode == 5, waiting
        (form,) = provider.asked
        assert (form["subject_token"], form["audience"]) == ("an-id-token", front.authority), form
        (item,) = front.owner.pending().values()
        assert item["evidence"]["asserted"]["subject"] == "kim" and item["identity"] == "pseudonymous", item
        shown = front.say("show", item["family"])
        assert "acts for" in shown.stdout and "kim" in shown.stdout, shown
        front.answer("approve")
        done = call("--provider", provider.url, "--subject-token", token, wait=20)
        assert done.returncode == 0, done
        logged = front.logged()
        assert "an-id-token" not in logged and "eyJ" not in logged

"""`sayso pdp` beyond what AuthZEN's certification asks: what it does not start with, what a change of its policies does,
who may ask it and how, and what is said about it in log, metrics and metadata."""

import json
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from cast import ROOT, Process, binary, environment
from stock import HERE, serving
from town import free_port
from wire import send

JSON = ("Content-Type", "application/json")
POLICIES = ROOT / "docs/examples/coaz/policies"
TLS = ROOT / "crates/gateway/tests/fixtures/tls"
ALLOW = "permit (principal, action, resource);"
CALL = {"subject": {"type": "identity", "id": "alice"}, "action": {"name": "tools/call"},
        "resource": {"type": "tool", "id": "get_weather"}, "context": {"agent": "agent-7"}}


class Pdp(Process):
    def __init__(self, folder, files):
        super().__init__(folder, folder / "stderr.log")
        self.policies = folder / "policies"
        self.policies.mkdir(parents=True)
        for name, text in files.items():
            self.save(name, text)

    def save(self, name, text):
        (self.policies / name).write_text(text)

    def start(self, *arguments):
        self.launch("pdp", "--policies", self.policies, "--json", *(arguments or ("--listen", "127.0.0.1:0")))
        return self

    @classmethod
    @contextmanager
    def running(cls, folder, files, *arguments):
        pdp = cls(folder, files)
        try:
            yield pdp.start(*arguments)
        finally:
            if pdp.process is not None and pdp.process.poll() is None:
                pdp.kill()

    def post(self, body=CALL, *headers, url=None):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return send("POST", url or self.ready["evaluation"], headers or [JSON], body)

    def decides(self, body=CALL):
        response = self.post(body)
        assert response.status == 200, response
        return response.json()["decision"]

    def soon(self, decision, body=CALL):
        deadline = time.monotonic() + 10
        while self.decides(body) is not decision:
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.1)

    def said(self, word):
        deadline = time.monotonic() + 10
        while True:
            lines = [json.loads(line) for line in self.logged().splitlines()]
            found = [line for line in lines if line["message"].startswith(word)]
            if found:
                return found[-1]
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.1)


def run(*arguments, folder=None):
    return subprocess.run([binary(), "pdp", *map(str, arguments)], env=environment(folder or "/"), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30, cwd=folder)


def refused(*arguments, folder=None):
    done = run(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "panicked" not in done.stderr
    return done.stderr


@pytest.fixture
def pdp(tmp_path):
    with Pdp.running(tmp_path, {"a.cedar": ALLOW}) as running:
        yield running


# ---- its start and its end -----------------------------------------------------------------------------------


def test_it_says_where_it_is_and_ends_when_told(tmp_path):
    with Pdp.running(tmp_path, {"a.cedar": ALLOW}) as pdp:
        ready = pdp.ready
        assert set(ready) == {"ready", "pdp", "metadata", "evaluation", "evaluations", "metrics", "version"}
        assert send("GET", ready["metadata"]).json()["policy_decision_point"] == ready["pdp"]
        assert send("GET", ready["pdp"] + "/health").json() == {"status": "ok"}
        assert pdp.decides() is True
        assert pdp.stop() == 0


@pytest.mark.parametrize("files, words", [
    ({}, ["holds no file *.cedar", "write one"]),
    ({"a.cedar": "permit (principal, action resource);"}, ["a.cedar: line 1:", "correct it"]),
    ({"a.cedar": "\npermit (principal, action, resource) when { principal.rank > 3 };"},
     ["a.cedar: line 2: policy `a.cedar#1`", "rank", "schema.cedarschema"]),
    ({"a.cedar": ALLOW, "schema.cedarschema": "entity identity in [nobody];"}, ["schema.cedarschema", "nobody"]),
    ({"a.cedar": ALLOW, "entities.json": "{}"}, ["entities.json", "correct the entities"]),
    ({"a.cedar": "@id(\"x\")" + ALLOW + "@id(\"x\")" + ALLOW}, ["a.cedar", "two policies are named `x`"]),
], ids=["none", "syntax", "unknown attribute", "schema", "entities", "names"])
def test_what_cannot_decide_is_not_started_with(tmp_path, files, words):
    pdp = Pdp(tmp_path, files)
    for more in ([], ["--check"]):
        said = refused("--policies", pdp.policies, "--listen", "127.0.0.1:0", *more, folder=tmp_path)
        assert said.startswith("sayso: the policies cannot decide: ") and all(word in said for word in words), said


def test_policies_can_be_checked_alone(tmp_path):
    done = run("--policies", POLICIES, "--check", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"the policies in {POLICIES} can decide\n"), done
    assert "cannot be read" in refused("--policies", tmp_path / "none", folder=tmp_path)


@pytest.mark.parametrize("arguments, words", [
    (["--listen", "0.0.0.0:0"], ["can be reached from elsewhere", "--tls-certificate", "--secret-file", "--url"]),
    (["--listen", "[::]:0", "--secret-file", "secret", "--url", "https://pdp.example"], ["--tls-certificate"]),
    (["--listen", "0.0.0.0:0", "--tls-certificate", TLS / "cert.pem", "--tls-key", "key.pem", "--url",
      "https://pdp.example"], ["--secret-file"]),
    (["--tls-certificate", TLS / "cert.pem"], ["--tls-key"]),
    (["--url", "http://pdp.example"], ["https"]),
    (["--url", "https://pdp.example/"], ["--url"]),
    (["--url", "https://pdp.example"], ["--secret-file"]),
    (["--host", "pdp.example"], ["--host pdp.example", "--url", "--secret-file"]),
    (["--host", "localhost:1", "--host", "10.0.0.1:8444", "--secret-file", "secret"], ["--host 10.0.0.1:8444", "--url"]),
    (["--host", "pdp.example", "--url", "http://127.0.0.1:1", "--secret-file", "secret"], ["--host pdp.example", "https"]),
    (["--tls-certificate", TLS / "cert.pem", "--tls-key", "key.pem", "--url", "http://127.0.0.1:1"], ["https://"]),
    (["--tls-certificate", "key.pem", "--tls-key", "key.pem"], ["certificates in PEM"]),
    (["--tls-certificate", TLS / "cert.pem", "--tls-key", "open.pem"], ["chmod 600"]),
    (["--secret-file", "open.pem"], ["chmod 600"]),
    (["--secret-file", "short"], ["at least 32"]),
    (["--metrics", "0.0.0.0:0"], ["loopback"]),
], ids=lambda it: " ".join(map(str, it))[:60] if it and str(it[0]).startswith("-") else "")
def test_what_others_could_reach_is_not_opened(tmp_path, arguments, words):
    pdp = Pdp(tmp_path, {"a.cedar": ALLOW})
    for name in ("key.pem", "open.pem"):
        shutil.copy(TLS / "key.pem", tmp_path / name)
        (tmp_path / name).chmod(0o600 if name == "key.pem" else 0o644)
    (tmp_path / "short").write_text("too short\n")
    (tmp_path / "short").chmod(0o600)
    listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
    said = refused("--policies", pdp.policies, *listen, *arguments, folder=tmp_path)
    assert all(word in said for word in words), said


def test_off_loopback_it_speaks_tls_and_wants_the_secret(tmp_path):
    key, port = tmp_path / "key.pem", free_port()
    shutil.copy(TLS / "key.pem", key)
    key.chmod(0o600)
    secret = tmp_path / "secret"
    url = f"https://localhost:{port}"
    arguments = ["--listen", f"0.0.0.0:{port}", "--url", url, "--tls-certificate", TLS / "cert.pem", "--tls-key", key,
                 "--secret-file", secret]
    with Pdp.running(tmp_path, {"a.cedar": ALLOW}, *arguments) as pdp:
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        shown = secret.read_text().strip()
        assert len(shown) >= 32 and pdp.ready["pdp"] == url
        trust = ssl.create_default_context(cafile=TLS / "cert.pem")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))

        def ask(**headers):
            request = urllib.request.Request(pdp.ready["evaluation"], json.dumps(CALL).encode(),
                                             {"Content-Type": "application/json"} | headers)
            try:
                with opener.open(request, timeout=10) as response:
                    return response.status, json.loads(response.read())
            except urllib.error.HTTPError as refusal:
                return refusal.code, refusal.read().decode()

        assert ask(Authorization=f"Bearer {shown}") == (200, {"decision": True})
        for wrong in ({}, {"Authorization": "Bearer " + "x" * 43}, {"Authorization": f"Basic {shown}"}):
            assert ask(**wrong)[0] == 401
        assert ask(Authorization=f"Bearer {shown}", Host="pdp.example")[0] == 421
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"HTTP/1.1" not in plain.recv(1000)
        assert pdp.stop() == 0
        assert shown not in pdp.logged()


def test_behind_a_proxy_it_wants_the_secret_under_every_name(tmp_path):  # D-34
    port = free_port()
    arguments = ["--listen", f"127.0.0.1:{port}", "--url", "https://pdp.example", "--host", "pdp.internal:8444",
                 "--secret-file", tmp_path / "secret"]
    with Pdp.running(tmp_path, {"a.cedar": ALLOW}, *arguments) as pdp:
        shown = ("Authorization", f"Bearer {(tmp_path / 'secret').read_text().strip()}")
        here = f"http://127.0.0.1:{port}/access/v1/evaluation"
        for host in ("pdp.example", "pdp.internal:8444"):
            assert pdp.post(CALL, JSON, ("Host", host), url=here).status == 401
            assert pdp.post(CALL, JSON, ("Host", host), shown, url=here).status == 200
        assert pdp.post(CALL, JSON, ("Host", "evil.example"), shown, url=here).status == 421
    with Pdp.running(tmp_path / "here", {"a.cedar": ALLOW}, "--listen", "127.0.0.1:0", "--host", "localhost:1") as pdp:
        assert pdp.post(CALL, JSON, ("Host", "localhost:1")).status == 200


# ---- its policies --------------------------------------------------------------------------------------------


def test_a_saved_policy_decides_and_a_broken_one_does_not(pdp):
    pdp.save("b.cedar", '@id("no.weather") forbid (principal, action, resource == tool::"get_weather");')
    pdp.soon(False)
    assert pdp.said("policy.decided")["policies"] == "no.weather"
    pdp.save("b.cedar", "forbid (principal, action, resource == tool::")
    refusal = pdp.said("policies.refused")
    assert refusal["level"] == "ERROR" and "b.cedar: line 1:" in refusal["reason"]
    assert pdp.decides() is False, "the last good set goes on deciding"
    (pdp.policies / "b.cedar").unlink()
    pdp.soon(True)
    shutil.rmtree(pdp.policies)
    time.sleep(3)
    assert pdp.decides() is True
    assert pdp.stop() == 0


def test_the_documented_examples_decide(tmp_path):
    files = {path.name: path.read_text() for path in POLICIES.iterdir()}
    with Pdp.running(tmp_path, files) as pdp:
        transfer = {"subject": {"type": "treasury_user", "id": "alice@example.com"},
                    "action": {"name": "domestic_transfer"}, "resource": {"type": "account", "id": "A"},
                    "context": {"amount": 10000.5, "target_account": "B"}}
        assert pdp.decides(transfer) is True
        assert pdp.decides(transfer | {"context": {"amount": 1000000.5, "target_account": "B"}}) is False
        assert pdp.decides(transfer | {"subject": {"type": "treasury_user", "id": "bob@example.com"}}) is False
        # What Cedar cannot hold is said, and is no decision.
        for amount, words in ((0.00001, "context.amount"), ("x", "context.amount"), (None, "context.amount")):
            response = pdp.post(transfer | {"context": {"amount": amount, "target_account": "B"}})
            assert response.status == 400 and words in response.body.decode(), response
        unheld = {"evaluations": [transfer | {"context": {"amount": 1e-9, "target_account": "B"}}, transfer]}
        said = pdp.post(unheld, url=pdp.ready["evaluations"]).json()["evaluations"]
        assert [one["decision"] for one in said] == [False, True]
        assert said[0]["context"]["error"]["status"] == 400


def test_null_is_not_there_and_what_is_unknown_is_denied(pdp):
    assert pdp.decides(CALL | {"context": {"agent": None, "else": 1.5}}) is True
    for unknown in ({"subject": {"type": "admin", "id": "a"}}, {"action": {"name": "tools/fly"}},
                    {"resource": {"type": "prompt", "id": "p"}}):
        response = pdp.post(CALL | unknown)
        assert response.status == 200 and response.json()["decision"] is False
        assert response.json()["context"]["reason"].startswith("the schema does not know")


# ---- who asks, and how ---------------------------------------------------------------------------------------


def test_only_its_own_host_is_served_and_no_page(pdp):
    port = pdp.ready["pdp"].rsplit(":", 1)[1]
    assert pdp.post(CALL, JSON, ("Host", f"localhost:{port}")).status == 200
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) + 1}"):
        assert pdp.post(CALL, JSON, ("Host", host)).status == 421, host
    for origin in ("null", pdp.ready["pdp"]):
        assert pdp.post(CALL, JSON, ("Origin", origin)).status == 403


def test_requests_are_bounded(pdp):
    padded = json.dumps(CALL).encode() + b" " * (1 << 20)
    assert pdp.post(padded).status == 413
    deep = b'{"context":' + b"[" * 200 + b"]" * 200 + b"}"
    assert pdp.post(deep).status == 400
    assert pdp.post(b'{"subject":{},"subject":{}}').status == 400
    assert pdp.post(CALL, JSON, ("Content-Encoding", "gzip")).status == 415
    many = CALL | {"evaluations": [{}] * 257}
    assert pdp.post(many, url=pdp.ready["evaluations"]).status == 400
    most = pdp.post(CALL | {"evaluations": [{}] * 256}, url=pdp.ready["evaluations"]).json()
    assert [one["decision"] for one in most["evaluations"]] == [True] * 256
    assert pdp.decides() is True


def test_search_is_not_offered(pdp):
    assert not [name for name in send("GET", pdp.ready["metadata"]).json() if name.startswith("search")]
    for kind in ("subject", "resource", "action"):
        assert pdp.post(CALL, url=f"{pdp.ready['pdp']}/access/v1/search/{kind}").status == 404
    assert send("GET", pdp.ready["evaluation"]).status == 405


def test_the_log_names_policies_and_no_value(tmp_path):
    with Pdp.running(tmp_path, {"a.cedar": '@id("everything")' + ALLOW}) as pdp:
        asked = CALL | {"subject": {"type": "identity", "id": "zq-subject"},
                        "context": {"agent": "zq-agent", "zq-name": "zq-value"}}
        assert pdp.post(asked, JSON, ("X-Request-ID", "trace-1")).json()["decision"] is True
        line = pdp.said("policy.decided")
        assert (line["policies"], line["decision"], line["request"]) == ("everything", True, "trace-1")
        assert "zq-" not in pdp.logged()
        assert pdp.stop() == 0


def test_decisions_are_counted(pdp):
    assert pdp.decides() is True
    assert pdp.decides(CALL | {"action": {"name": "tools/fly"}}) is False
    text = send("GET", pdp.ready["metrics"] + "/metrics").body.decode()
    for result in ("permit", "deny"):
        assert f'sayso_pdp_decisions_total{{result="{result}"}} 1' in text, text
    assert "sayso_pdp_decision_seconds_count 2" in text


# ---- lint of a live server -----------------------------------------------------------------------------------


def lint(url, *arguments, **variables):
    return subprocess.run([binary(), "coaz", "lint", url, "--json", *arguments], env=environment("/") | variables,
                          text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


@contextmanager
def listing(folder, tools, **variables):
    offers, port = folder / "tools.json", free_port()
    offers.write_text(json.dumps(tools))
    with serving([sys.executable, HERE / "servers/shifty.py", offers, str(port)], port, **variables) as url:
        yield url


def test_a_live_server_is_linted_as_its_listing_is(tmp_path):
    tools = json.loads((ROOT / "docs/examples/coaz/tools.json").read_text())["tools"]
    with listing(tmp_path, tools) as url:
        done = lint(url)
        assert done.returncode == 0, done
        said = json.loads(done.stdout)
        assert [(tool["tool"], tool["mapping"]) for tool in said["tools"]] == \
            [(tool["name"], "declared") for tool in tools]
        broken = json.loads(json.dumps(tools))
        broken[0]["inputSchema"]["x-authzen-mapping"]["evaluation"]["resource"]["id"] = "$requst.id"
        (tmp_path / "tools.json").write_text(json.dumps([*broken, tools[1]]))
        done = lint(url)
        assert done.returncode == 3, done
        levels = {tool["tool"]: {finding["level"] for finding in tool["findings"]} for tool in
                  json.loads(done.stdout)["tools"]}
        assert "error" in levels["get_customer"] and "error" in levels["copy_object"]
        assert not (tmp_path / "tools.json.ran").exists(), "no tool is called"


def test_a_server_that_wants_a_token_is_shown_one(tmp_path):
    with listing(tmp_path, [{"name": "t", "inputSchema": {"type": "object"}}], DEMANDED="zq-token") as url:
        done = lint(url)
        assert (done.returncode, done.stdout) == (2, "") and "401" in done.stderr, done
        done = lint(url, "--token-env", "SERVER_TOKEN", SERVER_TOKEN="zq-token")
        assert done.returncode == 0 and json.loads(done.stdout)["tools"][0]["mapping"] == "default", done
        assert "zq-token" not in done.stderr


def test_a_server_that_cannot_be_listed_is_no_finding(tmp_path):
    done = lint(f"http://127.0.0.1:{free_port()}/mcp")
    assert (done.returncode, done.stdout) == (2, "") and "does not list its tools" in done.stderr, done
    done = lint("http://nowhere.example/mcp", "--token-env", "SERVER_TOKEN", SERVER_TOKEN="x")
    assert done.returncode == 2 and "clear" in done.stderr, done

"""Policy decision points of OpenID AuthZEN, by their URLs, whoever runs them: the one that AUTHZEN_PDP_URL names (and
AUTHZEN_PDP_TOKEN is shown to as a bearer token), or else `sayso pdp` and one by others, each loaded with the policies
that stand beside this file."""

import json
import os
import platform
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from cast import Process
from stock import HERE, serving
from town import free_port
from wire import send

ENGINES = HERE / "engines"
JSON = ("Content-Type", "application/json")
APIS = {
    "access_evaluation_endpoint": "evaluation", "access_evaluations_endpoint": "evaluations",
    "search_subject_endpoint": "search/subject", "search_resource_endpoint": "search/resource",
    "search_action_endpoint": "search/action",
}
NAMED = os.environ.get("AUTHZEN_PDP_URL")
TRIED = ["named"] if NAMED else ["sayso", "cerbos"]


class Point:
    """A decision point. Its endpoints are those of its metadata, or the usual ones where it has none."""

    def __init__(self, url, token=None):
        self.url, self.headers = url.rstrip("/"), [("Authorization", f"Bearer {token}")] if token else []
        parts = urlsplit(self.url)
        self.metadata_url = f"{parts.scheme}://{parts.netloc}/.well-known/authzen-configuration{parts.path}"
        found = send("GET", self.metadata_url)
        self.metadata = found.json() if found.status == 200 else None
        self.single, self.batch = (self.endpoint(f"access_{name}_endpoint") for name in ("evaluation", "evaluations"))

    def endpoint(self, name):
        """Where an API is; nothing where there is metadata and it does not say."""
        if self.metadata is None:
            return f"{self.url}/access/v1/{APIS[name]}"
        return self.metadata.get(name)

    def post(self, url, body, *headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return send("POST", url, [*(headers or (JSON,)), *self.headers], body)

    def ask(self, url, body):
        response = self.post(url, body)
        assert response.status == 200, response
        assert response.header("content-type").split(";")[0].strip() == "application/json", response.headers
        return response.json()

    def decide(self, **request):
        answer = self.ask(self.single, request)
        assert isinstance(answer["decision"], bool)
        assert isinstance(answer.get("context", {}), dict)
        return answer["decision"]

    def decide_each(self, evaluations, **request):
        answer = self.ask(self.batch, request | {"evaluations": evaluations})
        assert all(isinstance(one["decision"], bool) for one in answer["evaluations"])
        assert all(isinstance(one.get("context", {}), dict) for one in answer["evaluations"])
        return [one["decision"] for one in answer["evaluations"]]


@contextmanager
def sayso(folder, policies):
    """`sayso pdp` over a folder of policies."""
    process = Process(folder, folder / "stderr.log")
    process.launch("pdp", "--policies", policies, "--listen", "127.0.0.1:0", "--json")
    try:
        yield process.ready["pdp"]
        assert process.stop() == 0
    finally:
        if process.process.poll() is None:
            process.kill()


@contextmanager
def cerbos(folder):
    """A policy engine by others, over all of `engines/policies`."""
    kind = {"x86_64": "x64"}.get(platform.machine())
    if kind is None:
        pytest.skip(f"this engine is not published for {platform.machine()}")
    program = ENGINES / f"node_modules/@cerbos/cerbos-linux-{kind}/cerbos-linux-{kind}"
    assert program.is_file(), f"run `npm ci` in {ENGINES} first, or ./test, which does"
    port = free_port()
    settings = folder / "cerbos.yaml"
    settings.write_text(json.dumps({
        "server": {"httpListenAddr": f"127.0.0.1:{port}", "grpcListenAddr": f"unix:{folder}/grpc.sock"},
        "storage": {"driver": "disk", "disk": {"directory": str(ENGINES / "policies")}},
        "telemetry": {"disabled": True}}))
    with serving([str(program), "server", f"--config={settings}"], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def opened(which, folder, policies):
    """One of those that are tried; `policies` is the folder for the one whose policies are not all in one place."""
    if which == "named":
        yield Point(NAMED, os.environ.get("AUTHZEN_PDP_TOKEN"))
        return
    with sayso(folder, policies) if which == "sayso" else cerbos(folder) as url:
        yield Point(url)


def expect_lacking(request, lacking):
    """Expects a test to fail that the other engine is known to fail, and for that reason; a surprise is a failure too."""
    name = request.node.originalname
    case = request.node.callspec.id if hasattr(request.node, "callspec") else ""
    for (test, part), reason in lacking.items():
        if "cerbos" in case and test == name and part in case:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

"""MCP's official conformance suite, pinned in `conformance/`, and the server of ours that it is run against: how both
are started, and what a run found. What is expected of a run is in the tests."""

import json
import platform
import re
import subprocess
from collections import Counter
from contextlib import contextmanager

import pytest

from cast import ROOT, binary
from stock import HERE, serving
from town import Role, free_port

PACKAGE = HERE / "conformance"
SUITE = PACKAGE / "node_modules/@modelcontextprotocol/conformance"
# Those of which its authors froze what a server has to pass, and those older ones of which it has scenarios.
REVISIONS = ["2025-11-25", "2026-07-28"]
OLDER = ["2025-03-26", "2025-06-18"]
# Longest that a run may take, and many at once.
ALONE, TOGETHER = 120, 400
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


def node():
    """The suite does not run on the Node most systems have, so it comes with one."""
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    path = PACKAGE / f"node_modules/node-linux-{kind}/bin/node"
    assert path.is_file() and SUITE.is_dir(), f"run `npm ci` in {PACKAGE} first, or ./test, which does"
    return str(path)


def example(name):
    """One of the testkit's examples, built by cargo beside the binary under test, or for its own sake."""
    targets = [binary().parents[1], ROOT / "target"]
    candidates = [target / kind / "examples" / name for target in targets for kind in ("release", "debug")]
    built = [path for path in candidates if path.is_file()]
    if not built:
        pytest.fail(f"no {name}: run `cargo build -p sayso-testkit --example {name}`")
    return str(max(built, key=lambda path: path.stat().st_mtime))


@contextmanager
def served():
    """The fixture's address, while it serves."""
    port = free_port()
    with serving([example("conformance_server"), str(port)], port) as url:
        yield url


@contextmanager
def gateway(folder, upstream, **settings):
    """A gateway of its own before it. Nobody listens at its authority: where nothing is enforced nobody is asked."""
    listen = f"127.0.0.1:{free_port()}"
    resource = {"path": "/mcp", "owner": "alice", "authority": "http://127.0.0.1:1", "realm": "fixture",
                "upstream": upstream, "tools": []} | settings
    role = Role("gateway", folder, {"gateway.listen": listen}, [("resource", resource)])
    try:
        role.start()
        yield role.ready["resource"]
    finally:
        role.end()


class Found:
    """What a run found: how often each scenario's check had each status, and all that is known of those that did not
    succeed."""

    def __init__(self, folder):
        self.checks, self.faults = Counter(), {}
        for file in sorted(folder.glob("*/checks.json")):
            scenario = STAMP.sub("", file.parent.name.removeprefix("server-"))
            for check in json.loads(file.read_text()):
                self.checks[scenario, check["id"], check["status"]] += 1
                if check["status"] in ("FAILURE", "WARNING"):
                    self.faults.setdefault(scenario, []).append(check)

    @property
    def scenarios(self):
        return {scenario for scenario, _, _ in self.checks}

    def failing(self):
        return {scenario for scenario, _, status in self.checks if status == "FAILURE"}

    def said_of(self, scenarios):
        return {name: [(fault["id"], fault.get("errorMessage")) for fault in self.faults.get(name, ())]
                for name in scenarios}

    def without(self, scenarios):
        return Counter({key: count for key, count in self.checks.items() if key[0] not in scenarios})

    def counted(self):
        by_status = Counter()
        for (_, _, status), count in self.checks.items():
            by_status[status] += count
        return f"{len(self.scenarios)} scenarios, " + ", ".join(f"{n} {word}" for word, n in sorted(by_status.items()))


def which(revision):
    return ["--suite", "all", "--spec-version", revision] if revision in OLDER else ["--requirements", revision]


def run(url, revision, out):
    """The suite once, alone."""
    words = [node(), SUITE / "dist/index.js", "server", "--url", url, *which(revision), "-o", out]
    done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=ALONE, cwd=PACKAGE)
    found = Found(out)
    assert found.checks, done.stdout + done.stderr
    return found


def run_together(count, url, revision, out):
    """The suite `count` times at once."""
    words = [node(), PACKAGE / "parallel.mjs", count, out, "server", "--url", url, *which(revision)]
    done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TOGETHER, cwd=PACKAGE)
    assert done.returncode == 0, done.stdout + done.stderr
    return [Found(out / str(number)) for number in range(count)]


def scored(revision):
    """The scenarios a server has to pass, as the suite's authors froze them."""
    text = (SUITE / f"requirements/{revision}.yaml").read_text()
    section = text.split("\nserver:\n")[1].split("\n\n")[0]
    return {line.removeprefix("  - ") for line in section.splitlines() if line.startswith("  - ")}


# The scenarios in which a client meets a server that a gateway can stand before, and what they are of. Those that are left
# out, all `auth/...`, are about a resource whose own address its documents name: through another address they end at once.
CLIENT_SCENARIOS = {
    "2025-11-25": ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"],
    "2026-07-28": ["tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers",
                   "http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref"],
}


def run_client(revision, scenario, out, *ahead):
    """One scenario with a stock client; `ahead` is a command that stands before it."""
    command = " ".join(map(str, [*ahead, node(), HERE / "node/scenarios.mjs"]))
    words = [node(), SUITE / "dist/index.js", "client", "--command", command, "--scenario", scenario, "--spec-version", revision,
             "-o", out]
    done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ALONE,
                          cwd=PACKAGE)
    found = Found(out)
    assert found.checks, done.stdout + done.stderr
    return found

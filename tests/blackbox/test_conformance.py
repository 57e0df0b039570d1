"""MCP's official conformance suite says what a gateway does to a server behind it: the same checks with the same
outcomes as directly where nothing is enforced, and where something is, exactly what the method table takes away."""

import json
import sys

import pytest

from stock import HERE, Front
from suite import CLIENT_SCENARIOS, OLDER, REVISIONS, gateway, run, run_client, run_together, scored, served
from test_metrics import scrape

SCORED = {"2025-11-25": 30, "2026-07-28": 37}
# Their checks wait for something for a second or two, so they are run alone; and so does everything about tasks.
TIMED = {"server-stateless", "server-sse-polling"}
SESSIONS = 64


@pytest.fixture(scope="module")
def server():
    with served() as url:
        yield url


@pytest.fixture(scope="module")
def directly(server, tmp_path_factory):
    """What the suite finds without anything in between, by revision."""
    folder = tmp_path_factory.mktemp("directly")
    return {revision: run(server, revision, folder / revision) for revision in REVISIONS + OLDER}


@pytest.fixture(scope="module")
def transparent(server, tmp_path_factory):
    with gateway(tmp_path_factory.mktemp("transparent"), server, enforce=[], upstream_host="preserve") as url:
        yield url


@pytest.fixture
def tell(capsys):
    """Prints although the test passes."""
    def say(text):
        with capsys.disabled():
            print(f"\n{text}", end="", flush=True)
    return say


def timed(scenario):
    return scenario in TIMED or scenario.startswith("tasks-")


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_fixture_passes_what_is_scored(directly, revision, tell):
    found, wanted = directly[revision], scored(revision)
    passing = wanted & found.scenarios - found.failing()
    tell(f"{revision} directly: {len(passing)} of {len(wanted)} scored scenarios; {found.counted()}")
    assert (passing, len(passing)) == (wanted, SCORED[revision]), found.said_of(wanted - passing)


@pytest.mark.parametrize("revision", REVISIONS + OLDER)
def test_through_the_gateway_it_is_the_same(directly, transparent, tmp_path, revision, tell):  # D-6 D-10
    alone, found = directly[revision], run(transparent, revision, tmp_path / "out")
    tell(f"{revision} through: {found.counted()}")
    same(found.checks, alone.checks, found)


@pytest.mark.parametrize("revision", REVISIONS)
def test_sixty_four_sessions_do_not_mind_each_other(directly, transparent, tmp_path, revision, tell):  # D-13
    alone = directly[revision]
    apart = {scenario for scenario in alone.scenarios if timed(scenario)}
    runs = run_together(SESSIONS, transparent, revision, tmp_path)
    tell(f"{revision} through, {SESSIONS} at once: {len(alone.scenarios - apart)} scenarios and "
         f"{alone.without(apart).total()} checks in each")
    for found in runs:
        same(found.without(apart), alone.without(apart), found)


def same(some, others, found):
    """Multisets of (scenario, check, status), with what a failure needs to be understood."""
    differing = {scenario for scenario, _, _ in (some - others) + (others - some)}
    assert some == others, found.said_of(differing)


# --- with the default enforcement -------------------------------------------------------------------------------------

CALLED = "a tool is called by somebody who was granted nothing: 401"
CLOSED = "its method is not among the open ones: -32601"
TASKED = "it declares that it knows tasks, and no protected call is run as one: 400"

ANSWERS = {CALLED: ("insufficient_authorization", "HTTP 401"), CLOSED: ("not served here", "-32601"),
           TASKED: ("task_not_served",)}

CLOSED_METHODS = {
    "completion-complete", "resources-read-text", "resources-read-binary", "resources-templates-read",
    "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
}
CALLS = {
    "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
    "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress",
}
ROUNDS = {f"input-required-result-{kind}" for kind in (
    "basic-elicitation", "basic-sampling", "basic-list-roots", "request-state", "multiple-input-requests",
    "multi-round", "missing-input-response", "result-type", "tampered-state", "capability-check",
    "ignore-extra-params", "validate-input")}
# Scenarios that come out otherwise than directly, and why. Everything else is the same.
OTHERWISE = {
    "2025-11-25": {name: CLOSED for name in CLOSED_METHODS | {"resources-subscribe", "resources-unsubscribe"}} | {
        name: CALLED for name in CALLS | {
            "tools-call-with-logging", "tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums", "server-sse-polling"}},
    "2026-07-28": {name: CLOSED for name in CLOSED_METHODS | {
        "caching", "sep-2164-resource-not-found", "input-required-result-non-tool-request"}} | {
        name: CALLED for name in CALLS | ROUNDS | {
            "server-stateless", "http-header-validation", "http-custom-header-server-validation",
            "tasks-required-task-error"}} | {
        f"tasks-{name}": TASKED for name in (
            "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input",
            "request-headers", "dispatch-and-envelope", "mrtr-composition")},
}


@pytest.fixture(scope="module")
def enforcing(server, tmp_path_factory):
    """`up` in front of it, as it comes."""
    with Front.running(tmp_path_factory.mktemp("enforcing"), "--upstream", server) as front:
        yield front


@pytest.fixture(scope="module")
def enforced(enforcing, tmp_path_factory):
    """What the suite finds there, and how often each refusal was given meanwhile, by revision."""
    folder, results = tmp_path_factory.mktemp("enforced"), {}
    for revision in REVISIONS:
        before = refusals(enforcing)
        found = run(enforcing.resource, revision, folder / revision)
        after = refusals(enforcing)
        results[revision] = found, {reason: count - before.get(reason, 0) for reason, count in after.items()}
    return results


def refusals(front):
    """How often each reason was given, as the gateway itself counts."""
    decided = (dict(labels) | {"count": count} for (name, *labels), count in scrape(front).items()
               if name == "sayso_decisions_total")
    return {one["reason"]: one["count"] for one in decided if one["outcome"] != "allowed"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_the_default_takes_away_and_nothing_else(directly, enforced, revision, tell):  # CORE-84 D-6 D-12
    alone, (found, _) = directly[revision], enforced[revision]
    changed = (found.checks - alone.checks) + (alone.checks - found.checks)
    otherwise = {scenario for scenario, _, _ in changed}
    tell(f"{revision} enforced: {len(otherwise)} of {len(alone.scenarios)} scenarios otherwise; {found.counted()}")
    assert otherwise == set(OTHERWISE[revision]), otherwise ^ set(OTHERWISE[revision])


@pytest.mark.parametrize("revision", REVISIONS)
def test_why_it_was_taken_away(enforced, revision):  # D-3
    """The gateway's own answer is in what the suite kept of each."""
    found, _ = enforced[revision]
    for scenario, why in OTHERWISE[revision].items():
        kept = json.dumps(found.faults[scenario])
        assert any(word in kept for word in ANSWERS[why]), (why, found.said_of([scenario]))


OPENED = ["completion/complete", "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/get"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_opened_by_name_is_as_directly(server, directly, tmp_path, revision):  # D-6
    """The table is all there is to it: with the closed methods opened, their scenarios are as without a gateway, and no
    call gets further for it."""
    with gateway(tmp_path / "gateway", server, open_methods=OPENED, upstream_host="preserve") as url:
        found = run(url, revision, tmp_path / "out")
    alone = directly[revision]
    calling = {scenario for scenario, why in OTHERWISE[revision].items() if why != CLOSED}
    same(found.without(calling), alone.without(calling), found)
    assert calling <= {scenario for scenario, _, _ in alone.checks - found.checks}


def test_a_stateless_server_keeps_all_but_calls_and_listening(directly, enforced):  # MCP-08 D-3 D-6
    """Removed and unknown methods are 404 with -32601 also where the gateway is the one to say so. A challenge is no
    JSON-RPC answer and repeats no id."""
    alone, (found, _) = directly["2026-07-28"], enforced["2026-07-28"]
    changed = {check for scenario, check, _ in alone.checks - found.checks if scenario == "server-stateless"}
    assert changed == {f"sep-2575-{check}" for check in (
        "server-rejects-undeclared-capability", "missing-capability-http-400", "server-no-log-without-loglevel",
        "http-server-no-independent-requests-on-stream", "http-server-error-jsonrpc-id", "server-sends-subscription-ack",
        "server-tags-subscription-id", "server-honors-notification-filter", "server-sends-prompts-list-changed-on-subscription",
        "server-sends-tools-list-changed-on-subscription")}


def test_headers_that_say_otherwise_are_refused_here(directly, enforced):  # MCP-25 MCP-26 MCP-27
    """By the gateway and not by the server behind it, where no call arrives that was granted nothing; and it counted
    each."""
    alone, (found, refused) = directly["2026-07-28"], enforced["2026-07-28"]
    for scenario, accepting in (("http-header-validation", {"sep-2243-server-accepts-whitespace-header-value"}), (
            "http-custom-header-server-validation",
            {"sep-2243-server-decode-base64", "sep-2243-server-validate-param-match"})):
        # What is refused directly is refused; what is accepted is challenged, and was no mismatch.
        changed = {check for name, check, _ in alone.checks - found.checks if name == scenario}
        assert changed == accepting, found.said_of([scenario])
        assert all("insufficient_authorization" in json.dumps(fault) for fault in found.faults[scenario])
    assert found.checks["http-header-validation", "sep-2243-server-reject-error-code", "SUCCESS"] == 5
    assert found.checks["http-custom-header-server-validation", "sep-2243-server-reject-param-mismatch", "SUCCESS"] == 3
    # Five of standard headers, three of mirrored ones, one of the revision.
    assert refused["header_body_mismatch"] + refused["missing_routing_headers"] >= 9, refused


# --- the suite's servers, and a client that meets them ----------------------------------------------------------------


@pytest.mark.parametrize("revision, scenario", [(revision, one) for revision, of in CLIENT_SCENARIOS.items() for one in of])
def test_a_client_meets_the_suites_server_as_directly(tmp_path, revision, scenario):  # D-6 D-10 D-13
    """What the suite sees of a stock client through a gateway is what it sees without one, and all of it succeeds."""
    alone = run_client(revision, scenario, tmp_path / "alone")
    found = run_client(revision, scenario, tmp_path / "through", sys.executable, HERE / "behind.py")
    assert not alone.failing(), alone.said_of(alone.failing())
    same(found.checks, alone.checks, found)

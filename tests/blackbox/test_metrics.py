"""The numbers of design 4.6, on a listener of their own: they move as the story goes, and whatever strangers send,
no label of theirs repeats it."""

import re

import pytest

from cast import TRADE, result
from parties import Agent
from town import Town
from wire import b64, mcp_body, send

SAMPLE = re.compile(r'^(\w+)(?:\{((?:\w+="[^"\\]*",?)*)\})? (\S+)$')
FAMILIES = {"sayso_build_info", "sayso_decisions_total", "sayso_decision_seconds", "sayso_negotiations_total",
            "sayso_pending", "sayso_store_seconds"}
LABELS = {"version", "outcome", "reason", "result", "op", "le"}


def scrape(process):
    """Samples by name and labels, read by the rules of the format."""
    response = send("GET", process.ready["metrics"] + "/metrics")
    assert response.status == 200, response
    assert response.header("content-type").startswith("application/openmetrics-text"), response.headers
    assert response.header("cache-control") == "no-store"
    lines = response.body.decode("ascii").split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-3:]
    samples = {}
    for line in lines[:-2]:
        if line.startswith("# "):
            assert re.match(r"# (HELP|TYPE|UNIT) sayso_\w+ ", line), line
            continue
        name, labels, value = SAMPLE.match(line).groups()
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels or ""))
        assert set(labels) <= LABELS and all(re.fullmatch(r"[\w.+-]{1,40}", text) for text in labels.values()), line
        samples[name, *sorted(labels.items())] = float(value)
    return samples


def value(samples, name, **labels):
    return samples.get((name, *sorted(labels.items())), 0)


def moved(process, before, name, **labels):
    return value(scrape(process), name, **labels) - value(before, name, **labels)


def families(samples):
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name, *_ in samples}


def test_the_numbers_move_with_the_story(house, agent):
    before = scrape(house)
    assert families(before) <= FAMILIES
    assert value(before, "sayso_build_info", version=house.ready["version"]) == 1
    assert ("sayso_pending",) in before

    def now(name, **labels):
        return moved(house, before, name, **labels)

    agent.request(house.resource, "tools/list")
    assert now("sayso_decisions_total", outcome="allowed", reason="open") == 1
    negotiation = agent.negotiate(house.resource, "get_positions")
    assert now("sayso_decisions_total", outcome="challenged", reason="insufficient_authorization") == 1
    assert now("sayso_negotiations_total", result="proffered") == 1
    negotiation.pending(negotiation.commit())
    negotiation.pending(negotiation.present())
    assert now("sayso_negotiations_total", result="submitted") == 1
    assert now("sayso_pending") == 1
    house.owner.decide(negotiation.family, "approved")
    assert now("sayso_pending") == 0
    grant = negotiation.grant(negotiation.poll())
    assert now("sayso_negotiations_total", result="issued") == 1
    for _ in range(3):
        result(agent.call(house.resource, "get_positions", token=grant.token))
    assert now("sayso_decisions_total", outcome="allowed", reason="reusable") == 3

    trade = agent.obtain(house.resource, "execute_trade", TRADE, owner=house.owner)
    result(agent.call(house.resource, "execute_trade", TRADE, token=trade.token))
    assert agent.call(house.resource, "execute_trade", TRADE, token=trade.token).status == 403
    assert now("sayso_decisions_total", outcome="allowed", reason="single_use") == 1
    assert now("sayso_decisions_total", outcome="denied", reason="already_consumed") == 1
    assert now("sayso_store_seconds_count", op="consume") == 1
    assert now("sayso_store_seconds_count", op="report") == 3
    assert now("sayso_store_seconds_count", op="introspect") >= 5

    negotiation.present()
    assert now("sayso_negotiations_total", result="lost") == 1
    agent.negotiate(house.resource, "get_positions").present(decline="true")
    assert now("sayso_negotiations_total", result="declined") == 1
    denied = agent.negotiate(house.resource, "execute_trade", TRADE)
    denied.pending(denied.commit())
    house.owner.decide(denied.family, "denied")
    assert denied.poll().status == 403
    assert now("sayso_negotiations_total", result="denied") == 1
    house.owner.revoke(agent.handle)
    agent.call(house.resource, "get_positions", token=grant.token)
    assert now("sayso_decisions_total", outcome="denied", reason="access_revoked") == 1

    after = scrape(house)
    assert families(after) == FAMILIES
    decided = sum(count for (name, *_), count in after.items() if name == "sayso_decisions_total")
    assert value(after, "sayso_decision_seconds_count") == decided
    assert value(after, "sayso_decision_seconds_bucket", le="+Inf") == decided
    assert 0 < value(after, "sayso_decision_seconds_sum") < 60


def test_nothing_anybody_sent_is_shown(house, agent):
    """Neither secrets nor a stranger's own words, whatever member or header they came in."""
    before = scrape(house)
    strange = "zq" + agent.key.thumbprint[:8]
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    server = house.resource_server()
    result(agent.call(house.resource, "get_positions", token=grant.token))
    agent.call(house.resource, strange, {strange: strange})
    agent.request(house.resource, strange)
    agent.request(house.resource, "tools/call", body=b"{" + strange.encode())
    agent.request(house.resource, "tools/list", version=strange)
    agent.call(house.resource, "get_positions", token=strange)
    agent.call(house.resource, "get_positions", extra=[("Origin", f"https://{strange}.example")])
    server.perm(strange, [strange])
    server.consume(strange, attempt=strange)
    send("POST", house.metadata["token_endpoint"], [("Content-Type", "application/x-www-form-urlencoded")],
         f"grant_type={strange}&ticket={strange}".encode())
    send("GET", f"{house.ready['metrics']}/{strange}?{strange}")
    shown = send("GET", house.ready["metrics"] + "/metrics").body.decode()
    for secret in (strange, grant.token, grant.token.split(".")[2], server.pat, agent.handle, agent.key.thumbprint,
                   grant.family, house.owner_name, *grant.negotiation.tickets):
        assert secret not in shown
    assert moved(house, before, "sayso_decisions_total", outcome="denied", reason="unknown_tool") == 1
    assert moved(house, before, "sayso_decisions_total", outcome="denied", reason="invalid_origin") == 1


@pytest.mark.parametrize("verb, path, status", [
    ("GET", "/", 200), ("GET", "/metrics", 200), ("HEAD", "/metrics", 200), ("GET", "/health", 200),
    ("POST", "/metrics", 405), ("DELETE", "/health", 405), ("OPTIONS", "/metrics", 405),
    ("GET", "/metrics/", 404), ("GET", "/mcp", 404), ("GET", "/owner/pending", 404), ("POST", "/token", 404),
    ("GET", "/.well-known/uma2-configuration", 404), ("GET", "/%6detrics", 404), ("GET", "//metrics", 404),
])
def test_what_is_served_there(house, verb, path, status):
    response = send(verb, house.ready["metrics"] + path)
    assert response.status == status, response
    assert response.header("x-content-type-options") == "nosniff"
    assert response.all("access-control-allow-origin") == []
    if status >= 400:
        assert set(response.json()) == {"error", "error_description"}


def test_it_is_not_served_elsewhere(house):
    for other in (house.authority, house.gateway):
        assert send("GET", other + "/metrics").status == 404


def test_other_hosts_and_pages_are_turned_away(house):  # D-16
    url, port = house.ready["metrics"] + "/metrics", house.ready["metrics"].rsplit(":", 1)[1]
    for host in ("metrics.example", "127.0.0.1", f"127.0.0.2:{port}", "", f"127.0.0.1:{port}.evil.example"):
        assert send("GET", url, [("Host", host)]).status == 421, host
    assert send("GET", url, [("Host", f"127.0.0.1:{port}"), ("Host", "metrics.example")]).status in (400, 421)
    assert send("GET", url, [("Host", f"LOCALHOST:{port}")]).status == 200
    for origin in ("null", "https://evil.example", house.ready["metrics"]):
        assert send("GET", url, [("Origin", origin)]).status == 403, origin


def test_each_role_shows_what_it_does(tmp_path):
    town, agent = Town(tmp_path), Agent()
    try:
        town.start()
        grant = agent.obtain(town.resource, "get_positions", owner=town.owner)
        result(agent.call(town.resource, "get_positions", token=grant.token))
        gateway, authority = scrape(town.gateway), scrape(town.authority)
        assert families(gateway) == {"sayso_build_info", "sayso_decisions_total", "sayso_decision_seconds"}
        assert families(authority) == {"sayso_build_info", "sayso_negotiations_total", "sayso_pending",
                                       "sayso_store_seconds"}
        assert value(gateway, "sayso_decisions_total", outcome="allowed", reason="reusable") == 1
        assert value(authority, "sayso_negotiations_total", result="issued") == 1
        assert grant.token not in str((gateway, authority)) and b64(b"alice") not in str(authority)
    finally:
        town.close()


def test_a_body_is_not_waited_for(house):
    """What a scraper sends along is its own affair."""
    response = send("GET", house.ready["metrics"] + "/metrics", body=mcp_body("tools/list"))
    assert response.status == 200

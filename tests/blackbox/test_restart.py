"""Nothing an answer was given for is lost to kill -9: decisions, grants, connections, spends, rows. The process
gets no chance to tidy up, and the next one has only the data folder."""

import json
import os
import stat
import subprocess
import threading
import time
from http.client import HTTPException

import pytest

from cast import TRADE, binary, environment, holding, result
from parties import Agent, Challenge, Negotiation, ResourceServer
from wire import Key, fetch_json, send, verify_jws


def pends(house, agent, tool, arguments=None):
    negotiation = agent.negotiate(house.resource, tool, arguments)
    negotiation.pending(negotiation.commit())
    return negotiation


def refused(response, status, error):
    assert (response.status, response.json()["error"]) == (status, error), response


def test_everything_is_kept(lone_house):
    """One house with a negotiation in every state there is, killed and started again."""
    house, owner = lone_house, lone_house.owner
    agent, ended, denied, asking, declined = (Agent() for _ in range(5))

    read = agent.obtain(house.resource, "get_positions", owner=owner)
    spent = agent.obtain(house.resource, "execute_trade", TRADE, owner=owner)
    result(agent.call(house.resource, "execute_trade", TRADE, token=spent.token))
    unspent = agent.obtain(house.resource, "execute_trade", TRADE | {"quantity": 5}, owner=owner)
    before = holding(result(agent.call(house.resource, "get_positions", token=read.token)))

    unclaimed = pends(house, agent, "execute_trade", TRADE | {"quantity": 7})
    owner.decide(unclaimed.family, "approved")
    turned_away = pends(house, denied, "get_positions")
    owner.decide(turned_away.family, "denied")
    gone = ended.obtain(house.resource, "get_positions", owner=owner)
    owner.revoke(ended.handle)
    waiting = pends(house, asking, "get_positions")
    proffered = agent.negotiate(house.resource, "get_positions")
    no = declined.negotiate(house.resource, "get_positions")
    no.present(decline="true")
    fresh = Challenge.of(agent.call(house.resource, "get_positions"))
    terms = send("GET", read.negotiation.template["terms_uri"]).body
    kept = owner.read("/pending"), owner.read("/connections"), owner.ledger(), owner.read("/policies")

    house.restart()
    owner = house.owner
    assert (owner.read("/pending"), owner.read("/connections"), owner.ledger(), owner.read("/policies")) == kept
    assert send("GET", read.negotiation.template["terms_uri"]).body == terms  # TERMS-01 TERMS-12

    # Spends.
    assert holding(result(agent.call(house.resource, "get_positions", token=read.token))) == before
    refused(agent.call(house.resource, "execute_trade", TRADE, token=spent.token), 403, "already_consumed")  # CORE-18
    result(agent.call(house.resource, "execute_trade", TRADE | {"quantity": 5}, token=unspent.token))
    refused(agent.call(house.resource, "execute_trade", TRADE | {"quantity": 5}, token=unspent.token), 403,
            "already_consumed")

    # Decisions: an approval nobody had fetched yet is worth one call, once; a denial stays one.
    claimed = unclaimed.grant(unclaimed.poll())
    result(agent.call(house.resource, "execute_trade", TRADE | {"quantity": 7}, token=claimed.token))
    assert holding(result(agent.call(house.resource, "get_positions", token=read.token))) == before + 12
    refused(turned_away.poll(), 403, "request_denied")
    assert owner.answer(unclaimed.family, "denied").status == 404  # OWN-08
    assert owner.answer(turned_away.family, "approved").status == 404

    # What she ended stays ended, what waits still waits, what was offered can still be taken.
    refused(ended.call(house.resource, "get_positions", token=gone.token), 403, "access_revoked")  # CORE-103
    assert owner.pending()[waiting.family]["kind"] == "connection"
    owner.decide(waiting.family, "approved")
    waiting.grant(waiting.poll())
    proffered.grant(proffered.commit())
    refused(no.present(), 400, "invalid_grant")
    refused(read.negotiation.present(ticket=read.negotiation.tickets[0]), 400, "invalid_grant")  # CORE-94
    late = Negotiation(agent, fresh.as_uri, fresh.ticket, {})
    late.ask()
    late.grant(late.commit())


@pytest.mark.parametrize("decision", ["approved", "denied"])
def test_a_decision_is_durable_before_she_is_told(lone_house, decision):
    """Killed in the moment of the answer, again and again: whatever she was told happened, has happened."""
    house = lone_house
    for _ in range(3):
        agent = Agent()
        negotiation = pends(house, agent, "get_positions")
        house.owner.decide(negotiation.family, decision)
        house.restart()
        response = negotiation.poll()
        if decision == "denied":
            refused(response, 403, "request_denied")
            continue
        grant = negotiation.grant(response)
        house.restart()
        result(agent.call(house.resource, "get_positions", token=grant.token))


def test_a_spend_is_durable_before_the_call_is_answered(lone_house):  # CORE-94
    house, agent = lone_house, Agent()
    read = agent.obtain(house.resource, "get_positions", owner=house.owner)
    before = holding(result(agent.call(house.resource, "get_positions", token=read.token)))
    for rounds in range(1, 4):
        order = TRADE | {"quantity": rounds}
        trade = agent.obtain(house.resource, "execute_trade", order, owner=house.owner)
        result(agent.call(house.resource, "execute_trade", order, token=trade.token))
        house.restart()
        refused(agent.call(house.resource, "execute_trade", order, token=trade.token), 403, "already_consumed")
        assert house.owner.kinds(trade.family).count("touched") == 1
    assert holding(result(agent.call(house.resource, "get_positions", token=read.token))) == before + 1 + 2 + 3


def test_killed_in_the_middle_of_a_spend(lone_house):
    """Whichever side of the spend the kill falls on, the trade is never executed twice."""
    house, agent = lone_house, Agent()
    read = agent.obtain(house.resource, "get_positions", owner=house.owner)
    before = holding(result(agent.call(house.resource, "get_positions", token=read.token)))
    trade = agent.obtain(house.resource, "execute_trade", TRADE, owner=house.owner)

    def spend():
        try:
            agent.call(house.resource, "execute_trade", TRADE, token=trade.token)
        except (OSError, HTTPException):
            pass  # No answer is what a kill looks like from here.

    caller = threading.Thread(target=spend)
    caller.start()
    house.restart()
    caller.join()
    again = agent.call(house.resource, "execute_trade", TRADE, token=trade.token)
    assert again.status == 200 or again.json()["error"] == "already_consumed", again
    refused(agent.call(house.resource, "execute_trade", TRADE, token=trade.token), 403, "already_consumed")
    after = holding(result(agent.call(house.resource, "get_positions", token=read.token)))
    assert after - before in (0, TRADE["quantity"])


def test_a_revocation_is_durable_before_she_is_told(lone_house):  # CORE-103
    house, agent = lone_house, Agent()
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    house.owner.revoke(agent.handle)
    house.restart()
    refused(agent.call(house.resource, "get_positions", token=grant.token), 403, "access_revoked")


def test_an_old_signature_is_not_news_to_a_new_process(lone_house):
    """The gateway's replay memory is empty after a start, so it refuses what was signed before its own first second."""
    house, agent, sent = lone_house, Agent(), []
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    result(agent.call(house.resource, "get_positions", token=grant.token, replayable=sent))
    asked = []
    house.owner.request("GET", "/pending", replayable=asked)
    time.sleep(1.1)  # Into another second than the signatures'.
    house.restart()
    refused(send(*sent[0]), 401, "invalid_token")
    assert send(*asked[0]).status == 401
    result(agent.call(house.resource, "get_positions", token=grant.token))


def test_keys_and_receipts_outlive_the_process(lone_house):  # TERMS-37
    house, agent = lone_house, Agent()
    grant = agent.obtain(house.resource, "get_positions", owner=house.owner)
    server = house.resource_server()
    keys = fetch_json(house.metadata["jwks_uri"])
    pat = server.pat
    house.restart()
    assert fetch_json(house.metadata["jwks_uri"]) == keys
    verify_jws(grant.receipt, keys)
    assert server.introspect(grant.token, pat).json()["active"] is True


def test_the_data_folder_is_hers_alone(lone_house):
    """No file of it can be read by another account, and her key is a key."""
    house = lone_house
    assert stat.S_IMODE(os.stat(house.data).st_mode) == 0o700
    assert (house.data / ".gitignore").read_text().strip() == "*"
    for path in (house.ready["owner_key"], house.data / "keys/gateway.pem"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
        assert Key.from_pem(path).thumbprint


def test_a_polite_stop(lone_house):
    """SIGTERM ends it with status 0, and what stdout carried is the ready line alone."""
    agent = Agent()
    grant = agent.obtain(lone_house.resource, "get_positions", owner=lone_house.owner)
    assert lone_house.stop() == 0
    lone_house.start()
    result(agent.call(lone_house.resource, "get_positions", token=grant.token))


def test_a_store_is_served_at_one_place(lone_house, tmp_path):
    """Another live process on the same store, under other public addresses, is refused; once the first has ended,
    however it ended, it may come."""
    first = lone_house.data / "sayso.db"
    elsewhere = ["--authority", "127.0.0.1:0", "--gateway", "127.0.0.1:0", "--json"]
    command = [binary(), "up", "--data", tmp_path / "other", "--store", f"sqlite:{first}", *elsewhere]
    refused_start = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=30)
    assert refused_start.returncode != 0 and refused_start.stdout == "", refused_start
    assert lone_house.authority in refused_start.stderr and "stop" in refused_start.stderr, refused_start
    lone_house.kill()
    command = [binary(), "up", "--data", lone_house.data, *elsewhere]
    other = subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert json.loads(other.stdout.readline())["ready"] is True
    finally:
        other.kill()
        other.wait(15)
        other.stdout.close()


def test_two_houses_are_two_worlds(lone_house, house):  # CORE-09 CORE-110
    """A ticket, a grant and a protection token of one authority mean nothing at another."""
    agent = Agent()
    grant = agent.obtain(lone_house.resource, "get_positions", owner=lone_house.owner)
    challenge = Challenge.of(agent.call(lone_house.resource, "get_positions"))
    refused(Negotiation(agent, house.authority, challenge.ticket, {}).present(), 400, "invalid_grant")
    response = agent.call(house.resource, "get_positions", token=grant.token)
    assert Challenge.of(response).as_uri == house.authority
    ours, theirs = lone_house.resource_server(), house.resource_server()
    assert theirs.introspect(grant.token).json() == {"active": False, "error": "unknown_token"}  # CORE-100 FED-39
    assert theirs.introspect(grant.token, ours.pat).status == 401
    stranger = ResourceServer(house.authority, lone_house.gateway, ours.key)
    assert stranger.ask_token().status == 401

"""What one request may cost whoever decides, embedded in a gateway or served, whatever it holds and whoever wrote the mapping;
and that one caller's requests leave everybody else's as they were."""

import json
import socket
import threading
import time

import pytest

from cast import result
from test_coaz_hosts import Shop, Stand, refused
from test_pdp import ALLOW, CALL, Pdp
from wire import send


@pytest.fixture
def pdp(tmp_path):
    with Pdp.running(tmp_path, {"a.cedar": ALLOW}) as running:
        yield running


def peak(process):
    """The most memory a process has held, in MiB."""
    with open(f"/proc/{process.pid}/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) >> 10


class Greedy(Shop):
    """Its tools declare mappings of so many decisions, each with all arguments of the call."""

    def _result(self, message):
        answer = super()._result(message)
        if message["method"] == "tools/list":
            for count in (64, 65, 20_000):
                mapping = {"evaluations": {
                    "action": {"name": "tools/call"}, "resource": {"type": "tool", "id": "x"},
                    "context": {"p": "$params.arguments"}, "evaluations": [{}] * count}}
                answer["tools"].append({"name": f"ask-{count}", "inputSchema": {
                    "type": "object", "x-authzen-mapping": mapping}})
        return answer


def test_a_server_does_not_choose_what_a_call_of_its_tool_costs(tmp_path):  # COAZ-MCP-22 COAZ-MCP-85
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "a.cedar").write_text(ALLOW)
    with Stand(tmp_path, settings={"pdp.policies": str(policies)}, wishes={"pdp": "embedded"},
               shop=Greedy()) as stand:
        def ask(count):
            return stand.ask(name=f"ask-{count}", params={"name": f"ask-{count}", "arguments": {"x": [0] * 30_000}})

        result(stand.ask())
        before, forwarded = peak(stand.role.process), stand.shop.calls()
        for count in (65, 20_000):
            assert "64" in refused(ask(count), -32602, "mapping_error")["message"]
        assert stand.shop.calls() == forwarded, "nothing is forwarded"
        result(ask(64))
        assert peak(stand.role.process) - before < 50, peak(stand.role.process)


def test_what_entries_share_is_there_once(tmp_path):  # COAZ-MCP-22
    top = CALL | {"context": {"x": [0] * 450_000}}
    many = json.dumps(top | {"evaluations": [{}] * 256}, separators=(",", ":")).encode()
    with Pdp.running(tmp_path, {"a.cedar": ALLOW}) as pdp:
        answers = []

        def ask():
            answers.append(pdp.post(many, url=pdp.ready["evaluations"]))

        began, asking = time.monotonic(), [threading.Thread(target=ask) for _ in range(4)]
        for thread in asking:
            thread.start()
        health = []
        while any(thread.is_alive() for thread in asking):
            at = time.monotonic()
            assert send("GET", pdp.ready["pdp"] + "/health").status == 200
            health.append(time.monotonic() - at)
        for thread in asking:
            thread.join()
        assert all(answer.status == 200 for answer in answers), answers
        for answer in answers:
            assert [one["decision"] for one in answer.json()["evaluations"]] == [True] * 256
        assert max(health, default=0) < 2 and time.monotonic() - began < 20, (health, time.monotonic() - began)
        assert peak(pdp.process) < 400, peak(pdp.process)


def test_unfinished_bodies_have_a_room_and_others_are_answered(pdp):  # D-10
    host = pdp.ready["pdp"].removeprefix("http://")
    address, port = host.rsplit(":", 1)
    head = (f"POST /access/v1/evaluation HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {1 << 20}\r\n\r\n").encode()
    slow = []
    try:
        for _ in range(200):
            slow.append(socket.create_connection((address, int(port)), 5))
            slow[-1].sendall(head + b" " * 100_000)
        time.sleep(1)
        assert peak(pdp.process) < 100, peak(pdp.process)
        assert pdp.decides() is True, "small ones need no room"
        large = json.dumps(CALL).encode() + b" " * 100_000
        response = pdp.post(large)
        assert response.status == 429 and b"ask again" in response.body, response
    finally:
        for connection in slow:
            connection.close()
    deadline = time.monotonic() + 10
    while pdp.post(large).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


SCHEMA = """entity account;
action "pay" appliesTo { principal: [identity], resource: [account], context: { tags?: Set<String>, note?: String } };
"""


def test_nulls_are_said_once_for_a_request(tmp_path):  # COAZ-FW-22
    pay = {"subject": {"type": "identity", "id": "a"}, "action": {"name": "pay"},
           "resource": {"type": "account", "id": "1"}}
    with Pdp.running(tmp_path, {"a.cedar": ALLOW, "schema.cedarschema": SCHEMA}) as pdp:
        few = pay | {"context": {"tags": [None] * 12_000 + ["a"], "note": None}}
        assert pdp.decides(few) is True
        said = pdp.said("policy.null_left_out")
        assert (said["level"], said["count"], said["place"]) == ("WARN", 12_001, "context.note"), said
        many = pdp.post(pay | {"context": {"tags": [None] * 150_000}})
        assert many.status == 400 and b"context.tags" in many.body, many
        several = pay | {"context": {"note": None}, "evaluations": [{}] * 200}
        assert pdp.post(several, url=pdp.ready["evaluations"]).status == 200
        assert pdp.stop() == 0
        assert pdp.logged().count("policy.null_left_out") == 3


ROLES = "entity identity { admin?: Bool };"
ADMIN = "permit (principal is identity, action, resource) when { principal has admin && principal.admin };"


def test_a_file_that_goes_missing_makes_no_request_believed(tmp_path):  # COAZ-FW-38 COAZ-MCP-63
    def admin(name):
        return [{"uid": {"type": "identity", "id": name}, "attrs": {"admin": True}, "parents": []}]

    eve = CALL | {"subject": {"type": "identity", "id": "eve", "properties": {"admin": True}}}
    root = CALL | {"subject": {"type": "identity", "id": "root"}}
    files = {"a.cedar": ADMIN, "schema.cedarschema": ROLES, "entities.json": json.dumps(admin("root"))}
    with Pdp.running(tmp_path, files) as pdp:
        assert (pdp.decides(eve), pdp.decides(root)) == (False, True)
        assert pdp.said("policies.taken")["listed"] == "identity"
        pdp.save("entities.json", "[]")
        refusal = pdp.said("policies.refused")
        assert refusal["level"] == "ERROR" and "holds no entity" in refusal["reason"], refusal
        assert (pdp.decides(eve), pdp.decides(root)) == (False, True)
        pdp.save("entities.json", files["entities.json"])
        time.sleep(3)
        (pdp.policies / "entities.json").rename(pdp.policies / "entities.json.new")
        time.sleep(3)
        assert "no entity of type `identity` any more" in pdp.said("policies.refused")["reason"]
        assert (pdp.decides(eve), pdp.decides(root)) == (False, True)
        pdp.save("entities.json", json.dumps(admin("mallory")))
        pdp.soon(False, root)
        assert pdp.decides(eve) is False
        assert pdp.stop() == 0


ARITHMETIC = """entity account;
action "pay" appliesTo { principal: [identity], resource: [account], context: { amount?: Long, agent?: String } };
"""
CAP = """permit (principal, action, resource);
forbid (principal, action == Action::"pay", resource) when { context has amount && context.amount * 100 > 1000000 };
"""


def test_messages_an_engine_chokes_on_leave_those_of_others_alone(tmp_path):  # COAZ-MCP-80 COAZ-MCP-85
    with Pdp.running(tmp_path / "pdp", {"a.cedar": CAP, "schema.cedarschema": ARITHMETIC}) as pdp, \
            Stand(tmp_path, settings={"pdp.url": pdp.ready["pdp"]}) as stand:
        def pay(amount, who):
            params = {"name": "pay", "arguments": {"account": "a1", "amount": amount}}
            return stand.ask(name="pay", params=params, token=stand.token(sub=who))

        result(pay(1, "u-ann"))
        before = stand.shop.calls()
        for _ in range(12):
            refused(pay(9223372036854775807, "u-eve"), -32603, "pdp_unavailable")
        assert stand.shop.calls() == before
        refused(pay(999999, "u-ann"), -32001, "denied")
        result(pay(1, "u-ann"))

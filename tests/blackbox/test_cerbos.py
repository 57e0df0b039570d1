"""A policy engine by others, discovered and asked: the mappings that the binding prints, those of an older demo, and
policies written for them. What is sent is compared as well, since an engine forgives much."""

import json
import subprocess

import pytest

from points import cerbos
from suite import example
from town import free_port

ALICE = {"sub": "alice@example.com", "client_id": "http://agentprovider.com/agent-app-id",
         "iss": "https://auth.example.com", "aud": "https://mcp.example.com", "exp": 1750000000}
AGENT = {"agent": ALICE["client_id"]}


def tool(name, mapping=None):
    schema = {"type": "object"} | ({"x-authzen-mapping": mapping} if mapping else {})
    return {"name": name, "inputSchema": schema}


SUBJECT = {"type": "identity", "id": "$token.sub"}
# As the binding prints them, but for `.?case`: its schema says that the argument may be missing.
BINDING = {"tools": [
    tool("get_customer", {"evaluation": {
        "subject": SUBJECT, "action": {"name": "get_customer"},
        "resource": {"type": "customer", "id": "$params.arguments.id"},
        "context": {"agent": "$token.?client_id", "case": "$params.arguments.?case"}}}),
    tool("copy_object", {"evaluations": {
        "subject": SUBJECT, "context": {"agent": "$token.?client_id"},
        "evaluations": [
            {"action": {"name": "read"}, "resource": {"type": "storage_object", "id": "$params.arguments.source"}},
            {"action": {"name": "write"},
             "resource": {"type": "storage_object", "id": "$params.arguments.destination"}}]}}),
    tool("transfer_funds", {"evaluation": {
        "subject": {"type": "$token.roles.exists(r, r == 'treasury') ? 'treasury_user' : 'standard_user'",
                    "id": "$token.sub"},
        "action": {"name": "$params.arguments.currency == 'USD' ? 'domestic_transfer' : 'international_transfer'"},
        "resource": {"type": "account", "id": "$params.arguments.from_account",
                     "properties": {"sensitivity": "$params.arguments.amount > 10000 ? 'high' : 'standard'"}},
        "context": {"agent": "$token.?client_id", "target_account": "$params.arguments.to_account"}}}),
    tool("get_local_weather"), tool("delete_everything")]}
# The two tools of the demo, by today's rules: `$` begins an expression, and what is constant is written as it is.
DEMO = {"tools": [
    tool("get_customer", {"evaluation": {
        "subject": {"type": "$token.role", "id": "$token.sub"}, "action": {"name": "get_customer"},
        "resource": {"type": "customer", "id": "$params.arguments['customer_id']"},
        "context": {"agent": "$token.client_id"}}}),
    tool("transfer_customer", {"evaluations": {
        "subject": {"type": "$token.role", "id": "$token.sub", "properties": {"department": "$token.department"}},
        "context": {"agent": "$token.client_id"},
        "evaluations": [
            {"action": {"name": "read"},
             "resource": {"type": "customer_region", "id": "$params.arguments.source_region"}},
            {"action": {"name": "write"},
             "resource": {"type": "customer_region", "id": "$params.arguments.destination_region"}}]}})]}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with cerbos(tmp_path_factory.mktemp("cerbos")) as url:
        yield url


def ask(engine, folder, listing, questions):
    """Answers to questions, each a tool, its arguments and claims."""
    (folder / "listing.json").write_text(json.dumps(listing))
    lines = [json.dumps({"message": {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                                     "params": {"name": name, "arguments": arguments}}, "claims": claims})
             for name, arguments, claims in questions]
    done = subprocess.run([example("policy_question"), engine, str(folder / "listing.json")], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def decided(engine, folder, listing, table):
    answers = ask(engine, folder, listing, [row[:3] for row in table])
    outcomes = {"permit": None, "denied": -32001}
    for row, answer in zip(table, answers, strict=True):
        assert (answer["outcome"], answer.get("code")) == (row[3], outcomes[row[3]]), (row, answer)
    return [answer["request"] for answer in answers]


def test_the_mappings_the_binding_prints(engine, tmp_path):  # COAZ-MCP-65 COAZ-MCP-66 COAZ-MCP-67 COAZ-MCP-25
    treasury, standard = ALICE | {"roles": ["treasury"]}, ALICE | {"roles": ["ops"]}
    copy = {"source": "/bucket/reports/q1.pdf", "destination": "/bucket/archive/q1.pdf"}

    def transfer(amount, currency="USD"):
        return {"from_account": "a-1", "to_account": "a-2", "amount": amount, "currency": currency}

    sent = decided(engine, tmp_path, BINDING, [
        ("get_customer", {"id": "cust-12345", "case": "case-67890"}, ALICE, "permit"),
        ("get_customer", {"id": "cust-12345"}, ALICE, "permit"),
        ("get_customer", {"id": "internal-1"}, ALICE, "denied"),
        ("get_customer", {"id": "cust-12345"}, ALICE | {"sub": "mallory@example.com"}, "denied"),
        ("copy_object", copy, ALICE, "permit"),
        ("copy_object", copy | {"source": "/bucket/secret/q1.pdf"}, ALICE, "denied"),
        ("copy_object", copy | {"destination": "/bucket/reports/q1.pdf"}, ALICE, "denied"),
        ("copy_object", {"source": copy["destination"], "destination": copy["source"]}, ALICE, "denied"),
        ("transfer_funds", transfer(20000), treasury, "permit"),
        ("transfer_funds", transfer(20000), standard, "denied"),
        ("transfer_funds", transfer(10000), standard, "permit"),
        ("transfer_funds", transfer(10000.5), standard, "denied"),
        ("transfer_funds", transfer(500, "EUR"), treasury, "permit"),
        ("transfer_funds", transfer(20000, "EUR"), treasury, "denied"),
        ("transfer_funds", transfer(500, "EUR"), standard, "denied"),
        ("get_local_weather", {"zip": "10115"}, ALICE, "permit"),
        ("delete_everything", {}, ALICE, "denied"),
    ])
    alice = {"type": "identity", "id": ALICE["sub"]}
    assert sent[0] == {"subject": alice, "action": {"name": "get_customer"},
                       "resource": {"type": "customer", "id": "cust-12345"}, "context": AGENT | {"case": "case-67890"}}
    assert sent[1]["context"] == AGENT
    assert sent[4] == {"subject": alice, "context": AGENT, "evaluations": [
        {"action": {"name": "read"}, "resource": {"type": "storage_object", "id": copy["source"]}},
        {"action": {"name": "write"}, "resource": {"type": "storage_object", "id": copy["destination"]}}]}
    assert sent[8]["subject"] == {"type": "treasury_user", "id": ALICE["sub"]}
    assert sent[8]["resource"] == {"type": "account", "id": "a-1", "properties": {"sensitivity": "high"}}
    assert sent[15]["resource"] == {"type": "tool", "id": "get_local_weather"}


def test_the_two_tools_of_the_demo(engine, tmp_path):
    def person(role, department="sales"):
        return ALICE | {"sub": role, "role": role, "department": department}

    inside, abroad = ({"customer_id": "c-1", "source_region": "us-west-2", "destination_region": region}
                      for region in ("us-east-1", "eu-west-1"))
    sent = decided(engine, tmp_path, DEMO, [
        ("get_customer", {"customer_id": "c-1"}, person("admin"), "permit"),
        ("get_customer", {"customer_id": "c-1"}, person("agent"), "permit"),
        ("get_customer", {"customer_id": "c-1"}, person("viewer"), "denied"),
        ("transfer_customer", inside, person("admin"), "permit"),
        ("transfer_customer", abroad, person("admin"), "denied"),
        ("transfer_customer", abroad, person("admin", "sales-eu"), "permit"),
        ("transfer_customer", inside, person("agent"), "denied"),
        ("transfer_customer", inside, person("admin", "legal"), "denied"),
        ("transfer_customer", inside, person("viewer"), "denied"),
    ])
    assert sent[3]["subject"] == {"type": "admin", "id": "admin", "properties": {"department": "sales"}}


def test_an_engine_that_does_not_answer_is_no_yes(engine, tmp_path):  # ERR-10 COAZ-MCP-80 COAZ-FW-42
    question = [("get_customer", {"id": "cust-1"}, ALICE)]
    for identifier in (f"{engine}/elsewhere", f"http://127.0.0.1:{free_port()}"):
        [answer] = ask(identifier, tmp_path, BINDING, question)
        assert (answer["outcome"], answer["code"]) == ("pdp_unavailable", -32603), (identifier, answer)
        assert answer["message"] == "Authorization service unavailable"

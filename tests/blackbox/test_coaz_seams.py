"""What stays one and the same where a policy decides: the bytes it was asked about, the name of a tool, the listing that
its mappings come from, and the server they are for."""

import json
import time

import pytest

from cast import result
from test_coaz_hosts import DECLARED, Shop, Stand, refused
from town import Role, free_port
from wire import LEGACY, mcp_headers, send

LOOSE = {"evaluation": {"action": {"name": "read"}, "resource": {"type": "public", "id": "1"}}}


class Fickle(Shop):
    """Lists what it is told to for the gateway, and no mapping at all for whoever names a request `client`."""

    mapping = DECLARED

    def _result(self, message):
        if message["method"] != "tools/list":
            return super()._result(message)
        declared = {} if message["id"] == "client" or self.mapping is None else {"x-authzen-mapping": self.mapping}
        return {"tools": [{"name": "pay", "inputSchema": {"type": "object"} | declared}], "ttlMs": 300}

    def listings(self):
        return [body for body in self.bodies if json.loads(body)["method"] == "tools/list"]


PAY = {"name": "pay", "arguments": {"account": "acc-9", "amount": 12}}


@pytest.fixture
def stand(tmp_path):
    with Stand(tmp_path, shop=Fickle()) as stand:
        yield stand


def pay(stand):
    stand.forgotten()
    result(stand.ask(name="pay", params=PAY))
    (asked,) = stand.engine.asked
    return asked["action"]["name"]


# MSG-18, LST-15, COAZ-MCP-88: there is no host that rewrites a message, so there is one message.
def test_what_was_decided_about_is_what_the_server_gets(stand):
    body = ('{ "params" :{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},'
            '"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"arguments":{"amount":1.20e1,"x":[ 1 , 2.50 ],'
            '"account":"acc\\u002d9", "big":9007199254740993},\t"name":"pay"},\r\n "method":"tools/call",'
            '"id":9007199254740993,"jsonrpc":"2.0"}').encode()
    head = mcp_headers("tools/call", "pay", version="2026-07-28")
    response = send("POST", stand.resource, [*head, ("Authorization", f"Bearer {stand.token()}")], body)
    assert result(response)["structuredContent"]["tool"] == "pay"
    assert stand.shop.bodies[-1] == body
    assert dict(stand.shop.heads[-1])["mcp-name"] == "pay"
    (asked,) = stand.engine.asked
    assert (asked["resource"]["id"], asked["context"]["amount"]) == ("acc-9", 12)
    assert stand.shop.calls("pay") == 1


# LST-01, LST-09, LST-16
def test_a_listing_is_passed_on_as_it_is_and_teaches_nobody(stand):
    def listed(request_id):
        (tool,) = result(stand.ask("tools/list", request_id=request_id))["tools"]
        return tool["inputSchema"].get("x-authzen-mapping")

    assert pay(stand) == "pay"
    before = len(stand.shop.listings())
    assert listed("client") is None and listed(7) == DECLARED
    assert pay(stand) == "pay", "the server's word to a caller is no mapping"
    assert len(stand.shop.listings()) == before + 2, "and the call costs no further listing"


# LST-07, LST-10, LST-11
def test_a_mapping_that_changes_is_told_and_the_new_one_holds(stand):
    def changes():
        lines = [json.loads(line) for line in stand.role.logged().splitlines() if line.startswith("{")]
        lines = [line.get("fields", line) for line in lines]
        return [line for line in lines if line.get("message") == "mapping.changed"]

    assert pay(stand) == "pay"
    (first,) = changes()
    assert (first["tool"], first.get("was"), first["gone"]) == ("pay", None, False), first
    stand.shop.mapping = LOOSE
    time.sleep(1.3)  # Longer than the listing holds.
    assert pay(stand) == "read"
    loosened = changes()[-1]
    assert loosened["was"] == first["is"] and loosened["is"].startswith("s256:") and loosened["is"] != first["is"]
    stand.shop.mapping = None
    time.sleep(1.3)
    assert pay(stand) == "tools/call", "what is dropped is the default again"
    dropped = changes()[-1]
    assert (dropped["was"], dropped.get("is"), dropped["gone"]) == (loosened["is"], None, True), dropped
    assert len(changes()) == 3


# LST-14
def test_two_servers_with_a_tool_of_one_name_have_two_mappings(tmp_path):
    other = Fickle()
    other.mapping = LOOSE
    with Stand(tmp_path, shop=Fickle()) as stand:
        url = f"http://127.0.0.1:{free_port()}"
        tables = [("resource", {"path": path, "enforce": ["coaz"], "upstream": shop.url})
                  for path, shop in (("/one", stand.shop), ("/two", other))]
        role = Role("gateway", tmp_path / "both", {
            "pdp.url": stand.engine.url, "oauth.issuers": [stand.issuer.url],
            "gateway.listen": url.removeprefix("http://")}, tables)
        role.start()
        try:
            for path, action, shop in (("/one", "pay", stand.shop), ("/two", "read", other), ("/one", "pay", stand.shop)):
                stand.forgotten()
                before = shop.calls()
                token = stand.token(aud=url + path)
                result(stand.ask(name="pay", params=PAY, to=url + path, token=token))
                (asked,) = stand.engine.asked
                assert (asked["action"]["name"], shop.calls()) == (action, before + 1), path
            # A token for the one is none for the other.
            assert stand.ask(name="pay", params=PAY, to=url + "/two", token=stand.token(aud=url + "/one")).status == 401
        finally:
            role.end()
            other.stop()




# COAZ-FW-48, COAZ-MCP-58, COAZ-MCP-82, SUB-04: whose word is taken about a subject is the deployment's choice.
@pytest.mark.parametrize("trust", ["warn", "strict"])
def test_a_subject_that_is_the_servers_word_is_told_of_or_refused(tmp_path, trust):
    shop = Fickle()
    shop.mapping = {"evaluation": DECLARED["evaluation"] | {"subject": {"id": "$params.arguments.account"}}}
    with Stand(tmp_path, shop=shop, wishes={"trust": trust}) as stand:
        def warned():
            lines = [json.loads(line) for line in stand.role.logged().splitlines() if line.startswith("{")]
            lines = [line.get("fields", line) for line in lines]
            return [line for line in lines if "mapping.unverified" in line.get("message", "")]

        if trust == "strict":
            before = stand.shop.calls()
            error = refused(stand.ask(name="pay", params=PAY), -32602, "mapping_error")
            assert error["data"]["coaz"]["path"] == "subject.id" and "acc-9" not in error["message"]
            assert (stand.shop.calls(), stand.engine.asked) == (before, [])
            return
        for _ in range(3):
            assert pay(stand) == "pay"
        assert stand.engine.asked[0]["subject"] == {"type": "identity", "id": "acc-9"}
        (one,) = warned()
        assert (one["tool"], one["notice"]) == ("pay", "subject_unverified") and one["mapping"].startswith("s256:")
        shop.mapping = {"evaluation": shop.mapping["evaluation"] | {"action": {"name": "pay_more"}}}
        time.sleep(1.3)
        assert pay(stand) == "pay_more"
        assert len(warned()) == 2, "once for each mapping"
        metrics = send("GET", stand.role.ready["metrics"] + "/metrics").body.decode()
        assert 'sayso_mapping_warnings_total{notice="subject_unverified"} 2' in metrics


# ROW-01: the revision is a choice, and start-up says whom it shuts out.
@pytest.mark.parametrize("binding", ["2026-07", "2026-09"])
def test_which_text_is_followed_says_whether_an_older_client_gets_in(tmp_path, binding):
    with Stand(tmp_path, wishes={"binding": binding}) as stand:
        params = {"protocolVersion": LEGACY, "capabilities": {}}
        answer = stand.ask("initialize", params=params, version=LEGACY)
        shut = "begin with initialize" in stand.role.logged()
        if binding == "2026-07":
            assert not shut and [asked["action"]["name"] for asked in stand.engine.asked] == ["initialize"]
            assert stand.engine.asked[0]["context"]["protocol_version"] == LEGACY
        else:
            before = len(stand.shop.bodies)
            refused(answer, -32001, "denied")
            assert shut and stand.engine.asked == [] and len(stand.shop.bodies) == before


# COAZ-FW-46: a yes is for the message it was given for, and for no other, not even an equal one.
def test_a_yes_is_not_kept(stand):
    assert pay(stand) == "pay"
    before = stand.shop.calls()
    stand.engine.answer = lambda body: False
    refused(stand.ask(name="pay", params=PAY), -32001, "denied")
    stand.engine.answer = lambda body: (503, "text/plain", b"")
    refused(stand.ask(name="pay", params=PAY), -32603, "pdp_unavailable")
    assert stand.shop.calls() == before


# COAZ-FW-47, COAZ-MCP-84: what is malformed is said when it is learnt, and its tool is refused, not the others.
def test_a_malformed_mapping_is_said_at_once_and_refuses_its_own_tool(tmp_path):
    class Careless(Shop):
        def _result(self, message):
            if message["method"] != "tools/list":
                return super()._result(message)
            wrong = {"evaluation": DECLARED["evaluation"] | {"context": {"x": "$requst.x"}}}
            return {"tools": [{"name": "pay", "inputSchema": {"x-authzen-mapping": wrong}},
                              {"name": "look", "inputSchema": {}}]}

    with Stand(tmp_path, shop=Careless()) as stand:
        result(stand.ask())
        assert "mapping.malformed" in stand.role.logged()
        stand.forgotten()
        before = stand.shop.calls()
        error = refused(stand.ask(name="pay", params=PAY), -32602, "mapping_error")
        assert "requst" in error["message"] and "acc-9" not in error["message"]
        assert (stand.shop.calls(), stand.engine.asked) == (before, [])

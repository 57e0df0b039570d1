"""Bodies meant to be read one way here and another way behind. The rows are data/*.json: `about` says what a
file holds, `expect` what every row of it must meet, a row's own members win over it. A row is sent as a
tools/call (or `method`) with the named grant and an honest signature over exactly those bytes, so that nothing
but the body can be what is refused."""

import gzip
import json
import zlib
from pathlib import Path

import pytest

from cast import TRADE, result
from parties import Challenge
from wire import META, mcp_body, mcp_headers, send

DATA = Path(__file__).parent / "data"
TOOLS = {"positions": "get_positions", "trade": "execute_trade"}


def rows():
    for path in sorted(DATA.glob("*.json")):
        document = json.loads(path.read_text())
        for row in document["rows"]:
            yield pytest.param(document["expect"] | row, id=f"{path.stem}: {row['id']}")


def bytes_of(row):
    text = row.get("body")
    if "repeat" in row:
        part = {"open": "", "middle": "", "close": "", "end": ""} | row["repeat"]
        text = (part["open"] + part["unit"] * part["count"] + part["middle"] + part["close"] * part["count"]
                + part["end"])
    if text is None:
        return mcp_body("tools/call", {"name": "execute_trade", "arguments": TRADE})
    text = text.replace("$META", json.dumps(META, separators=(",", ":")))
    return bytes.fromhex(row.get("bytes", "")) + text.encode(row.get("encoding", "utf-8"))


def deliver(armed, row):
    body, method = bytes_of(row), row.get("method", "tools/call")
    name = None if method != "tools/call" else TOOLS.get(row["grant"], "execute_trade")
    headers = mcp_headers(method, name) + [("Content-Encoding", coding) for coding in row.get("coding", [])]
    token = {"positions": armed.positions.token, "trade": armed.trade.token}.get(row["grant"])
    body = gzip.compress(body) if row.get("packed") else body
    return armed.agent.request(armed.resource, method, token=token, body=body, headers=headers)


@pytest.mark.parametrize("row", list(rows()))
def test_hostile(armed, row):  # CORE-61 CORE-84 CORE-89 MCP-09
    with armed.untouched():
        response = deliver(armed, row)
        assert response.status in row["status"], response
        assert response.all("www-authenticate") == [], "a body nobody could read was challenged"
        answer = response.json()
        assert "result" not in answer
        if "codes" in row:
            assert answer["jsonrpc"] == "2.0" and answer["error"]["code"] in row["codes"], answer
            if answer["error"]["code"] in (-32700, -32600):
                assert "id" in answer and answer["id"] is None, answer
        if response.status == 413:
            assert answer["error"] == "request_body_too_large"  # CORE-21 CORE-116 MCP-30


def test_the_honest_body_passes(armed):
    """The control: the same headers and signature over an honest body, with case variants where they are allowed."""
    for body in (mcp_body("tools/call", {"name": "get_positions", "arguments": {}}),
                 mcp_body("tools/call", {"name": "get_positions", "arguments": {"id": 1, "ID": 2}})):
        headers = mcp_headers("tools/call", "get_positions")
        response = armed.agent.request(armed.resource, "tools/call", token=armed.positions.token, body=body,
                                       headers=headers)
        assert response.status == 200, response
    plain = armed.agent.call(armed.resource, "execute_trade", TRADE, extra=[("Content-Encoding", "identity")])
    assert plain.status in (401, 415), plain


@pytest.mark.parametrize("text", ['"1"', "0", "-5", '""', '"\\u00fcn\\u00ef"', "9007199254740993", "1.0", "1e2"])
def test_an_error_names_its_request(armed, text):
    """The id of a refused request comes back digit for digit, as far as it was an id at all."""
    body = mcp_body("tools/call", {"name": "get_positions", "arguments": {}}, request_id="\0mark")
    body = body.replace(json.dumps("\0mark").encode(), text.encode())
    with armed.untouched():
        response = armed.agent.request(armed.resource, "tools/call", token=armed.positions.token, body=body,
                                       headers=mcp_headers("tools/call", "execute_trade"))
        assert response.status == 400, response
        error = response.json()
        if text in ("1.0", "1e2") and error["error"]["code"] == -32600:
            assert error["id"] is None
            return
        assert error["error"]["code"] == -32020, error
        squeezed = response.body.replace(b" ", b"")
        plain = json.dumps(json.loads(text), ensure_ascii=False) if text.startswith('"') else text
        assert f'"id":{text}'.encode() in squeezed or f'"id":{plain}'.encode() in squeezed, response.body


def test_a_compressed_bomb(armed):
    """Hundreds of kilobytes that would be a hundred megabytes: refused for what they claim to be, never unpacked."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"')
    body += b"".join(packer.compress(b"A" * 2**20) for _ in range(100)) + packer.compress(b'"}}') + packer.flush()
    before = armed.house.memory_mb()
    with armed.untouched():
        headers = mcp_headers("tools/list") + [("Content-Encoding", "gzip")]
        assert send("POST", armed.resource, headers, body).status in (413, 415)
    assert armed.house.memory_mb() - before < 64


def test_bombs_leave_memory_as_it_was(armed):
    before = armed.house.memory_mb()
    heavy = json.loads((DATA / "bombs.json").read_text())["rows"]
    for _ in range(3):
        for row in heavy:
            assert deliver(armed, row).status in (400, 413)
    assert armed.house.memory_mb() - before < 64


@pytest.mark.parametrize("token", ["." * 60000, "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIiwiemlwIjoiREVGIn0..AA.AA.AA",
                                   "A" * 16000, "..", "e30..", "\u00ff", "a b"])
def test_hostile_tokens(armed, token):
    with armed.untouched():
        response = armed.spend(token=token)
        assert response.status in (400, 401, 431), response


def test_hostile_forms_at_the_token_endpoint(armed):  # TERMS-33
    """Too large, not a form, or a form with a member twice: refused in bounded time."""
    negotiation = armed.agent.negotiate(armed.resource, "get_positions")
    response = negotiation.commit(claim_token="A" * 2_000_000)
    assert response.status in (400, 403, 413), response
    negotiation = armed.agent.negotiate(armed.resource, "get_positions")
    response = negotiation.commit(negotiation.claims() | {"reason": "x" * 1_000_000})
    assert response.status in (400, 403, 413), response
    negotiation = armed.agent.negotiate(armed.resource, "get_positions")
    url, form = negotiation.metadata["token_endpoint"], "application/x-www-form-urlencoded"
    twice = f"grant_type=urn:ietf:params:oauth:grant-type:uma-ticket&ticket={negotiation.ticket}&ticket=x"
    for body, kind in ((twice.encode(), form), (b"{}", "application/json"), (b"", form), (b"%ff=%zz", form)):
        response = send("POST", url, [("Content-Type", kind)], body)
        assert response.status in (400, 413, 415) and response.json()["error"], response
    result(armed.read())


def test_the_open_side_of_the_gateway_still_works(armed):
    """After every row above the same process still serves: nothing here crashed it."""
    listed = armed.agent.request(armed.resource, "tools/list")
    assert listed.status == 200
    assert Challenge.of(armed.agent.call(armed.resource, "execute_trade", TRADE)).ticket
    assert armed.house.process.poll() is None

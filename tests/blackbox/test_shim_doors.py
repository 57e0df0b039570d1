"""Who gets into a shim, what it takes on a pipe, and what it never says: the neighbours of what is allowed."""

import http.client
import json
import os
import ssl
import stat
import subprocess

import pytest

from cast import TRADE, House, binary, environment
from shims import ERAS, Later, Listening, Person, client, run, text_of
from tls import certificate
from town import free_port

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("house"))
    yield house
    house.kill()


@pytest.fixture
def listening(house, tmp_path):
    shim = Listening(house.resource, tmp_path / "agent", "--hold", 1)
    yield shim
    shim.kill()


def post(shim, message=LIST, *, path="/mcp", method="POST", body=None, **headers):
    host = shim.url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=20)
    usual = {"host": host, "authorization": f"Bearer {shim.secret}", "content-type": "application/json",
             "accept": "application/json, text/event-stream"}
    sent = {name: value for name, value in (usual | headers).items() if value is not None}
    connection.request(method, path, json.dumps(message) if body is None else body, sent)
    response = connection.getresponse()
    return response.status, response.read()


# D-34, D-16
def test_who_does_not_get_in(listening):
    assert post(listening)[0] == 200
    host = listening.url.split("/")[2]
    for status, headers in [
        (401, {"authorization": None}), (401, {"authorization": "Bearer wrong"}),
        (401, {"authorization": listening.secret}), (401, {"authorization": f"bearer {listening.secret}"}),
        (421, {"host": "evil.example"}), (421, {"host": f"evil.example:{host.split(':')[1]}"}),
        (403, {"origin": "https://evil.example"}), (403, {"origin": "null"}),
    ]:
        got, body = post(listening, **headers)
        assert (got, listening.secret in body.decode()) == (status, False), (headers, body)
    assert post(listening, origin=f"http://{host}")[0] == 200
    assert post(listening, path="/")[0] == 404
    assert post(listening, path="/mcp?x=1")[0] == 404
    assert post(listening, method="PUT")[0] == 405


def test_the_secret_is_its_users_alone(listening):
    path = listening.ready["secret_file"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    before = listening.secret
    listening.restart()
    assert listening.secret == before
    os.chmod(path, 0o644)
    done = subprocess.run([binary(), "shim", listening.resource, "--listen", "127.0.0.1:0"], cwd=listening.folder,
                          env=environment(listening.folder), capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "chmod 600" in done.stderr and before not in done.stderr


# D-34
@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.7:8450", "localhost:8450", "8450"])
def test_where_it_does_not_listen(house, tmp_path, address):
    done = subprocess.run([binary(), "shim", house.resource, "--listen", address], cwd=tmp_path, text=True,
                          env=environment(tmp_path), capture_output=True, timeout=20)
    assert done.returncode == 2 and done.stdout == "", done


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    bundle, public, private = certificate(tmp_path_factory.mktemp("tls"))
    private.chmod(0o600)
    return bundle, public, private


# D-34
@pytest.mark.parametrize("era", ERAS)
def test_off_loopback_it_speaks_tls_to_a_stock_client(tmp_path, files, era):
    bundle, public, private = files
    house = House(tmp_path)
    port = free_port()
    shim = Listening(house.resource, tmp_path / "agent", "--hold", 1, "--tls-certificate", public, "--tls-key", private,
                     "--url", f"https://localhost:{port}", listen=f"0.0.0.0:{port}",
                     trust=ssl.create_default_context(cafile=str(bundle)))
    try:
        assert shim.url == f"https://localhost:{port}/mcp"
        Later(house, "approved")

        async def trade():
            async with client(shim.transport(), era, Person(True)) as connected:
                return await connected.call_tool("execute_trade", TRADE)

        done = run(trade())
        assert not done.is_error, text_of(done)
        for headers, status in [({}, 200), ({"authorization": "Bearer x"}, 401), ({"host": "127.0.0.1"}, 421),
                                ({"host": f"evil.example:{port}"}, 421), ({"origin": f"http://localhost:{port}"}, 403)]:
            connection = http.client.HTTPSConnection("localhost", port, context=shim.trust, timeout=20)
            sent = {"authorization": f"Bearer {shim.secret}", "content-type": "application/json",
                    "accept": "application/json, text/event-stream"} | headers
            connection.request("POST", "/mcp", json.dumps(LIST), sent)
            assert connection.getresponse().status == status, headers
        plain = http.client.HTTPConnection("localhost", port, timeout=20)
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.request("POST", "/mcp", json.dumps(LIST), {"authorization": f"Bearer {shim.secret}"})
            plain.getresponse()
    finally:
        shim.kill()
        house.kill()


# D-34
def test_off_loopback_nothing_less_will_do(house, tmp_path, files):
    _, public, private = files
    exposed = tmp_path / "exposed.key"
    exposed.write_bytes(private.read_bytes())
    exposed.chmod(0o644)
    pair, url = ("--tls-certificate", public, "--tls-key", private), ("--url", "https://shim.example")
    for flags in [(), url, pair, (*pair, "--url", "http://shim.example"), ("--tls-certificate", public, *url),
                  ("--tls-key", private, *url), ("--tls-certificate", public, "--tls-key", exposed, *url),
                  ("--tls-certificate", private, "--tls-key", private, *url),
                  (*pair, "--url", "https://shim.example/mcp")]:
        done = subprocess.run([binary(), "shim", house.resource, "--listen", "0.0.0.0:0", *map(str, flags)], cwd=tmp_path,
                              text=True, env=environment(tmp_path), capture_output=True, timeout=20)
        assert done.returncode == 2 and done.stdout == "", (flags, done)
    assert not (tmp_path / "agent").exists()


def test_what_is_no_message_goes_no_further(listening):
    for status, body in [(400, "{"), (400, "[]"), (400, json.dumps([LIST])), (400, '{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}'),
                         (400, '{"jsonrpc":"2.0","id":1,"Method":"x","method":"tools/list"}'), (413, "x" * (4 << 20) + "xx")]:
        got, answer = post(listening, body=body)
        assert got == status, (body[:50], got, answer)
    assert post(listening, body="{}", **{"content-encoding": "gzip"})[0] == 415


def talk(house, folder, *lines):
    """What a shim on a pipe says to these lines."""
    folder.mkdir(exist_ok=True)
    text = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    done = subprocess.run([binary(), "shim", house.resource], cwd=folder, env=environment(folder), input=text,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_on_a_pipe_every_line_is_answered_and_none_ends_it(house, tmp_path):
    long = b'{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"x":"' + b"x" * (4 << 20) + b'"}}\n'
    said = talk(house, tmp_path / "agent", b"{\n", b"\xff\xfe\n", b"\n", long, [LIST], HELLO,
                {"jsonrpc": "2.0", "method": "notifications/initialized"}, LIST)
    errors = [message["error"]["code"] for message in said if "error" in message]
    assert errors == [-32700, -32700, -32600, -32600], said
    answers = {message["id"]: message["result"] for message in said if "result" in message}
    assert answers[0]["protocolVersion"] == "2025-11-25"
    assert len(answers) == 1 or answers[1]["tools"]


def test_what_it_writes_down_names_no_secret(house, listening):
    async def session():
        async with client(listening.transport(), "auto", Person(True)) as connected:
            return await connected.call_tool("execute_trade", TRADE | {"symbol": "CANARY"})

    run(session())
    logged = listening.logged()
    for secret in ("CANARY", listening.secret, "say1.", "tkt1.", "eyJ"):
        assert secret not in logged, secret

"""`sayso up` in front of servers that have never heard of it, from npm and in Python, over stdio and HTTP: what each
offers is governed at once, nothing runs unasked, and clients that know nothing of this list the tools as before."""

import json

import pytest

from stock import SERVERS, STOCK, Front, line, package


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.name)
def fronted(request, tmp_path_factory):
    """A server with its owner before it."""
    folder = tmp_path_factory.mktemp(request.param.name)
    files = folder / "files"
    files.mkdir()
    with request.param.served(files) as flags, Front.running(folder, *flags) as front:
        yield front, request.param, files


def filled(arguments, files):
    return {name: value.format(folder=files) if isinstance(value, str) else value for name, value in arguments.items()}


def test_what_it_offers_is_governed(fronted):
    """D-29: every tool of the listing is registered under the server's own name, each in a unit of its own."""
    front, server, _ = fronted
    listed = front.tools()
    assert server.offers <= set(listed)
    governed = {entry["_id"]: entry["unit"] for entry in front.owner.read("/resources")}
    assert set(governed) == {f"{server.realm}/{tool}" for tool in listed}
    assert len(set(governed.values())) == len(listed) and None not in governed.values()


@pytest.mark.parametrize("client", STOCK)
def test_a_stock_client_lists_without_credentials(fronted, client):
    front, server, _ = fronted
    assert server.offers <= set(STOCK[client](front.resource))


def test_a_call_waits_for_her_and_goes_through(fronted):
    front, server, files = fronted
    tool, arguments, answer = server.ask
    arguments = filled(arguments, files)
    waiting = front.call(tool, arguments)
    assert waiting.returncode == 5 and waiting.stdout == "", waiting
    (family,) = front.owner.pending()
    shown = front.say("show", family)
    assert f"{server.realm}/{tool}" in shown.stdout or tool in shown.stdout, shown
    front.answer("approve")
    done = front.call(tool, arguments, wait=20)
    assert done.returncode == 0, done
    assert answer in done.stdout
    assert "touched" in front.owner.kinds(family)


def test_a_call_she_denies_is_denied(fronted):
    front, server, files = fronted
    tool, arguments = server.deny
    arguments = filled(arguments, files)
    assert front.call(tool, arguments, home="stranger").returncode == 5
    front.answer("deny")
    denied = front.call(tool, arguments, wait=20, home="stranger")
    assert (denied.returncode, denied.stdout) == (4, ""), denied


def test_the_environment_of_a_child_is_its_own(tmp_path):
    """D-31: four variables and those that were named; nothing of the program's, of its owner's, or of whoever started
    it."""
    everything = line("node", package("server-everything"), "stdio")
    flags = ("--upstream-stdio", everything, "--upstream-env", "SHOWN")
    with Front.running(tmp_path / "up", *flags, SHOWN="to be seen", SECRET="not to be seen",
                       SAYSO_LOG="warn,sayso=info") as front:
        printed = json.loads(front.obtain("get-env"))
        shown = json.loads(printed["content"][0]["text"]) if "content" in printed else printed
        assert shown.pop("SHOWN") == "to be seen"
        assert set(shown) <= {"PATH", "HOME", "LANG", "TERM"}, shown
        assert str(front.data) not in json.dumps(shown | {"HOME": ""})

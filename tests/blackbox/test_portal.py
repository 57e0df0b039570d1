"""Her page in a real browser: signing in by link, seeing what waits with its exact arguments, answering it, and what
strangers cannot do with it. Answers are checked from the agent's side and in her record."""

import http.server
import json
import re
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest

from cast import TRADE, binary, environment, holding, result
from chromium import Chromium
from wire import send

HOSTILE = [
    "<script>alert(1)</script>", "\"><img src=//evil.localhost/x onerror=alert(1)>", "</textarea><svg/onload=alert(1)>",
    "<style>*{display:none}</style>", "<meta http-equiv=refresh content=0;url=//evil.localhost>", "<!--",
    "<base href=//evil.localhost>", "javascript:alert(1)", "pay\u202e001\u200b\u0007", "{{7*7}}",
]


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    screen = Chromium(tmp_path_factory.mktemp("browser"))
    yield screen
    screen.close()


@pytest.fixture
def signed_in(house, screen):
    """The browser, on her page."""
    screen.go(link_of(house))
    screen.press("Sign in")
    titled(screen, "Your page")
    return screen


def titled(screen, words):
    """Waits for the page of this title."""
    screen.until(lambda: words in screen.title, words)


def link_of(house):
    response = house.owner.request("POST", "/sign-in-links", {})
    assert response.status == 201, response
    answer = response.json()
    assert answer["expires_in"] == 300
    return answer["url"]


def asks(house, agent, arguments=TRADE, reason="r"):
    """A trade that waits for her."""
    negotiation = agent.negotiate(house.resource, "execute_trade", arguments)
    negotiation.pending(negotiation.commit(negotiation.claims() | {"reason": reason}))
    return negotiation


def card(screen, family):
    return screen.one(f"article[id='r-{family}']")


def base_of(screen):
    return re.match(r"http://localhost:\d+/s/[\w-]{22}", screen.url)[0]


def test_from_the_ready_line_to_an_approved_call(house, screen, agent, tmp_path):  # OWN-06, OWN-07, CORE-39
    link = house.ready["portal"]
    assert link.startswith(f"http://localhost:{urlsplit(house.authority).port}/s/")
    negotiation = asks(house, agent, reason="the user asked for it")
    screen.phone()
    for _ in range(2):  # Looking at a link spends nothing.
        screen.go(link)
        assert "Sign in" in screen.title
    screen.press("Sign in")
    titled(screen, "Your page")
    assert "(1)" in screen.title and link not in screen.run("return document.documentElement.outerHTML")

    shown = screen.text(card(screen, negotiation.family))
    for part in ("execute_trade", 'symbol "VTI"', 'side "buy"', "quantity 3", agent.handle, "nobody checked",
                 "the user asked for it", "one call with exactly these arguments, once", "lets this agent in"):
        assert part in shown, (part, shown)
    assert shown.index("quantity 3") < shown.index("the user asked for it")
    wide = screen.run("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{wide} pixels to scroll sideways"
    small = screen.run("return [...document.querySelectorAll('button')].filter(b => b.getBoundingClientRect().height < 40)"
                       ".length")
    assert small == 0, "a button is too small for a finger"
    screen.picture(tmp_path / "phone.png", whole=True)
    screen.phone(dark=True)
    screen.picture(tmp_path / "phone-dark.png", whole=True)

    screen.press("Approve", card(screen, negotiation.family))
    screen.until(lambda: not screen.find("article"), "an empty queue")
    grant = negotiation.grant(negotiation.poll())
    spent = result(agent.call(house.resource, "execute_trade", TRADE, token=grant.token))
    assert spent
    screen.go(base_of(screen) + "/")
    record = screen.text(screen.one("#record"))
    assert "signed in" in record and "approved execute_trade" in record and "by you, on this page" in record
    assert agent.handle in screen.text(screen.one("#agents"))
    things = screen.text(screen.one("#things"))
    assert "execute_trade" in things and "asks you about every single call" in things
    (row,) = [row for row in house.owner.ledger() if row["kind"] == "approved" and row["family"] == negotiation.family]
    assert set(row["author"]) == {"browser"}
    # The link is spent, for whoever reads it in a log or a history.
    screen.go(link)
    screen.press("Sign in")
    titled(screen, "opens nothing")


def test_she_denies_and_ends(house, signed_in, agent):  # OWN-08, OWN-11
    agent.obtain(house.resource, "get_positions", owner=house.owner)
    negotiation = asks(house, agent)
    signed_in.go(signed_in.url)
    assert "Agents you let in" in signed_in.text()
    waiting = base_of(signed_in) + "/waiting/" + negotiation.family
    signed_in.go(waiting)
    house.owner.decide(negotiation.family, "denied")
    signed_in.press("Approve")
    titled(signed_in, "was answered")
    assert negotiation.poll().json()["error"] == "request_denied"

    signed_in.go(base_of(signed_in) + "/")
    (row,) = [row for row in signed_in.find("#agents li") if agent.handle in signed_in.text(row)]
    signed_in.click(signed_in.one("summary", row))
    signed_in.press("End this agent", row)
    signed_in.until(lambda: house.owner.connections()[agent.handle]["status"] == "revoked", "the end")
    signed_in.press("Sign out")
    titled(signed_in, "signed out")
    signed_in.go(base_of(signed_in) + "/")
    assert "not signed in" in signed_in.title


def test_words_of_strangers_are_text(house, signed_in, agent):  # OWN-06, TERMS-15
    for hostile in HOSTILE:
        arguments = TRADE | {"note": hostile, hostile: hostile}
        negotiation = asks(house, agent, arguments, reason=hostile)
        signed_in.go(base_of(signed_in) + "/waiting/" + negotiation.family)
        assert signed_in.dialog() is None
        foreign = signed_in.run("return document.querySelectorAll('script,img,svg,iframe,style,base,meta[http-equiv],textarea')"
                                ".length")
        assert foreign == 0, hostile
        shown = signed_in.text()
        for hidden, mark in (("\u202e", "U+202E"), ("\u200b", "U+200B"), ("\u0007", "U+0007")):
            assert hidden not in shown
            hostile = hostile.replace(hidden, mark)
        assert hostile in shown, (hostile, shown)
        house.owner.decide(negotiation.family, "denied")
    loaded = signed_in.run("return performance.getEntriesByType('resource').map(one => new URL(one.name).host)")
    assert set(loaded) <= {urlsplit(signed_in.url).netloc}
    assert not [line for line in signed_in.console() if "evil" in line]


class Neighbour(http.server.BaseHTTPRequestHandler):
    """A server on another port of the same name: it keeps every header it is sent and serves the page it was given."""

    page, seen = "", []

    def do_GET(self):
        type(self).seen.append(dict(self.headers))
        body = self.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", f"sayso={'A' * 43}; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_neighbour_on_another_port_can_do_nothing(house, signed_in, agent):
    """Cookies do not tell ports apart. Even a neighbour that knew her forms would only send them from elsewhere, and what
    her browser sends it holds no session."""
    negotiation = asks(house, agent)
    base = base_of(signed_in)
    signed_in.go(base + "/waiting/" + negotiation.family)
    inputs = signed_in.run("const form = document.querySelector('.answers form'); return [form.action, "
                           "...[...form.querySelectorAll('input')].map(one => [one.name, one.value])]")
    action, members = inputs[0], dict(inputs[1:])
    assert members["answer"] == "approved"
    fields = "".join(f"<input name='{name}' value='{value}'>" for name, value in members.items())
    Neighbour.page = f"<title>n</title><form method=post action='{action}'>{fields}</form>"
    Neighbour.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Neighbour)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        before = house.owner.ledger()
        signed_in.go(f"http://localhost:{server.server_port}/")
        signed_in.run("document.forms[0].submit()")
        titled(signed_in, "came from elsewhere")
        signed_in.go(f"http://localhost:{server.server_port}/again")
        frame = f"<title>n</title><iframe src='{base}/'></iframe>"
        Neighbour.page = frame
        signed_in.go(f"http://localhost:{server.server_port}/frame")
        assert signed_in.run("try { return document.querySelector('iframe').contentDocument === null } catch { return true }")
    finally:
        server.shutdown()
        server.server_close()
    cookies = [headers.get("Cookie", "") for headers in Neighbour.seen]
    assert all(set(cookie.split("; ")) <= {"", "sayso=" + "A" * 43} for cookie in cookies), cookies
    assert house.owner.ledger() == before and negotiation.family in house.owner.pending()
    # The cookie the neighbour planted does not keep her out, and opens nothing.
    signed_in.go(base + "/")
    assert "Your page" in signed_in.title
    house.owner.decide(negotiation.family, "denied")


def test_owner_open(house, screen, tmp_path):
    """A browser is started on a file, never on a link; the file signs her in and is gone."""
    log = tmp_path / "started"
    starter = tmp_path / "starter"
    starter.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {log}.part\nstat -c %a \"$1\" >> {log}.part\nmv {log}.part {log}\n")
    starter.chmod(0o700)
    opening = subprocess.Popen([binary(), "owner", "open", "--data", house.data], text=True, stdout=subprocess.PIPE,
                               env=environment(tmp_path) | {"BROWSER": str(starter), "TMPDIR": str(tmp_path)})
    screen.until(log.exists, "the browser's start")
    file, mode = log.read_text().split()
    assert mode == "600" and "http" not in file
    screen.go("file://" + file)
    titled(screen, "Your page")
    out, _ = opening.communicate(timeout=20)
    assert opening.returncode == 0 and "open" in out
    assert not (tmp_path / file).exists()
    assert house.owner.ledger()[-1]["kind"] == "connected"


def test_owner_open_without_a_browser(house, tmp_path):
    alone = {name: value for name, value in environment(tmp_path).items()
             if name not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")}
    told = subprocess.run([binary(), "owner", "open", "--data", house.data], env=alone, text=True, capture_output=True,
                          timeout=20)
    assert told.returncode == 0 and "open this in a browser" in told.stdout, told
    asked = subprocess.run([binary(), "owner", "open", "--json", "--data", house.data], env=alone, text=True,
                           capture_output=True, timeout=20)
    answer = json.loads(asked.stdout)
    assert set(answer) == {"url", "expires_in"}
    parts = urlsplit(answer["url"])
    assert send("GET", answer["url"].replace("localhost", "127.0.0.1"), [], None).status == 404, "the API's name"
    assert parts.hostname == "localhost"


def test_owner_watch(house, agent, tmp_path):  # OWN-25
    watching = subprocess.Popen([binary(), "owner", "watch", "--data", house.data], text=True, stdout=subprocess.PIPE,
                                env=environment(tmp_path))
    try:
        time.sleep(1)
        negotiation = asks(house, agent, reason="\x1b[2J a secret reason")
        house.owner.decide(negotiation.family, "denied")
        for what in ("waits for you", "denied"):
            line = watching.stdout.readline()
            assert re.fullmatch(rf"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ  {what}  {negotiation.family}\n", line), line
    finally:
        watching.terminate()
        watching.wait(10)
        watching.stdout.close()

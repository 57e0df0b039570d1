"""The log of a whole story at its most talkative: every event of design 4.6 with its negotiation, the caller's trace,
and nothing that opens anything or that somebody said in confidence."""

import json
import secrets
from urllib.parse import urlsplit

import pytest

from canary import Canary
from cast import TRADE, House, result
from parties import FORM, Agent
from town import Town
from wire import b64, send

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = ("Traceparent", f"00-{TRACE}-b7ad6b7169203331-01")


class Talkative(House):
    variables = {"SAYSO_LOG": "trace"}


class Story:
    """What happened in one house, and every secret of it."""

    def __init__(self, house):
        self.house, self.agent, self.stranger = house, Agent(), Agent()
        self.word = "zq" + secrets.token_hex(6)
        self.secrets = {self.word}
        self._sign_in()
        self.read, self.trade, self.denied = self._read(), self._trade(), self._denied()
        self._refusals()
        self.ended = house.owner.revoke(self.agent.handle)
        self.events = [json.loads(line) for line in house.logged().splitlines()]

    def _sign_in(self):
        """By the link of the ready line and by one she asked for; the cookie opens her page as well."""
        for link in (self.house.ready["portal"], self.house.owner.request("POST", "/sign-in-links", {}).json()["url"]):
            door, _, word = link.rpartition("/")
            page, redeemed = send("GET", link), send("POST", door, [FORM], f"link={word}".encode())
            assert (page.status, redeemed.status) == (200, 303), (page, redeemed)
            (cookie,) = redeemed.all("set-cookie")
            self.secrets |= {part for part in urlsplit(link).path.split("/") if len(part) > 20}
            self.secrets |= {cookie.split(";")[0].split("=", 1)[1]}

    def _keep(self, negotiation, *more):
        self.secrets |= {*negotiation.tickets, negotiation.agreement, negotiation.template["nonce"], *more}
        return negotiation

    def _granted(self, tool, arguments):
        house, agent = self.house, self.agent
        negotiation = agent.negotiate(house.resource, tool, arguments)
        negotiation.pending(negotiation.commit(negotiation.claims() | {"reason": f"because {self.word}"}))
        assert self.word in str(house.owner.pending())
        house.owner.decide(negotiation.family, "approved")
        grant = negotiation.grant(negotiation.poll())
        self._keep(negotiation, grant.token, grant.receipt, grant.token.split(".")[2])
        result(agent.call(house.resource, tool, arguments, token=grant.token, extra=[TRACEPARENT]))
        return grant

    def _read(self):
        return self._granted("get_positions", {})

    def _trade(self):
        grant = self._granted("execute_trade", TRADE)
        again = self.agent.call(self.house.resource, "execute_trade", TRADE, token=grant.token)
        assert again.status == 403
        return grant

    def _denied(self):
        arguments = {"account": self.word}
        negotiation = self.agent.negotiate(self.house.resource, "get_transactions", arguments)
        negotiation.pending(negotiation.commit())
        self.house.owner.decide(negotiation.family, "denied")
        assert negotiation.poll().status == 403
        return self._keep(negotiation)

    def _refusals(self):
        """Strangers say what they like, in every place there is."""
        resource, stranger, word = self.house.resource, self.stranger, self.word
        stranger.call(resource, word, {word: word})
        stranger.call(resource, "get_positions", {"x": word}, token=self.read.token)
        stranger.call(resource, "get_positions", token=word)
        stranger.call(resource, "get_positions", scheme="Bearer", token=word)
        stranger.request(resource, word)
        stranger.request(resource, "tools/call", body=f'{{"{word}"'.encode())
        stranger.call(resource, "get_positions", extra=[("Traceparent", word), ("Cookie", word), ("X-Any", word)])
        self.stranger.negotiate(resource, "get_positions").present(decline="true")
        server = self.house.resource_server()
        self.secrets |= {server.pat}
        server.introspect(word)
        server.consume(word, attempt=word)
        server.report({"family": self.read.family, "tool": "get_positions", "summary": word})
        self.house.owner.request("GET", f"/ledger?handle={word}")
        self.house.owner.request("POST", f"/pending/{word}/decision", {"decision": word})

    def of(self, family):
        return [event["message"] for event in self.events if event.get("family") == family]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    house = Talkative(tmp_path_factory.mktemp("talkative"))
    yield Story(house)
    house.stop()


def test_every_event_names_its_negotiation(story):
    beats = ["permission.registered", "challenge.issued", "need_info.terms_dictated", "contract.committed",
             "owner.notified", "owner.decision"]
    shown = "access.denied"  # By somebody without its key.
    assert story.of(story.read.family) == [*beats, "connection.approved", "rpt.issued", "access.allowed", shown]
    assert story.of(story.trade.family) == [*beats, "rpt.issued", "rpt.consumed", "access.allowed"]
    assert story.of(story.denied.family) == beats
    named = {"permission.registered", "challenge.issued", "need_info.terms_dictated", "contract.committed",
             "owner.notified", "owner.decision", "connection.approved", "rpt.issued", "rpt.consumed", "access.allowed"}
    for event in story.events:
        assert event["message"] not in named or event.get("family"), event
    assert [event for event in story.events if event["message"] == "access.denied" and "family" not in event]
    assert [event for event in story.events if event["message"] == "connection.revoked"]


def test_the_callers_trace_is_followed(story):
    """Where it is well formed, and only there."""
    traced = [(event["message"], event["family"]) for event in story.events if event.get("trace_id") == TRACE]
    assert traced == [("access.allowed", story.read.family), ("access.allowed", story.trade.family)]
    assert {event["trace_id"] for event in story.events if "trace_id" in event} == {TRACE}


def test_no_line_tells_a_secret(story):
    """No ticket, token, protection token, agreement, receipt, nonce, key or sign-in link, no argument, no reason and no
    word a stranger chose, in no library's voice either."""
    log = story.house.logged()
    keys = [(story.house.data / "keys" / name).read_text().splitlines()[1]
            for name in ("gateway.pem", "owner-alice.pem")]
    values = {json.dumps(argument) for argument in TRADE.values() if isinstance(argument, str)}
    for secret in {*story.secrets, *values, *keys, b64(json.dumps(TRADE).encode()), "sig1=", "PoP ", "Bearer ey"}:
        assert secret not in log, next(line for line in log.splitlines() if secret in line)
    assert story.agent.handle not in log and story.agent.key.thumbprint not in log


def test_a_trace_reaches_the_server_behind(tmp_path):
    """W3C trace context goes in at one end and out at the other; what else the caller sent does not."""
    town, agent = Town(tmp_path), Agent()
    assert isinstance(town.canary, Canary)
    try:
        town.start()
        agent.request(town.resource, "tools/list", extra=[TRACEPARENT, ("Tracestate", "vendor=secret")])
        sent = {name.lower(): value for name, value in town.canary.heads[-1]}
        assert sent["traceparent"] == TRACEPARENT[1]
        assert "tracestate" not in sent
        challenge = agent.call(town.resource, "get_positions", extra=[TRACEPARENT])
        assert challenge.status == 401
        issued = [json.loads(line) for line in town.gateway.logged().splitlines() if "challenge.issued" in line]
        registered = [json.loads(line) for line in town.authority.logged().splitlines() if "permission.reg" in line]
        assert issued[-1]["trace_id"] == TRACE
        assert issued[-1]["family"] == registered[-1]["family"]
    finally:
        town.close()

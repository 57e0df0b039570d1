"""What happens reaches her as it happens, survives a broken connection, and tells nothing an agent wrote."""

import http.client
import json
import time
from urllib.parse import urlsplit

from wire import sign


class Listener:
    """One event stream, read line by line."""

    def __init__(self, owner, last=None):
        url = owner.endpoint + "/events"
        parts = urlsplit(url)
        headers = sign(owner.key, "GET", url, [], None)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        extra = {} if last is None else {"Last-Event-ID": last}
        self.connection.request("GET", parts.path, headers=dict(headers) | extra)
        self.response = self.connection.getresponse()

    def next(self):
        event = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if not line and "data" in event:
                return event["event"], event["id"], json.loads(event["data"])
            name, _, value = line.partition(":")
            if name:
                event[name] = value.strip()

    def close(self):
        self.connection.close()


def test_her_events(house, agent):  # OWN-25
    events = Listener(house.owner)
    assert events.response.status == 200
    assert events.response.getheader("content-type") == "text/event-stream"
    negotiation = agent.negotiate(house.resource, "get_positions")
    began = time.monotonic()
    negotiation.pending(negotiation.commit(negotiation.claims() | {"reason": "a secret reason"}))
    kind, first, data = events.next()
    assert time.monotonic() - began < 2
    assert (kind, data["family"]) == ("pending", negotiation.family)
    assert "secret" not in json.dumps(data)
    house.owner.decide(negotiation.family, "denied")
    kind, _, data = events.next()
    assert (kind, data["what"], data["family"]) == ("decided", "denied", negotiation.family)
    events.close()
    # A stream that broke goes on after the last event that was seen.
    again = Listener(house.owner, last=first)
    kind, _, data = again.next()
    assert (kind, data["family"]) == ("decided", negotiation.family)
    again.close()


def test_only_hers(house):  # OWN-02
    url = house.owner.endpoint + "/events"
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request("GET", parts.path)
    assert connection.getresponse().status == 401
    assert Listener(house.owner, last="x").response.status == 400

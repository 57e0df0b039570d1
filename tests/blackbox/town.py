"""Authority and gateway as processes of their own, with nothing between them but HTTP, and an upstream that counts.
The owner says her policy herself, through her API, as she would have to anywhere but in the demo."""

import json
import os
import random
import shutil
import socket
import time
from contextlib import contextmanager

from canary import Canary
from cast import REALM, SCOPES, Process
from parties import Owner, ResourceServer, metadata_of
from valve import Valve
from wire import Key, send

PATIENCE = 20
_taken = set()


def free_port():
    """Below the range the system gives to outgoing connections, so that nobody takes it between two starts; of those,
    the ones of this process where several run tests at once."""
    nth = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8
    while True:
        port = random.randrange(20000 + 1250 * nth, 20000 + 1250 * (nth + 1))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _taken:
            _taken.add(port)
            return port


def toml(settings, tables=()):
    """Settings are dotted names; tables are (name, members) pairs, written in order. JSON's scalars and lists of them
    are TOML's."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items() if value is not None]
    for name, members in tables:
        lines.append(f"[[{name}]]")
        lines += [f"{member} = {json.dumps(value)}" for member, value in members.items()]
    return "\n".join(lines) + "\n"


def unit(name, tool, *, ask_me=False, per_operation=False, expires_in=86400, prohibited=("marketing",), purpose=None):
    """A unit as she posts it."""
    terms = {"purpose": purpose or f"use of {tool}", "scope": [SCOPES[tool]], "expires_in": expires_in,
             "prohibited": list(prohibited), "per_operation": per_operation}
    return {"id": name, "name": name.title(), "resources": [f"{REALM}/{tool}"], "ask_me": ask_me, "rules": [],
            "terms": terms}


UNITS = [
    unit("holdings", "get_positions", expires_in=172800),
    unit("transactions", "get_transactions", ask_me=True),
    unit("trading", "execute_trade", ask_me=True, per_operation=True, expires_in=900),
]


class Role(Process):
    """One role over its own data folder and configuration file."""

    def __init__(self, kind, folder, settings, tables):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, folder / "stderr.log")
        self.kind, self.data, self.file = kind, folder / "data", folder / "sayso.toml"
        self.write({"data": str(self.data)} | settings, tables)

    def write(self, settings, tables):
        self.settings, self.tables = settings, tables
        self.file.write_text(toml(settings, tables))

    def start(self):
        self.launch(self.kind, "--config", self.file, "--json")

    def restart(self):
        """kill -9 and back."""
        self.kill()
        self.start()

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()


class Town:
    """An authority, or several on one store, and a gateway in front of a canary. Nothing runs until it is started."""

    def __init__(self, folder, *, edition="2026-09-11", replicas=1, valve=False, settings=None):
        self.folder, self.canary = folder, Canary()
        self.canary.tools = SCOPES
        self.valve = Valve() if valve else None
        listens = [f"127.0.0.1:{free_port()}" for _ in range(replicas)]
        published = self.valve.address if valve else listens[0]
        if valve:
            self.valve.backend = listens[0]
        self.issuer, self.url = f"http://{published}", f"http://127.0.0.1:{free_port()}"
        self.resource = f"{self.url}/mcp"
        self.listens = listens
        self.authorities = [self._authority(n, listen, edition, settings or {}) for n, listen in enumerate(listens)]
        self.gateway = Role("gateway", folder / "gateway", {
            "edition": edition, "gateway.listen": self.url.removeprefix("http://"),
        }, self.resource_tables())

    def _authority(self, n, listen, edition, settings):
        return Role("authority", self.folder / f"authority-{n}", {
            "edition": edition, "authority.listen": listen, "authority.public_url": self.issuer,
            "authority.interval": 1, "store.url": f"sqlite:{self.folder / 'sayso.db'}",
        } | settings, [
            ("owner", {"name": "alice"}),
            ("resource_server", {"client_id": self.url, "owner": "alice", "resource_uri": self.resource}),
        ])

    def resource_tables(self):
        resource = {"path": "/mcp", "owner": "alice", "authority": self.issuer, "realm": REALM,
                    "upstream": self.canary.url, "single_use": ["execute_trade"]}
        tools = [("resource.tools", {"name": tool, "scopes": [scope]}) for tool, scope in SCOPES.items()]
        return [("resource", resource), *tools]

    @property
    def authority(self):
        return self.authorities[0]

    @classmethod
    @contextmanager
    def running(cls, folder, units=UNITS, **options):
        """One that runs, and whose processes end also when it does not come to that."""
        town = cls(folder, **options)
        try:
            yield town.start(units)
        finally:
            town.close()

    def start(self, units=UNITS):
        """Gateway first: then the authority's first pull finds it."""
        self.gateway.start()
        self.authority.start()
        for replica in self.authorities[1:]:
            replica.data.mkdir(mode=0o700)
            shutil.copytree(self.authority.data / "keys", replica.data / "keys")
            replica.start()
        self.settle(units)
        return self

    def settle(self, units=UNITS):
        self.metadata = metadata_of(self.issuer)
        self.owner = Owner(self.issuer, Key.from_pem(self.authority.ready["owner_key"]))
        self.await_registry()
        for one in units:
            response = self.owner.request("POST", "/policies", one)
            assert response.status == 201, response

    def await_registry(self):
        """Until the authority knows what the gateway lists."""
        deadline = time.monotonic() + PATIENCE
        while len(self.owner.read("/resources")) < len(SCOPES):
            assert time.monotonic() < deadline, "the authority never read the gateway's listing"
            time.sleep(0.05)

    def resource_server(self):
        return ResourceServer(self.issuer, self.url, Key.from_pem(self.gateway.data / "keys/gateway.pem"))

    def close(self):
        for role in (*self.authorities, self.gateway):
            role.end()
        self.canary.stop()
        if self.valve:
            self.valve.close()


def healthy(listen, issuer):
    """Whether whoever listens there serves this issuer."""
    try:
        host = issuer.removeprefix("http://")
        return send("GET", f"http://{listen}/health", [("Host", host)]).status == 200
    except OSError:
        return False

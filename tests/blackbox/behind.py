"""Starts a gateway before the server a client was to meet, and the client before that: `behind.py CLIENT... URL`. It is the
command the conformance suite runs where a client is to be seen through a gateway."""

import subprocess
import sys
import tempfile
from pathlib import Path

from suite import gateway

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder) / "gateway", sys.argv[-1], enforce=[]) as url:
        sys.exit(subprocess.run([*sys.argv[1:-1], url], stdin=subprocess.DEVNULL).returncode)

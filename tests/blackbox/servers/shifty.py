"""An MCP server of the standard library alone whose tools are what a file says, always anew: `shifty.py FILE` over
stdio, which tells its client when the file changes, or `shifty.py FILE PORT` over HTTP, which does not. It speaks
2025-11-25 without sessions, and appends the name of every tool it ran to FILE.ran. With DEMANDED in its environment it
answers nobody over HTTP who does not bear that token; it calls itself NAMED, and says its first word after SLOW seconds."""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILE = Path(sys.argv[1])
RAN = FILE.with_name(FILE.name + ".ran")


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                  "serverInfo": {"name": os.environ.get("NAMED", "shifty"), "version": "1"}}
    elif method == "tools/list":
        result = {"tools": json.loads(FILE.read_text())}
    elif method == "tools/call":
        with RAN.open("a") as ran:
            ran.write(params["name"] + "\n")
        result = {"content": [{"type": "text", "text": f"ran {params['name']}"}]}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "no such method"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        demanded = os.environ.get("DEMANDED")
        if demanded and self.headers["Authorization"] != f"Bearer {demanded}":
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = json.dumps(answer(message)).encode() if "id" in message else b""
        self.send_response(200 if body else 202)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tell_of_changes():
    before = FILE.read_bytes()
    while True:
        time.sleep(0.05)
        now = FILE.read_bytes()
        if now != before:
            before = now
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


time.sleep(float(os.environ.get("SLOW", 0)))
if len(sys.argv) > 2:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
else:
    threading.Thread(target=tell_of_changes, daemon=True).start()
    for line in sys.stdin:
        said = json.loads(line)
        if "id" in said and "method" in said:
            say(answer(said))

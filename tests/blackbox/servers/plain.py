"""A small MCP server of the older revisions, over stdio or, with a port, over HTTP with a session each. It starts at once
and needs nothing but Python, so that there can be many of it."""

import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [{"name": "look_up", "inputSchema": {"type": "object"},
          "annotations": {"readOnlyHint": True, "openWorldHint": False}}]


def answer(message):
    if "id" not in message or "method" not in message:
        return None
    results = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                              "serverInfo": {"name": "plain", "version": "1"}},
               "tools/list": {"tools": TOOLS}, "tools/call": {"content": []}, "ping": {}}
    told = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in results:
        return told | {"result": results[message["method"]]}
    return told | {"error": {"code": -32601, "message": "no such method"}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        told = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = b"" if told is None else json.dumps(told).encode()
        self.send_response(202 if told is None else 200)
        if told and "protocolVersion" in told.get("result", {}):
            self.send_header("Mcp-Session-Id", secrets.token_hex(16))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_DELETE(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    if len(sys.argv) > 1:
        ThreadingHTTPServer.request_queue_size = 128
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    for line in sys.stdin:
        told = answer(json.loads(line))
        if told is not None:
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

"""An MCP server without authorization that keeps every byte it was sent: what runs twice, or runs without a permit,
shows here. It can be told to hold its answers, and to be gone for a while."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 15


class Canary:
    """The upstream at one port, over every stop and start."""

    def __init__(self, port=0, handler=None):
        self.port, self.bodies, self.heads, self.tools = port, [], [], {}
        self.handler = handler or Handler
        self._held, self._lock = None, threading.Lock()
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self):
        handler = type("Handler", (self.handler,), {"canary": self})
        self.server = _Server(("127.0.0.1", self.port), handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """No new connection is accepted, and those that are open end."""
        self.server.shutdown()
        self.server.server_close()
        self.server.cut()

    def hold(self):
        """The next call is taken, counted, and not answered until it is released."""
        self._held = Held()
        return self._held

    def calls(self, tool=None):
        """How many tools/call requests arrived, of one tool or in all."""
        sent = [json.loads(body) for body in list(self.bodies)]
        named = [message["params"]["name"] for message in sent if message["method"] == "tools/call"]
        return len([name for name in named if tool in (None, name)])

    def take(self, head, body):
        with self._lock:
            self.heads.append(head)
            self.bodies.append(body)
            held, self._held = self._held, None
        if held:
            held.stop_here()
        message = json.loads(body)
        return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": self._result(message)}).encode()

    def _result(self, message):
        if message["method"] == "tools/call":
            return {"content": [{"type": "text", "text": "done"}],
                    "structuredContent": {"tool": message["params"]["name"], "taken": len(self.bodies)}}
        if message["method"] == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]}
        return {}


class Held:
    """Something stopped on its way."""

    def __init__(self):
        self._arrived, self._released, self._cut = threading.Event(), threading.Event(), False

    def wait(self):
        assert self._arrived.wait(PATIENCE), "nothing came to the place where it was to be held"
        return self

    def release(self):
        self._released.set()

    def cut(self):
        """Goes no further."""
        self._cut = True
        self._released.set()

    def stop_here(self):
        """Called on the way; false when it goes no further."""
        self._arrived.set()
        self._released.wait(60)
        return not self._cut


class _Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def __init__(self, *arguments):
        self._open = set()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        pass  # A peer that was killed is what these tests are about.

    def cut(self):
        for request in list(self._open):
            try:
                request.shutdown(2)
            except OSError:
                pass


class Handler(BaseHTTPRequestHandler):
    """One connection to it."""

    protocol_version, canary = "HTTP/1.1", None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(self.canary.take(list(self.headers.items()), body))

    def answer(self, answer, headers=()):
        """200, with these headers."""
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

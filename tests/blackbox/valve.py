"""A proxy that stands where the authority is published, and can hold one exchange before the authority hears of it
or after it has answered. Bytes pass unchanged. What is behind it may be killed and come back meanwhile."""

import socket
import socketserver
import threading

from canary import Held

PATIENCE = 30


class Valve:
    """Listens at a port of its own and passes everything to `backend`, one connection a request."""

    def __init__(self):
        self.backend, self._holds, self._lock = None, [], threading.Lock()
        handler = type("Handler", (_Handler,), {"valve": self})
        self.server = _Server(("127.0.0.1", 0), handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def hold(self, path, point):
        """Holds the next request to `path`: at "request" before it is passed on, at "answer" before its answer is."""
        assert point in ("request", "answer")
        held = Held()
        with self._lock:
            self._holds.append((path, point, held))
        return held

    def passes(self, path, point):
        with self._lock:
            found = next((hold for hold in self._holds if hold[:2] == (path, point)), None)
            if found:
                self._holds.remove(found)
        return found is None or found[2].stop_here()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

    def handle_error(self, request, client_address):
        pass  # A peer that was killed is what these tests are about.


class _Handler(socketserver.BaseRequestHandler):
    valve = None

    def handle(self):
        while request := read_message(self.request):
            path = request.split(b" ", 2)[1].split(b"?")[0].decode()
            if not self.valve.passes(path, "request"):
                return
            answer = self.exchange(request)
            if not answer or not self.valve.passes(path, "answer"):
                return
            self.request.sendall(answer)

    def exchange(self, request):
        """The answer, or nothing when whoever is behind did not give a whole one."""
        host, port = self.valve.backend.rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as behind:
                behind.sendall(request)
                return read_message(behind, bodiless=request.startswith(b"HEAD "))
        except OSError:
            return b""


def read_message(peer, bodiless=False):
    """One HTTP/1.1 message whose body, if any, has a length; nothing when the peer ends before it is whole."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line.split(b":", 1) for line in head.split(b"\r\n")[1:]]
    lengths = [int(value) for name, value in lines if name.lower() == b"content-length"]
    wanted = lengths[0] if lengths and not bodiless else 0
    while len(body) < wanted:
        piece = peer.recv(65536)
        if not piece:
            return b""
        body += piece
    return head + b"\r\n\r\n" + body

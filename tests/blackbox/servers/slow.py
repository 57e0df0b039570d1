"""The small server with a tool that takes its time: a line in the file named first says that it began."""

import sys
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

import plain

SECONDS = 4


def answer(message, plainly=plain.answer):
    if message.get("method") == "tools/call":
        with Path(sys.argv[1]).open("a") as book:
            book.write("begun\n")
        time.sleep(SECONDS)
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "paid"}]}}
    return plainly(message)


if __name__ == "__main__":
    plain.TOOLS[:] = [{"name": "pay", "inputSchema": {"type": "object"}}]
    plain.answer = answer
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), plain.Handler).serve_forever()

"""An MCP server as a user of the Python `mcp` package writes one: `wordbook.py`, or `wordbook.py PORT` for HTTP."""

import sys

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("Word Book", log_level="WARNING")
WORDS = {"say": "sagen", "so": "so"}


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def look_up(word: str) -> str:
    """What a word means."""
    return WORDS.get(word, "unknown")


@server.tool()
def add_word(word: str, meaning: str) -> str:
    """Puts a word into the book."""
    WORDS[word] = meaning
    return f"{word}: {meaning}, now {len(WORDS)} words"


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()

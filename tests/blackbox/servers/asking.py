"""An MCP server, written with the Python `mcp` package, whose one tool asks before it acts: `asking.py FILE`, over stdio.
It appends what it sent to FILE."""

import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("Asking", log_level="WARNING")
SENT = Path(sys.argv[1])
SURE = ElicitRequest(params=ElicitRequestFormParams(
    message="Really?", requested_schema={"type": "object", "properties": {"really": {"type": "boolean"}}}))


@server.tool()
async def send(to: str, context: Context) -> str | InputRequiredResult:
    """Sends a letter."""
    if context.request_state is None:
        return InputRequiredResult(input_requests={"sure": SURE}, request_state=f"asked about {to}")
    answer = (context.input_responses or {}).get("sure")
    with SENT.open("a") as sent:
        sent.write(f"{to}: {answer.content if answer else None}\n")
    return f"sent to {to}"


server.run()

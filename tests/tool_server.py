"""An MCP server for tests: `python tool_server.py FOLDER [http]`, over its streams or over HTTP.

What its tools do is noted in the folder, so that a test sees which calls were made.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

FOLDER = Path(sys.argv[1])
server = MCPServer("tests")


def noted(what):
    with (FOLDER / "calls.txt").open("a") as file:
        file.write(f"{what}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Add two numbers."""
    noted(f"add {a} {b}")
    return str(a + b)


@server.tool()
def pay(amount: int) -> str:
    """Pay an amount."""
    noted(f"pay {amount}")
    return f"paid {amount}"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(config: str, self_: str = "") -> str:
    """Put a configuration."""
    return f"put {config}"


@server.tool()
def pay_and_die(amount: int) -> str:
    """Pay an amount, and end without an answer."""
    noted(f"pay {amount}")
    os.write(2, b"database file is corrupt\n")
    os._exit(3)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait_reading() -> str:
    """Never answer."""
    await anyio.sleep_forever()
    return ""


@server.tool()
def own_process() -> str:
    """Give the id of the process."""
    return str(os.getpid())


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("the drive is full")


@server.tool()
def megabyte() -> str:
    """Give a megabyte."""
    return "x" * 1_000_000


@server.tool()
def pieces() -> CallToolResult:
    """Give pieces of all kinds."""
    return CallToolResult(
        content=[
            TextContent(text="a text"),
            ImageContent(data="AAAA", mime_type="image/png"),
            ResourceLink(name="report", uri="file:///report.md", description="The report."),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="inside")),
            EmbeddedResource(
                resource=BlobResourceContents(
                    uri="file:///b.bin", blob="AAAA", mime_type="application/x-b"
                )
            ),
        ]
    )


@server.tool()
def lie() -> int:
    """Say that it gives a number."""
    return CallToolResult(
        content=[TextContent(text="no number")], structured_content={"result": "no number"}
    )


@server.tool()
async def grow(ctx: Context) -> str:
    """Have one tool more."""

    def newest() -> str:
        """Be the newest tool."""
        return "new"

    server.add_tool(newest)
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def environment() -> str:
    """Give the names and values of the environment."""
    return json.dumps(dict(os.environ))


class Size(BaseModel):
    size: int


def ask_size(name: str) -> Elicit[Size]:
    return Elicit(f"What size for {name}?", Size)


@server.tool()
def order(name: str, wanted: Annotated[Size, Resolve(ask_size)]) -> str:
    """Order something in a size that a person says."""
    noted(f"order {name} {wanted.size}")
    return f"ordered {name} in {wanted.size}"


class WithToken:
    """Refuse requests without the token, where there is one."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        wanted = os.environ.get("WANTED_TOKEN")
        given = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and wanted and given != f"Bearer {wanted}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await self._app(scope, receive, send)


def serve():
    """Serve over HTTP, and print the port."""
    import uvicorn  # noqa: PLC0415 - only this way needs it

    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        app = WithToken(server.streamable_http_app())
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


if __name__ == "__main__":
    serve() if sys.argv[2:] == ["http"] else server.run()

"""Real MCP servers for tests: `tests/tool_server.py`, started over its streams or over HTTP."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import warm
from replan import ToolServer

PROGRAM = Path(__file__).with_name("tool_server.py")


def over_streams(folder: Path, **options) -> ToolServer:
    words = warm.words_for(PROGRAM, folder)
    return ToolServer(command=sys.executable, args=words, **options)


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[str]:
    """Serve over HTTP, and give the address."""
    words = [str(PROGRAM), str(folder), "http"]
    environment = {**os.environ, **environment}
    with warm.Process(words, stdout=subprocess.PIPE, env=environment) as server:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"


def calls(folder: Path) -> list[str]:
    """The calls that did something, in their order."""
    noted = folder / "calls.txt"
    return noted.read_text("utf-8").splitlines() if noted.exists() else []

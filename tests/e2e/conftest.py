"""LangGraph Studio's server, started as a developer starts it, and a browser."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser

from crews import Crew
from pages import browser
from postgres import free_port
from workshop import Workshop

ROOT = Path(__file__).parents[2]


@contextmanager
def studio(
    folder: Path, variables: dict[str, str], *, end: int = signal.SIGINT, **more: Any
) -> Generator[str]:
    """Serve the project's own langgraph.json with other variables, and give the address.

    At the end it gets a signal, and has to end.
    """
    config = {**json.loads((ROOT / "langgraph.json").read_text("utf-8")), **more}
    config["env"] |= variables
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    port = free_port()
    command = [
        *(str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser", "--no-reload"),
        *("--host", "127.0.0.1", "--port", str(port), "--n-jobs-per-worker", "4"),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)]),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    }
    # With it, langgraph-api 0.16 cannot run a graph inside of a graph: copying the adapter of its
    # checkpointer never ends. A command that a test ran in this process may have set it.
    environment.pop("LANGGRAPH_STRICT_MSGPACK", None)
    server = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        said = []
        for line in server.stdout:
            said.append(line)
            if re.search(r"Application started up|Application startup complete", line):
                break
        else:
            pytest.fail("the server did not start:\n" + "".join(said))
        # The rest of what it says must not fill the pipe.
        drain = threading.Thread(target=lambda: said.extend(server.stdout))
        drain.start()
        url = f"http://127.0.0.1:{port}"
        # It listens a moment after it has said so.
        with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:
            client.get(f"{url}/ok").raise_for_status()
        yield url
    finally:
        server.send_signal(end)
        server.wait(timeout=20)
    drain.join(timeout=20)
    server.stdout.close()
    # Whatever the tests did, no thread was restored from a class that nobody listed.
    assert [line for line in said if "unregistered" in line or "Blocked" in line] == []
    assert (folder / ".langgraph_api" / "replan.sqlite").exists()


@pytest.fixture(scope="module")
def serve_studio() -> Iterator[Callable[..., str]]:
    """Start a server that lives as long as the tests of the module."""
    with ExitStack() as servers:
        yield lambda *given, **more: servers.enter_context(studio(*given, **more))


@pytest.fixture(scope="module")
async def module_chromium() -> AsyncIterator[Browser]:
    async with browser() as started:
        yield started


@pytest.fixture
async def chromium(module_chromium: Browser) -> AsyncIterator[Browser]:
    """A browser; what a test opens in it is closed at its end."""
    yield module_chromium
    for context in module_chromium.contexts:
        await context.close()


@pytest.fixture
def workshop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    """A workshop whose storage is the fixture that a test names, else the file of its user."""
    name = getattr(request, "param", "")
    shop = Workshop(tmp_path, request.getfixturevalue(name) if name else "")
    yield shop
    for program in shop.started:
        program.close()


@pytest.fixture
def crew(tmp_path: Path, empty_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """A folder with a crew on an empty database; its workers end with the test."""
    monkeypatch.chdir(tmp_path)
    made = Crew(tmp_path, empty_database)
    yield made
    for worker in made.workers:
        worker.send_signal(signal.SIGCONT)
        worker.close()

"""The model server of the benchmarks over HTTP, in a process of its own: its CPU is not measured.

Started by itself, a program that serves prints its address and serves until its standard input
ends, as it does when the process that started it is gone.
"""

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from http_workloads import AT_ONCE, SIMPLE, TURN, WORKLOADS, Model

from replan.testing import ChatRequest, OpenAIServer, Reply


@contextmanager
def serving(program: str = __file__) -> Generator[str]:
    """Start the server that a program of the benchmarks is; gives its address."""
    command = [sys.executable, program]
    with subprocess.Popen(  # noqa: S603 - a file of ours
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            raise RuntimeError("The server did not start.")
        yield address


def serve(model: Callable[[ChatRequest], Reply], models: tuple[str, ...]) -> None:
    """Serve models under these names until the standard input ends."""
    with OpenAIServer(model, models=models) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    names = tuple(name + end for name in WORKLOADS for end in ("", AT_ONCE))
    serve(Model(), (*names, SIMPLE, TURN.model))

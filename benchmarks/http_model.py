"""The model server of the benchmarks over HTTP, in a process of its own: its CPU is not measured.

Started by itself, it prints its address and serves until its standard input ends, as it does when
the process that started it is gone.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from http_workloads import AT_ONCE, SIMPLE, TURN, WORKLOADS, Model

from replan.testing import OpenAIServer


@contextmanager
def serving() -> Generator[str]:
    """Start the server; gives its address."""
    command = [sys.executable, __file__]
    with subprocess.Popen(  # noqa: S603 - this file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            raise RuntimeError("The server did not start.")
        yield address


def _serve() -> None:
    models = tuple(name + end for name in WORKLOADS for end in ("", AT_ONCE))
    models += (SIMPLE, TURN.model)
    with OpenAIServer(Model(), models=models) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve()

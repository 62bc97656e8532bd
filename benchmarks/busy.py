"""A machine that has something else to do: processes that spin."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

LONGEST = 900
"""Seconds after which a process ends by itself, whatever became of the one that started it."""

_SPIN = f"""
import os, time
parent, end = os.getppid(), time.monotonic() + {LONGEST}
while os.getppid() == parent and time.monotonic() < end:
    sum(range(10_000))
"""


@contextmanager
def busy(processes: int) -> Generator[None]:
    """Let so many processes spin meanwhile.

    Raises:
        RuntimeError: One of them ended too early, so that what was measured says nothing.
    """
    command = [sys.executable, "-c", _SPIN]
    spinning = [subprocess.Popen(command) for _ in range(processes)]  # noqa: S603 - the lines above
    try:
        yield
        if any(one.poll() is not None for one in spinning):
            msg = f"A process that was to spin has ended; they do so after {LONGEST} s."
            raise RuntimeError(msg)
    finally:
        for one in spinning:
            one.kill()
            one.wait()

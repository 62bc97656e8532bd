"""Work that is measured, untraced: under coverage it would take five times as long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def untraced() -> Iterator[None]:
    """Let coverage rest, if it measures this process."""
    running = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
    if running is None:
        yield
        return
    running.stop()
    try:
        yield
    finally:
        running.start()

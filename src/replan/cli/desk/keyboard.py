"""Read lines that a person types, while a run continues."""

import asyncio
import os
import threading
from contextlib import suppress

try:
    import termios
except ImportError:  # Windows
    termios = None

_MOST = 65536


# A thread reads, since a terminal cannot be awaited everywhere. It dies with the process, and it
# reads only while a line is asked for: an editor that is opened meanwhile has the keys alone.
class Keyboard:
    """One line at a time from a terminal."""

    def __init__(self, descriptor: int) -> None:
        """Prepare; nothing is read before it is asked for."""
        self._descriptor = descriptor
        self._coming: asyncio.Future[str | None] | None = None

    def clear(self) -> None:
        """Drop what was typed before the next question was visible."""
        if self._coming is not None and self._coming.done():
            self._coming = None
        if termios is not None and os.isatty(self._descriptor):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def line(self) -> str | None:
        """Return the next line; None if the person ends the input (Ctrl-D)."""
        if self._coming is None:
            self._coming = asyncio.get_running_loop().create_future()
            threading.Thread(
                target=self._read, args=(self._coming,), name="replan-keyboard", daemon=True
            ).start()
        # The reader of a question that was withdrawn reads for the next one.
        line = await asyncio.shield(self._coming)
        self._coming = None
        return line

    def _read(self, coming: "asyncio.Future[str | None]") -> None:
        try:
            found = os.read(self._descriptor, _MOST)
        except OSError:  # the terminal is gone
            found = b""
        line = found.decode("utf-8", "replace").rstrip("\r\n") if found else None
        with suppress(RuntimeError):  # the run ended meanwhile, and its loop is closed
            coming.get_loop().call_soon_threadsafe(_give, coming, line)


def _give(coming: "asyncio.Future[str | None]", line: str | None) -> None:
    if not coming.done():
        coming.set_result(line)

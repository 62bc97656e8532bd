"""What a server's program says on its way for people: all is read, and the end of it kept."""

import os
import threading

_KEPT = 500
_AT_ONCE = 65_536
_SECONDS = 1.0
"""How long the end is waited for; a program that outlives the server may hold its way open."""


class LastWords:
    """Where a program may say what it likes, as much as it likes."""

    def __init__(self) -> None:
        source, sink = os.pipe()
        self.sink = os.fdopen(sink, "w")
        self._kept = b""
        self._reader = threading.Thread(
            target=self._read, args=(source,), name="replan-last-words", daemon=True
        )
        self._reader.start()

    def end(self) -> str:
        """Return the end of what the program said, which has ended."""
        self.sink.close()
        self._reader.join(_SECONDS)
        text = self._kept.decode(errors="replace").strip()
        return f"; it said: {text}" if text else ""

    def _read(self, source: int) -> None:
        with os.fdopen(source, "rb", buffering=0) as said:
            while some := said.read(_AT_ONCE):
                self._kept = (self._kept + some)[-_KEPT:]

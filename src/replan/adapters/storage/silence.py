"""Connections to PostgreSQL that do not wait forever for a server that has gone silent.

A network that swallows packets ends no connection, and a statement has no bound of its own: the
server cannot end what it never got, and kernels give up after a quarter of an hour or never.
"""

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

R = TypeVar("R")


class SilentServerError(psycopg.OperationalError):
    """Nothing came from the server for too long, so the connection was thrown away."""


class HeardConnection(psycopg.AsyncConnection[Any]):
    """A connection that ends if nothing arrives for long while a caller waits."""

    longest = 600.0

    async def wait(self, gen: Generator[Any, Any, R], *given: Any, **options: Any) -> R:
        """Wait for an answer, as long as anything comes or can be sent."""
        return await super().wait(self._watched(gen), *given, **options)

    def _watched(self, gen: Generator[Any, Any, R]) -> Generator[Any, Any, R]:
        try:
            state = next(gen)
            since = time.monotonic()
            while True:
                # Several times a second it is asked even if there is nothing.
                ready = yield state
                if ready:
                    since = time.monotonic()
                elif time.monotonic() - since > self.longest:
                    self.pgconn.finish()
                    raise SilentServerError(f"nothing came from it for {self.longest:g} s")
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

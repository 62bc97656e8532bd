"""Where the threads of pipelines are kept, message by message."""

from collections.abc import Mapping
from typing import Any, Protocol

from replan.state.pipeline.thread_rows import Rows
from replan.state.pipeline.threads import Thread


class ThreadRepository(Protocol):
    """Keeps threads: what a method was given is safe when the method returns.

    A method changes the thread that it is given, and stores it: afterwards the thread in memory is
    as the stored one. It writes what is new or changed, in one transaction, and refuses a thread
    that somebody else has stored meanwhile.
    """

    async def get_thread(self, thread_id: str) -> Thread | None:
        """Read a main thread with its sub-threads; None if there is none."""
        ...

    async def get_thread_settings(self, thread_id: str) -> dict[str, Any]:
        """Read the stored settings of a main thread; empty if there are none."""
        ...

    async def update_thread_settings(self, thread: Thread, settings: Mapping[str, Any]) -> None:
        """Give a main thread other settings, and store it.

        Raises:
            ThreadError: Somebody else has stored the thread meanwhile.
        """
        ...

    async def update_message(
        self, thread: Thread, message_id: str, changes: Mapping[str, Any]
    ) -> None:
        """Change fields of one message, and store the thread.

        Args:
            thread: The main thread.
            message_id: A message of it, or of one of its sub-threads.
            changes: The fields with their new values, such as `text`; entries of `meta` are added.

        Raises:
            ThreadError: There is no such message, or somebody else has stored the thread.
        """
        ...

    async def save_thread(self, thread: Thread, *, lasting: bool = True) -> None:
        """Store a main thread with everything in it.

        Args:
            thread: The main thread.
            lasting: Whether it must outlast a failure of power. What follows from what was stored
                before need not: it is made again.

        Raises:
            ThreadError: Somebody else has stored the thread meanwhile.
        """
        ...

    async def rows(self, run_id: str) -> Mapping[str, Rows]:
        """Read the rows of all threads of a run, by thread, so that they can travel."""
        ...

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        """Take threads of a run from elsewhere; a thread that is here stays."""
        ...

    async def closed(self, run_id: str) -> None:
        """Take note that a run is over; what keeps nothing may forget its threads some time."""
        ...

    async def forget(self, run_id: str) -> None:
        """Remove all threads of a run."""
        ...

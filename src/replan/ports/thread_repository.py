"""The store of the threads of pipelines, message by message."""

from collections.abc import Mapping
from typing import Any, Protocol

from replan.state.pipeline.thread_rows import Rows
from replan.state.pipeline.threads import Thread


class ThreadRepository(Protocol):
    """Stores threads: what a method stored is safe when the method returns.

    A method changes the thread that it gets, and stores it: afterwards the thread in memory equals
    the stored one. It writes what is new or changed, in one transaction, and refuses a thread that
    another writer has stored in the meantime.
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
            ThreadError: Another writer has stored the thread in the meantime.
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
            ThreadError: There is no such message, or another writer has stored the thread.
        """
        ...

    async def save_thread(self, thread: Thread, *, lasting: bool = True) -> None:
        """Store a main thread with everything in it.

        Args:
            thread: The main thread.
            lasting: Whether it must survive a power failure. What follows from stored data need
                not: it can be computed again.

        Raises:
            ThreadError: Another writer has stored the thread in the meantime.
        """
        ...

    async def rows(self, run_id: str) -> Mapping[str, Rows]:
        """Read the rows of all threads of a run, by thread, so that they can travel."""
        ...

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        """Take threads of a run from elsewhere; a thread that is here stays."""
        ...

    async def closed(self, run_id: str) -> None:
        """Note that a run is over; a repository in memory may forget its threads later."""
        ...

    async def forget(self, run_id: str) -> None:
        """Remove all threads of a run."""
        ...

"""Turns of chats that are being taken: what was said, and what happened to it."""

import asyncio
from dataclasses import dataclass


@dataclass
class Talk:
    """One turn."""

    text: str  # what was said, which the session has only once the turn is over
    turn_id: str
    task: asyncio.Task[None] | None = None
    problem: str = ""  # why it failed

    @property
    def is_at_work(self) -> bool:
        """Whether it continues."""
        return self.task is not None and not self.task.done()

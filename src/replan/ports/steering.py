"""What people ask of a run while it is at work: edits of its plan, and messages to its host."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from replan.log.rows import Request, RequestKind
from replan.log.run_log import RunLog

STEERED = "steered/"
"""The prefix of the notes about who took such requests: their kind and a checkpoint follow."""


OUTCOME = "steering_outcome/"
"""The prefix of the notes about what became of such requests; the name of the request follows."""

TOO_LATE = "The run ended before it was considered."
"""Why nothing was done with a request."""


def missed_warning(request: Request) -> str:
    """The warning of a run that ended without considering a request."""
    what = "edit of the plan" if request.kind == "edit" else "message"
    return f"The {what} by {request.by or 'a person'} was refused: {TOO_LATE}"


class Steering:
    """The requests that a run has not taken; its owner adds them, and its nodes take them."""

    def __init__(self) -> None:
        self._asked: dict[str, Request] = {}
        self._edited = asyncio.Event()
        self._checks = 0
        self._checked = asyncio.Event()
        self._checked.set()

    @contextmanager
    def checking(self) -> Generator[None]:
        """Let no step begin while a request is checked, which may be about that step."""
        self._checks += 1
        self._checked.clear()
        try:
            yield
        finally:
            self._checks -= 1
            if not self._checks:
                self._checked.set()

    async def holds_up(self) -> bool:
        """Whether nothing that has not begun may start, once all that came is checked."""
        await self._checked.wait()
        return self.is_asked

    def add(self, request: Request) -> None:
        self._asked[request.name] = request
        if request.kind == "edit":
            self._edited.set()

    async def next_edit(self) -> Request:
        """Wait until an edit of the plan waits, and return the first one."""
        while not (edits := self.waiting("edit")):
            self._edited.clear()
            await self._edited.wait()
        return edits[0]

    @property
    def is_asked(self) -> bool:
        """Whether anything waits."""
        return bool(self._asked)

    def waiting(self, kind: RequestKind) -> tuple[Request, ...]:
        """The requests of a kind that wait, in their order."""
        return tuple(each for each in self._asked.values() if each.kind == kind)

    async def take(self, kind: RequestKind, checkpoint: str, log: RunLog) -> tuple[Request, ...]:
        """Take the requests of a kind for the node that began at a checkpoint.

        If the node begins again, since its process was killed before its update was stored, it
        takes the same ones. What came meanwhile is left for the next node.
        """
        waiting = {each.name: each for each in self.waiting(kind)}
        if not waiting:
            return ()
        (run_id,) = {each.run_id for each in waiting.values()}
        noted = await log.note(run_id, f"{STEERED}{kind}/{checkpoint}", [*waiting])
        taken = [waiting[name] for name in cast("list[str]", noted) if name in waiting]
        for each in taken:
            del self._asked[each.name]
        return tuple(taken)

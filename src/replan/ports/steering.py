"""What people ask of a run while it is at work: edits of its plan, and messages to its host."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from replan.log.rows import Request, RequestKind
from replan.log.run_log import RunLog

STEERED = "steered/"
"""The prefix of the notes about who took such requests: their kind and a checkpoint follow."""


OUTCOME = "steering_outcome/"
"""The prefix of the notes about what became of such requests; the name of the request follows."""

TOO_LATE = "The run ended before it was considered."
"""Why nothing was done with a request."""


def facts_of(request: Request) -> dict[str, Any]:
    """What the event about such a request says of it."""
    return {
        "kind": request.kind,
        "request": request.name,
        "by": request.by,
        "text": request.text if request.kind == "message" else "",
        "based_on": request.version,
    }


def missed_warning(request: Request) -> str:
    """The warning of a run that ended without considering a request."""
    what = "edit of the plan" if request.kind == "edit" else "message"
    return f"The {what} by {request.by or 'a person'} was refused: {TOO_LATE}"


class Steering:
    """The requests that a run has not taken; its owner adds them, and its nodes take them.

    Attributes:
        asked: The requests by their names; while there are any, no step of the plan begins.
        edited: Set while an edit of the plan is among them.
        checked: Set while no request is checked, which may be about a step that is to begin.
    """

    def __init__(self) -> None:
        self.asked: dict[str, Request] = {}
        self.edited, self.checked = asyncio.Event(), asyncio.Event()
        self.checked.set()
        self._checks = 0

    @contextmanager
    def checking(self) -> Generator[None]:
        """Let no step begin while a request is checked."""
        self._checks += 1
        self.checked.clear()
        try:
            yield
        finally:
            self._checks -= 1
            if not self._checks:
                self.checked.set()

    def add(self, request: Request) -> None:
        self.asked[request.name] = request
        if request.kind == "edit":
            self.edited.set()

    def waiting(self, kind: RequestKind) -> tuple[Request, ...]:
        """The requests of a kind that wait, in their order."""
        return tuple(request for request in self.asked.values() if request.kind == kind)

    async def take(self, kind: RequestKind, checkpoint: str, log: RunLog) -> tuple[Request, ...]:
        """Take the requests of a kind for the node that began at a checkpoint.

        If the node begins again, since its process was killed before its update was stored, it
        takes the same ones. What came meanwhile is left for the next node.
        """
        waiting = {request.name: request for request in self.waiting(kind)}
        if not waiting:
            return ()
        (run_id,) = {request.run_id for request in waiting.values()}
        noted = await log.note(run_id, f"{STEERED}{kind}/{checkpoint}", [*waiting])
        requests = [waiting[name] for name in cast("list[str]", noted) if name in waiting]
        for request in requests:
            del self.asked[request.name]
        if not self.waiting("edit"):
            self.edited.clear()
        return tuple(requests)

"""Keep what happened in a run beside it, for those who look at it later."""

import asyncio

from pydantic import JsonValue

from replan.cli.keeping import now
from replan.events.types import (
    AnswerToken,
    ApprovalRequested,
    Event,
    FeedbackGenerated,
    InputRequested,
    PlanCreated,
    PlanUpdated,
    SpecialistCompleted,
    SpecialistToken,
    StepsReopened,
    ThinkingCompleted,
)
from replan.ports.run_book import RunBook

# The state and the journal hold these in full; a second copy would grow with the square of a plan.
_KEPT_ELSEWHERE = {
    "run_id",
    "plan",
    "markdown",
    "answer",
    "thinking",
    "feedback",
    "result",
    "question",
    "approval",
    "usage",
}


class Recorder:
    """Writes events behind the run, in their order; a batch at a time, so that none waits."""

    def __init__(self, book: RunBook, run_id: str) -> None:
        """Prepare; `write` does the work.

        Args:
            book: Where the events go.
            run_id: The run that they belong to.
        """
        self._book = book
        self._run_id = run_id
        self._left: list[JsonValue] = []
        self._news = asyncio.Event()

    def take(self, event: Event) -> None:
        """Take an event; the tokens of texts are not kept."""
        if not isinstance(event, AnswerToken | SpecialistToken):
            self._left.append(recorded(event))
            self._news.set()

    async def write(self) -> None:
        """Write whatever comes, until cancelled.

        Raises:
            StorageError: It cannot be written.
        """
        while True:
            await self._news.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write what is left.

        Raises:
            StorageError: It cannot be written.
        """
        self._news.clear()
        batch, self._left = self._left, []
        if batch:
            await self._book.add_events(self._run_id, batch)


def recorded(event: Event) -> JsonValue:
    """Give what is kept of an event: that it happened, and when, without long texts."""
    fields = event.model_dump(mode="json", exclude=_KEPT_ELSEWHERE)
    return {"at": now().isoformat(timespec="milliseconds"), **fields, **_essence(event)}


def _essence(event: Event) -> dict[str, JsonValue]:  # noqa: PLR0911 - one for each kind
    match event:
        case ThinkingCompleted(thinking=thought):
            return {"complexity": thought.complexity.value, "reasoning": thought.reasoning}
        case PlanCreated(plan=plan) | PlanUpdated(plan=plan):
            return {"version": plan.version, "steps": plan.total_steps}
        case StepsReopened(reruns=reruns):
            return {"reruns": [str(rerun) for rerun in reruns]}
        case InputRequested(question=question):
            return {"key": question.key, "question": question.text}
        case ApprovalRequested(approval=approval):
            return {"reason": approval.reason}
        case SpecialistCompleted(result=result):
            return {
                "status": result.status.value,
                "seconds": round(result.duration, 3),
                "error": result.error,
            }
        case FeedbackGenerated(feedback=said):
            return {"feedback": said.feedback, "should_continue": said.should_continue}
        case _:
            return {}

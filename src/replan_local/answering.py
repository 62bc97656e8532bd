"""Do a step's work in a thread of its own, and make a result of its answer or refusal."""

import asyncio
from collections.abc import Callable

from langchain_core.messages import AIMessage

from replan.plan.model import Value
from replan_local.refusals import CannotAnswerError
from replan.specialists.threads import in_thread
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard

SURE = 0.95
"""The confidence of an answer in which nothing was guessed."""


class Answer(Value):
    """What was found.

    Attributes:
        text: The answer in Markdown.
        confidence: Lower where something was guessed.
    """

    text: str
    confidence: float = SURE


async def answered(
    card: SpecialistCard,
    context: ExecutionContext,
    work: Callable[[], Answer],
    stop: Callable[[], None],
) -> SpecialistResult:
    """Run the work; a refusal is a failure for good, for the same step would be refused again.

    Args:
        card: Who works.
        context: The step.
        work: Gives the answer; the thread it runs in is abandoned when the step is cancelled.
        stop: Tells the abandoned work to end.
    """
    try:
        answer = await in_thread(work)
    except CannotAnswerError as refusal:
        return refused(card, context, str(refusal))
    except asyncio.CancelledError:
        stop()
        raise
    return SpecialistResult(
        specialist_name=card.name,
        result=AIMessage(content=answer.text),
        confidence=answer.confidence,
        step_id=context.plan_step.id,
    )


def refused(card: SpecialistCard, context: ExecutionContext, reason: str) -> SpecialistResult:
    """The result of a step that cannot be done as it stands."""
    return SpecialistResult(
        specialist_name=card.name,
        status=ExecutionStatus.FAILED,
        error=reason,
        confidence=0.0,
        step_id=context.plan_step.id,
        retry=False,
    )

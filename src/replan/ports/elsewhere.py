"""Where steps are done that another process does, of a queue of its own."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from pydantic import Field, JsonValue

from replan.state.limits import OnDoubt, RunSettings
from replan.state.questions import Question, QuestionKind
from replan.state.results import ExecutionContext
from replan.state.usage import TokenCount
from replan.values import Value


class StepErrand(Value):
    """An attempt of a step, as another process gets it.

    Attributes:
        context: What the specialist sees.
        specialist: Its name.
        settings: The settings of the run, with its limits.
        on_doubt: What happens to calls of tools that were cut off.
        questions: The questions that the step asked before, with their answers.
        thread_id: Where a pipeline keeps what it does for the step.
    """

    context: ExecutionContext
    specialist: str
    settings: RunSettings
    on_doubt: OnDoubt
    questions: tuple[Question, ...] = ()
    thread_id: str = ""


class AskedElsewhere(Value):
    """A question that the step asked, answered before or not."""

    text: str
    kind: QuestionKind
    details: JsonValue = None
    secret: bool = False
    place: str = ""


class StepEnd(Value):
    """The outcome of an attempt that another process made.

    Attributes:
        how: Whether there is a result, or why not: it failed, reached a limit, or was cut off in
            the middle, and nobody knows what it did.
        result: The result, as JSON.
        asked: What it asked, in its order; the step waits for what has no answer yet.
        error: Why it failed.
        can_pass: Whether another attempt can help.
        limit: The limit that it reached, with its value and whose it is.
        used: What its calls of models used.
        attempt: The attempt.
    """

    how: Literal["result", "asked", "failed", "limit", "cut off"]
    result: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    asked: tuple[AskedElsewhere, ...] = ()
    error: str = ""
    can_pass: bool = True
    limit: tuple[str, float, str] = ("", 0.0, "")
    used: TokenCount = TokenCount()
    attempt: int = 0


class Elsewhere(Protocol):
    """Has steps done by the workers of a queue."""

    async def done(
        self,
        queue: str,
        errand: StepErrand,
        hear: Callable[[Any], None],
        begins: Callable[[], None],
    ) -> StepEnd:
        """Have an attempt made, and wait for its end; cancelling the wait stops the attempt.

        Args:
            queue: The name of the queue.
            errand: The attempt.
            hear: Receives the events of its calls.
            begins: Is called once a worker has it, maybe more than once.
        """
        ...

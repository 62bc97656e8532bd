"""Where steps are done that another process does, of a queue of its own."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from pydantic import Field, JsonValue

from replan.base.errors import LimitReachedError
from replan.base.values import Value
from replan.state.limits import OnDoubt, RunSettings
from replan.state.questions import Question, QuestionKind
from replan.state.results import ExecutionContext
from replan.state.usage import TokenCount


class StepJob(Value):
    """An attempt of a step, as another process gets it."""

    context: ExecutionContext  # what the specialist sees
    specialist: str  # its name
    settings: RunSettings  # the settings of the run, with its limits
    on_doubt: OnDoubt  # what happens to calls of tools that were cut off
    # The questions that the step asked before, with their answers.
    questions: tuple[Question, ...] = ()
    thread_id: str = ""  # where a pipeline keeps what it does for the step


class AskedElsewhere(Value):
    """A question that the step asked, answered before or not."""

    text: str
    kind: QuestionKind
    details: JsonValue = None
    secret: bool = False
    place: str = ""


class Refusal(Value):
    """A limit that kept a call of the other process from being made."""

    limit: str
    value: float
    scope: str
    reason: str = ""
    wants: float = 0.0
    kept: float = 0.0

    @classmethod
    def of(cls, error: LimitReachedError) -> "Refusal":
        """What an error says, in a form that can be sent."""
        return cls(**{name: getattr(error, name) for name in cls.model_fields})

    @property
    def error(self) -> LimitReachedError:
        """The error, as the other process had it."""
        error = LimitReachedError(
            self.limit, self.value, self.scope, wants=self.wants, kept=self.kept
        )
        error.reason = self.reason
        return error


class StepOutcome(Value):
    """The outcome of an attempt that another process made."""

    # Whether there is a result, or why not: it failed, reached a limit, or was cut off in the
    # middle, and nobody knows what it did.
    how: Literal["result", "asked", "failed", "limit", "cut off"]
    # The result, as JSON.
    result: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    # What it asked, in its order; the step waits for what has no answer yet.
    asked: tuple[AskedElsewhere, ...] = ()
    error: str = ""  # why it failed
    is_transient: bool = True  # whether another attempt can help
    is_busy: bool = False  # whether one helps only after a while, since a server was busy
    # The limit that it reached, or that its work went on without: then its result is a part.
    refusal: Refusal | None = None
    used: TokenCount = TokenCount()  # what its calls of models used
    attempt: int = 0


class StepQueue(Protocol):
    """Has steps done by the workers of a queue."""

    async def make_attempt(
        self,
        queue: str,
        job: StepJob,
        on_event: Callable[[Any], None],
        on_begin: Callable[[], None],
    ) -> StepOutcome:
        """Have an attempt made, and wait for its end; cancelling the wait stops the attempt.

        Args:
            queue: The name of the queue.
            job: The attempt.
            on_event: Receives the events of its calls.
            on_begin: Is called once a worker has it, maybe more than once.
        """
        ...

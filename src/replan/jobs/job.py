"""A job: the whole state of one piece of work, as a value that its caller keeps."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from operator import not_
from typing import Any, Literal, cast

from pydantic import Field, JsonValue, computed_field, model_validator

from replan.base.values import Value
from replan.jobs.sayings import Language
from replan.jobs.spec.slot import ValidationIssue


class JobPhase(StrEnum):
    """The phase of a job."""

    INTENT_RECOGNITION = "INTENT_RECOGNITION"
    INFORMATION_COLLECTION = "INFORMATION_COLLECTION"
    PLAN_GENERATION = "PLAN_GENERATION"
    EXECUTION = "EXECUTION"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens in it."""
        return self in (JobPhase.COMPLETED, JobPhase.FAILED)

    def comes_before(self, other: "JobPhase") -> bool:
        """Whether a job passes it before another one."""
        order = [*JobPhase]
        return order.index(self) < order.index(other)


JobStatus = Literal["pending", "in_progress", "completed", "failed"]
"""The status of a job, derived from its phase."""

JobStage = Literal["reasoning", "acting", "completed", "failed"]
"""The activity of a job, derived from its phase: it collects what to do, or does it."""

FailureCode = Literal["", "cancelled", "no_progress", "corrections", "turns", "action", "broken"]
"""Why a job failed: its user cancelled it, it came to a bound, its action failed, or a part of it
is broken. Empty if it did not."""

CONFIRMATION = "confirmation"
"""Requested instead of a slot: whether all values are right."""

COMMAND = "command"
"""Requested instead of a slot: the command."""


class JobPlan(Value):
    """What a job is about to do: its command with the values of each item.

    Attributes:
        id: Follows from the job, the command and the items, so it is the same in each process. It
            tells nothing of the values of secret slots.
        command: The command.
        items: The values of the slots, once for each time that the action is done.
    """

    id: str = ""
    command: str
    items: tuple[dict[str, JsonValue], ...] = ()


class PlannedSecret(Value):
    """What a secret slot had when it was planned last.

    Attributes:
        number: Counts the values that were planned. It stands for the value in ids and keys, which
            are shown: a digest of a short secret could be guessed.
        values: The value in each item of the plan.
    """

    number: int = Field(ge=1)
    values: tuple[JsonValue, ...]


class IntermediateResult(Value):
    """The outcome of an action.

    Attributes:
        step: The action, and the number of the item.
        result: What it gave; None if it failed.
        timestamp: When.
        success: Whether it did what it should.
        error_msg: Why it did not.
        key: The idempotency key that it had.
        in_doubt: Whether it may have taken effect although it failed.
    """

    step: str
    result: JsonValue = None
    timestamp: datetime
    success: bool
    error_msg: str = Field(default="", exclude_if=not_)
    key: str = ""
    in_doubt: bool = False


class JobExecutionContext(Value):
    """Data of the caller for an execution (`ExecutionContext` in the design of jobs).

    Attributes:
        parameters: Values by name.
        tools: Names of tools.
        constraints: Sentences.
        user_preferences: Values by name.
    """

    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    tools: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    user_preferences: dict[str, JsonValue] = Field(default_factory=dict)


class JobStep(Value):
    """An entry of a job's history.

    Attributes:
        turn: The turn, counted from 1.
        what: What happened: started, heard, corrected, reset, moved, asked, acted, ended.
        phase: The phase of the job after it.
        reason: Why, or what.
        slots: The slots that it is about.
        dropped: Names that an extractor gave, and that are not slots of the command.
    """

    turn: int
    what: Literal["started", "heard", "corrected", "reset", "moved", "asked", "acted", "ended"]
    phase: JobPhase
    reason: str = ""
    slots: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class Asked(Value):
    """What a job asks for, and how often it did.

    Attributes:
        names: All that is missing, the first of them is what the question is about.
        count: How often it asked in a row without progress, whatever it asked for.
        corrections: The corrections of the job when it asked.
    """

    names: tuple[str, ...] = ()
    count: int = Field(default=0, ge=0)
    corrections: int = Field(default=0, ge=0)


class Job(Value):
    """One piece of work: what is known about it, and its phase.

    It is a value. `JobProcessor.process` takes it with the newest messages, and returns the next.
    `to_dict` and `read_job` carry it through JSON.

    Attributes:
        id: The job.
        type: The name of its spec.
        version: The version of its spec.
        phase: Its phase. What the job holds decides; a wrong phase is corrected.
        command: The command; empty until it is known.
        required_info: The slots that the command needs.
        collected_info: The values of slots.
        validation_errors: What the last validation found.
        plan: What is about to be done.
        planned_secrets: The values of secret slots in the last plan.
        intermediate_results: The results of actions.
        context: Data of the caller for the execution.
        error: Why it failed.
        error_code: The kind of this reason.
        language: The language of its user.
        confirmed: The id of the plan that the user confirmed.
        refused: Whether the user said no to what was shown last: it is shown again before a yes
            counts.
        remarks: Why values were removed, until the user is told.
        asked: What it asks for.
        turns: How many turns it has had since it began or was resumed.
        corrections: How many given values were changed since then.
        history: What happened, the oldest first.
        missing_info: Derived: the needed slots without a value.
        status: Derived: pending, in_progress, completed or failed.
        stage: Derived: reasoning, acting, completed or failed.
    """

    id: str = Field(min_length=1)
    type: str
    version: int = 1
    phase: JobPhase = JobPhase.INTENT_RECOGNITION
    command: str = ""
    required_info: tuple[str, ...] = ()
    collected_info: dict[str, JsonValue] = Field(default_factory=dict)
    validation_errors: tuple[ValidationIssue, ...] = ()
    plan: JobPlan | None = None
    planned_secrets: dict[str, PlannedSecret] = Field(default_factory=dict)
    intermediate_results: tuple[IntermediateResult, ...] = ()
    context: JobExecutionContext | None = None
    error: str = Field(default="", exclude_if=not_)
    error_code: FailureCode = Field(default="", exclude_if=not_)
    language: Language = "en"
    confirmed: str = ""
    refused: bool = False
    remarks: tuple[ValidationIssue, ...] = ()
    asked: Asked = Asked()
    turns: int = Field(default=0, ge=0)
    corrections: int = Field(default=0, ge=0)
    history: tuple[JobStep, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_derived(cls, data: Any) -> Any:
        """Leave out derived fields, which follow from the others."""
        if isinstance(data, Mapping):
            fields = cast("Mapping[str, Any]", data)
            return {name: value for name, value in fields.items() if name not in _DERIVED}
        return data

    @computed_field
    @property
    def missing_info(self) -> tuple[str, ...]:
        """The needed slots without a value."""
        return tuple(name for name in self.required_info if name not in self.collected_info)

    @computed_field
    @property
    def status(self) -> JobStatus:
        """Its status."""
        if (stage := self.stage) in ("completed", "failed"):
            return stage
        return "in_progress" if self.turns or self.collected_info or self.command else "pending"

    @computed_field
    @property
    def stage(self) -> JobStage:
        """What it does."""
        return _STAGES.get(self.phase, "reasoning")

    @property
    def is_over(self) -> bool:
        """Whether it is completed or failed."""
        return self.phase.is_over

    def noted(self, what: Any, reason: str = "", **facts: Any) -> "Job":
        """Return the job with an entry in its history."""
        step = JobStep(turn=self.turns, what=what, phase=self.phase, reason=reason, **facts)
        return self.replace(history=(*self.history[-_LONGEST_HISTORY:], step))

    def to_dict(self) -> dict[str, Any]:
        """Return the job as JSON; error is left out where it is empty."""
        return self.model_dump(mode="json")


_DERIVED = frozenset({"missing_info", "status", "stage"})
_STAGES: dict[JobPhase, JobStage] = {
    JobPhase.EXECUTION: "acting",
    JobPhase.COMPLETED: "completed",
    JobPhase.FAILED: "failed",
}
_LONGEST_HISTORY = 2_000

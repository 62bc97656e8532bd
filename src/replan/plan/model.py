"""The values of a plan: frozen, replaced and never changed.

The names follow the Eino host multi-agent design that this project grew from.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum, nonmember
from typing import Literal, Self

from pydantic import Field, JsonValue

from replan.base.errors import UnknownStepError
from replan.base.values import Value

Author = Literal["model", "person", "rule"]
"""Who made a change of a plan."""


class StepStatus(StrEnum):
    """The status of a step."""

    PENDING = "pending"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    # The log knows whether the step was done.
    unknown = nonmember("pending")

    @property
    def is_open(self) -> bool:
        """Whether the step is still to be done: pending or executing."""
        return self in (StepStatus.PENDING, StepStatus.EXECUTING)


class PlanUpdateType(StrEnum):
    """The kind of a revision of a plan; `modify_plan` if it made several kinds of changes."""

    ADD_STEP = "add_step"
    MODIFY_STEP = "modify_step"
    REMOVE_STEP = "remove_step"
    REORDER_STEPS = "reorder_steps"
    MODIFY_PLAN = "modify_plan"

    unknown = nonmember("modify_plan")


class Condition(Value):
    """A step runs only if another step ended in this way; else it is skipped.

    Attributes:
        step: The other step.
        outcome: How it must end.
    """

    step: int
    outcome: Literal["completed", "failed"]


class PlanStep(Value):
    """One step of a plan.

    Attributes:
        id: The step's number in the document; stable forever.
        description: The step's line.
        brief: Free Markdown under the line: further instructions for the specialist.
        parameters: The content of the fenced `yaml` block under the step.
        status: The status of the step.
        assigned_to: The specialist that runs the step; if empty, it is chosen at dispatch.
        joined_by: Further specialists that run the same step.
        result: An excerpt of the result; the whole text is in the state's results.
        feedback: Why the step failed or was skipped.
        priority: A larger number starts earlier among steps that can run.
        dependencies: The ids of the steps that must be settled first.
        condition: Runs only if a named step completed or failed.
        optional: A failure of this step neither blocks its dependents nor the plan.
        max_retries: Attempts after the first; None means the limit of the run.
        timeout: Seconds that one attempt may take; None means the limit of the run.
        idle_timeout: Seconds that one attempt may take without a sign of work: a token, or the
            beginning or end of a call; None means the limit of the run.
        writes: Files or other things that the step changes; two steps that can run at once should
            not both name one.
        model: The chat model that does the step, by the name that its specialist has for it.
        ask_first: A person must approve the step before it begins.
        estimated_duration: Seconds that the step is expected to take.
        actual_duration: Seconds that the step took.
        retry_count: Attempts after the first that were made.
        created_at: When the step was added to the plan.
        updated_at: When the step last changed.
    """

    id: int = Field(ge=1)
    description: str
    brief: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    status: StepStatus = StepStatus.PENDING
    assigned_to: str = ""
    joined_by: tuple[str, ...] = ()
    result: str = ""
    feedback: str = ""
    priority: int = 0
    dependencies: tuple[int, ...] = ()
    condition: Condition | None = None
    optional: bool = False
    max_retries: int | None = Field(default=None, ge=0)
    timeout: float | None = Field(default=None, gt=0)
    idle_timeout: float | None = Field(default=None, gt=0)
    writes: tuple[str, ...] = ()
    model: str = ""
    ask_first: bool = False
    estimated_duration: float | None = None
    actual_duration: float | None = None
    retry_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def specialists(self) -> tuple[str, ...]:
        """All specialists that the step names, in their order."""
        return (self.assigned_to, *self.joined_by) if self.assigned_to else ()

    @property
    def is_cut(self) -> bool:
        """Whether its result may be an excerpt of a longer one."""
        return self.result.endswith("…")

    @property
    def is_finished(self) -> bool:
        """Whether the step is immutable: completed or skipped."""
        return self.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)

    @property
    def awaits(self) -> tuple[int, ...]:
        """The ids of all steps that this one waits for: dependencies and the condition's step."""
        if self.condition is None and len(self.dependencies) <= 1:
            return self.dependencies
        extra = () if self.condition is None else (self.condition.step,)
        return tuple(dict.fromkeys((*self.dependencies, *extra)))


class PlanUpdate(Value):
    """One revision in a plan's history.

    Attributes:
        version: The version that it made.
        update_type: What it did.
        description: What it did, in words.
        timestamp: When.
        changes: The exact changes as JSON (`added`, `removed`, `modified`, `reordered`, `title`),
            so that replaying the history from the first plan gives the current one.
        by: Who made it.
    """

    version: int
    update_type: PlanUpdateType
    description: str
    timestamp: datetime
    changes: dict[str, JsonValue]
    by: Author = "model"


class TaskPlan(Value):
    """A plan: the document and its typed projection.

    Attributes:
        content: The Markdown document, kept in step with the fields below.
        title: The document's heading, or empty.
        steps: The steps, in the order of the document.
        current_step: The id of the step that leads the running round; 0 before the first.
        version: 1 for a new plan, one more after each revision.
        allow_dynamic_update: Whether a revision may change more than statuses.
        created_at: When the plan was made.
        updated_at: When the step last changed.
        update_history: Every revision. While a run continues the state keeps them apart (in
            `plan_history`), so that a checkpoint does not repeat them; the final plan has all.
    """

    content: str = ""
    title: str = ""
    steps: tuple[PlanStep, ...] = ()
    current_step: int = 0
    version: int = 1
    allow_dynamic_update: bool = True
    created_at: datetime | None = None
    updated_at: datetime | None = None
    update_history: tuple[PlanUpdate, ...] = ()

    @property
    def goal(self) -> str:
        """Its subject in one line: its heading, else its first step and the number of others."""
        if self.title or not self.steps:
            return " ".join(self.title.split())
        more = len(self.steps) - 1
        others = f", and {more} more step{'s' if more > 1 else ''}" if more else ""
        return f"{' '.join(self.steps[0].description.split())}{others}"

    @property
    def total_steps(self) -> int:
        """How many steps the plan has, open or finished."""
        return len(self.steps)

    @property
    def completed_steps(self) -> tuple[int, ...]:
        """The ids of the completed steps, in the order of the plan."""
        return tuple(step.id for step in self.steps if step.status is StepStatus.COMPLETED)

    @property
    def by_id(self) -> Mapping[int, PlanStep]:
        """The steps by id."""
        return {step.id: step for step in self.steps}

    def step(self, step_id: int) -> PlanStep:
        """Find a step.

        Raises:
            UnknownStepError: No step has this id.
        """
        for step in self.steps:
            if step.id == step_id:
                return step
        raise UnknownStepError(step_id, self.by_id)

    def with_steps(self, *changed: PlanStep) -> Self:
        """Return the plan with these steps in place of those with the same ids.

        Raises:
            UnknownStepError: A changed step is not in the plan.
        """
        new = {step.id: step for step in changed}
        for step_id in new.keys() - self.by_id.keys():
            raise UnknownStepError(step_id, self.by_id)
        return self.replace(steps=tuple(new.get(step.id, step) for step in self.steps))

    def next_version(
        self,
        description: str,
        at: datetime,
        *,
        by: Author = "person",
        kind: PlanUpdateType = PlanUpdateType.MODIFY_PLAN,
        changes: dict[str, JsonValue] | None = None,
    ) -> Self:
        """Return the plan as its next version, with the revision that made it in its history."""
        update = PlanUpdate(
            version=self.version + 1,
            update_type=kind,
            description=description,
            timestamp=at,
            changes=changes or {},
            by=by,
        )
        history = (*self.update_history, update)
        return self.replace(version=update.version, updated_at=at, update_history=history)

    def open_steps(self) -> Iterator[PlanStep]:
        """The steps that are neither completed, skipped nor failed."""
        return (step for step in self.steps if step.status.is_open)

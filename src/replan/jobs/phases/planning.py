"""The goals of a command, and the plan for them; its id is the same in each process."""

from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import Field, JsonValue

from replan.base.values import Value, digest_of, same
from replan.jobs.job import Job, JobPlan, PlannedSecret
from replan.jobs.spec.job_spec import JobCommand, JobSpec


class Goal(Value):
    """A goal of a job.

    Attributes:
        id: For example `collect_product_id` or `execute_publish`.
        type: information_gathering or task_execution.
        description: What is to be reached.
        status: pending or completed.
        priority: Counts upwards in the order of the work; the dependencies decide.
        dependencies: The ids of the goals that come before it.
    """

    id: str
    type: Literal["information_gathering", "task_execution"]
    description: str
    status: Literal["pending", "completed"] = "pending"
    priority: int
    dependencies: tuple[str, ...] = ()


def decompose_goals(spec: JobSpec, command: str, job: Job | None = None) -> tuple[Goal, ...]:
    """Return the goals of a command: one for each slot that it needs, and one to do it.

    A goal of collecting depends on the one before it; the goal of doing depends on all of them.

    Args:
        spec: The spec.
        command: The name of the command. An unknown one has no goals.
        job: The job, to mark the goals that are already reached.
    """
    wanted = spec.command(command)
    if wanted is None:
        return ()
    collected = {} if job is None else job.collected_info
    goals: list[Goal] = []
    for place, name in enumerate(spec.needs_of(command), start=1):
        goals.append(
            Goal(
                id=f"collect_{name}",
                type="information_gathering",
                description=spec.slot(name).called("en"),
                status="completed" if name in collected else "pending",
                priority=place,
                dependencies=tuple(goal.id for goal in goals[-1:]),
            )
        )
    done = job is not None and job.status == "completed"
    last = Goal(
        id=f"execute_{command}",
        type="task_execution",
        description=wanted.called("en"),
        status="completed" if done else "pending",
        priority=len(goals) + 1,
        dependencies=tuple(goal.id for goal in goals),
    )
    return (*goals, last)


Items = tuple[dict[str, JsonValue], ...]
"""The values of the slots, once for each time that an action is done."""


class PlanDraft(Value):
    """The output of a planner.

    Attributes:
        items: The values of the slots, once for each time that the action is done.
        lacks: Slots that it needs beyond those of the command; if there are any, there is no plan.
    """

    items: Items = ()
    lacks: tuple[str, ...] = Field(default=())


class Planner(Protocol):
    """Makes a plan from the collected values of a job."""

    async def plan(self, spec: JobSpec, job: Job) -> PlanDraft:
        """Return the items of a plan, or the slots that it lacks."""
        ...


class ItemPlanner:
    """Plans one item with all values; or one for each text of the list that the command names."""

    async def plan(self, spec: JobSpec, job: Job) -> PlanDraft:
        command = spec.command(job.command)
        return PlanDraft(items=() if command is None else items_of(command, job))


def items_of(command: JobCommand, job: Job) -> Items:
    values = {name: value for name, value in job.collected_info.items() if name in command.slots}
    if command.each is None:
        return (values,)
    listed = values.get(command.each)
    rows: Sequence[JsonValue] = listed if isinstance(listed, list) else ()
    return tuple({**values, command.each: row} for row in rows)


def with_plan(spec: JobSpec, job: Job, items: Items) -> Job:
    """Return a job with the plan of these items, and the plan's id.

    The id is the same in each process, so no key can be in it that only some processes have. So it
    is no digest of secret values, which could be guessed: each value that a secret slot had in a
    plan has a number, which the job carries along.
    """
    held = job.planned_secrets
    changed = {
        name: PlannedSecret(number=held[name].number + 1 if name in held else 1, values=values)
        for name, values in _secrets_in(spec, items).items()
        if not _is_held(job, name, values)
    }
    job = job.replace(planned_secrets={**held, **changed})
    plan = JobPlan(id=_plan_id(spec, job, job.command, items), command=job.command, items=items)
    return job.replace(plan=plan)


def has_own_id(spec: JobSpec, job: Job, plan: JobPlan) -> bool:
    """Whether the id of a plan matches its content."""
    secrets = _secrets_in(spec, plan.items)
    is_known = all(_is_held(job, name, values) for name, values in secrets.items())
    return is_known and plan.id == _plan_id(spec, job, plan.command, plan.items)


def _plan_id(spec: JobSpec, job: Job, command: str, items: Items) -> str:
    secrets = _secrets_in(spec, items)
    shown: list[JsonValue] = [
        {name: v for name, v in item.items() if name not in secrets} for item in items
    ]
    numbers: list[JsonValue] = [[name, job.planned_secrets[name].number] for name in secrets]
    return digest_of(job.id, command, shown, *([numbers] if numbers else []))


def _secrets_in(spec: JobSpec, items: Items) -> dict[str, tuple[JsonValue, ...]]:
    """The values of secret slots in the items of a plan."""
    names = [slot.name for slot in spec.slots if slot.secret]
    return {
        name: tuple(item.get(name) for item in items)
        for name in names
        if any(name in item for item in items)
    }


def _is_held(job: Job, name: str, values: tuple[JsonValue, ...]) -> bool:
    held = job.planned_secrets.get(name)
    return held is not None and same([*held.values], [*values])


def idempotency_key(job: Job, plan: JobPlan, item: int) -> str:
    """The key of an action, from the job, the command, the plan and the item's number."""
    return digest_of(job.type, job.id, plan.command, plan.id, item)


def following_id(job: Job) -> str:
    """The id of the job that a message begins after the end of another; equal in each process."""
    return digest_of(job.type, job.id, "following")


def is_stale(job: Job, plan: JobPlan) -> bool:
    """Whether a plan differs from the collected values of the job."""
    return any(
        not same(held := job.collected_info.get(name), value)
        and not (isinstance(held, list) and value in held)
        for item in plan.items
        for name, value in item.items()
    )

"""From collected information to a plan whose id is the same in each process."""

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

from pydantic import Field, JsonValue

from replan.jobs.job import Job, JobPlan
from replan.jobs.spec import Command, JobSpec
from replan.values import Value


class PlanDraft(Value):
    """What a planner makes of a job.

    Attributes:
        items: The values of the slots, once for each time that the action is done.
        lacks: The slots that it needs beside those that the command needs; then there is no plan.
    """

    items: tuple[dict[str, JsonValue], ...] = ()
    lacks: tuple[str, ...] = Field(default=())


class Planner(Protocol):
    """Makes a plan of what a job has collected."""

    async def plan(self, spec: JobSpec, job: Job) -> PlanDraft:
        """Give the items of a plan, or the slots that it lacks."""
        ...


class ItemPlanner:
    """Plans one item with all values; or one for each text of the list that the command names."""

    async def plan(self, spec: JobSpec, job: Job) -> PlanDraft:
        """Give the items."""
        command = spec.command(job.command)
        return PlanDraft(items=() if command is None else items_of(command, job))


def items_of(command: Command, job: Job) -> tuple[dict[str, JsonValue], ...]:
    values = {name: each for name, each in job.collected_info.items() if name in command.slots}
    if command.each is None:
        return (values,)
    listed = values.get(command.each)
    rows: Sequence[JsonValue] = listed if isinstance(listed, list) else ()
    return tuple({**values, command.each: row} for row in rows)


def plan_id(job_id: str, command: str, items: Sequence[dict[str, JsonValue]]) -> str:
    """The id of a plan; it follows from what is planned."""
    return _digest(job_id, command, list(items))


def idempotency_key(job: Job, plan: JobPlan, item: int) -> str:
    """The key of an action: made of the job, the command, the plan and the item's number."""
    return _digest(job.type, job.id, plan.command, plan.id, item)


def following_id(job: Job) -> str:
    """The id of the job that a message begins when a job is over; the same in each process."""
    return _digest(job.type, job.id, "following")


def is_stale(job: Job, plan: JobPlan) -> bool:
    """Whether a plan says something else than what the job has collected."""
    return any(
        not _agrees(job.collected_info.get(name), value)
        for item in plan.items
        for name, value in item.items()
    )


def _agrees(held: JsonValue, planned: JsonValue) -> bool:
    return held == planned or (isinstance(held, list) and planned in held)


def _digest(*parts: JsonValue) -> str:
    text = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]

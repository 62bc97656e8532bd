"""What of a job may be shown: where it stands, without the values of secret slots."""

from typing import Any, cast

from pydantic import JsonValue

from replan.jobs.job import Job
from replan.jobs.spec import JobSpec
from replan.secrets.known import MASK


def view_of(spec: JobSpec, job: Job) -> dict[str, JsonValue]:
    """Where a job stands, for people: its stage, what it has, what is missing, what was wrong."""
    view: dict[str, Any] = {
        "id": job.id,
        "type": job.type,
        "command": job.command,
        "phase": job.phase.value,
        "status": job.status,
        "stage": job.stage,
        "collected": masked(spec, job.collected_info),
        "missing": list(job.missing),
        "problems": [f"{issue.field}: {issue.message}" for issue in job.validation_errors],
        "turns": job.turns,
        "max_turns": spec.max_turns,
        "error": job.error,
    }
    return cast("dict[str, JsonValue]", view)


def shown_job(spec: JobSpec, job: Job) -> dict[str, JsonValue]:
    """A whole job as JSON, without the values of secret slots."""
    plan = job.plan
    if plan is not None:
        plan = plan.replace(items=tuple(masked(spec, item) for item in plan.items))
    shown = job.replace(
        collected_info=masked(spec, job.collected_info), plan=plan, planned_secrets={}
    )
    return shown.to_dict()


def masked(spec: JobSpec, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Give values by slot, with a mask in the place of those that are secret."""
    return {
        name: MASK if spec.knows(name) and spec.slot(name).secret else each
        for name, each in values.items()
    }

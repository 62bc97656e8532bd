"""A job as a form that fills: its slots, what is in them, and what is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from replan.jobs.job import Job
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import masked
from replan.secrets.known import MASK


@dataclass(frozen=True, kw_only=True)
class Field:
    """A slot of a job."""

    name: str
    label: str
    value: str
    state: Literal["filled", "asked", "missing", "optional"]
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class JobForm:
    """Where a job stands."""

    job_id: str
    title: str
    command: str
    phase: str
    turns: int
    most_turns: int
    fields: tuple[Field, ...]
    error: str = ""


def job_form(spec: JobSpec, job: Job) -> JobForm:
    """Draw a job, without the values of secret slots."""
    command = spec.command(job.command)
    names = command.slots if command else tuple(slot.name for slot in spec.slots)
    shown = masked(spec, job.collected_info)
    issues = (*job.validation_errors, *job.remarks)
    problems = {issue.field: issue.message for issue in issues}
    return JobForm(
        job_id=job.id,
        title=job.type.replace("_", " "),
        command=command.called(job.language) if command else "",
        phase=job.phase.value,
        turns=job.turns,
        most_turns=spec.max_turns,
        fields=tuple(_field(name, spec, job, shown, problems.get(name, "")) for name in names),
        error=job.error,
    )


def _field(
    name: str, spec: JobSpec, job: Job, shown: Mapping[str, JsonValue], problem: str
) -> Field:
    slot, value = spec.slot(name), ""
    if name in shown:
        is_secret = shown[name] == MASK
        value = MASK if is_secret else slot.shown(shown[name], job.language)
        state = "filled"
    elif name in job.asked.names[:1]:
        state = "asked"
    else:
        state = "missing" if name in job.required_info else "optional"
    return Field(
        name=name,
        label=slot.called(job.language),
        value=value,
        state=state,
        problem=problem,
    )

"""A job that comes from outside: accepted or refused as a whole, and never trusted."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from replan.base.declared.part import did_you_mean
from replan.base.errors import JobError, Mistake, mistake
from replan.base.secrets.masking import MASK
from replan.base.texts.storable import DEEPEST
from replan.base.values import adapter
from replan.jobs.corrections import merge_values
from replan.jobs.job import COMMAND, CONFIRMATION, Job
from replan.jobs.phases.planning import has_own_id, is_stale
from replan.jobs.spec.job_spec import JobSpec
from replan.state.session.context_fields import ValueReader

_OTHERS = frozenset({COMMAND, CONFIRMATION, "answer"})


def read_job(value: object, spec: JobSpec) -> Job:
    """Read a job that comes from outside.

    What follows from its spec is computed again, and a plan that does not fit what it has collected
    is taken away, so that its phase is corrected.
    """
    if not isinstance(value, (Job, Mapping)):
        fix = "Hand over what to_dict() gave."
        raise JobError([mistake("job", value, "it is not a mapping", fix, "wrong_type")])
    job = value if isinstance(value, Job) else _read(cast("Mapping[str, Any]", value))
    if mistakes := [*_mistakes(job, spec)]:
        raise JobError(mistakes)
    return _recomputed(job, spec)


def unconfirmed(job: Job) -> Job:
    """A job that its client may have changed: its plan is made and confirmed anew."""
    return job.replace(plan=None, confirmed="")


_MOST_BYTES = 4_000_000


def _read(fields: Mapping[str, Any]) -> Job:
    reading = ValueReader(_MOST_BYTES, deepest=DEEPEST)
    job = reading.value(Job, fields, read=lambda kind, data: adapter(kind).validate_python(data))
    if reading.mistakes:
        raise JobError(list(reading.mistakes.values()))
    return job


def _mistakes(job: Job, spec: JobSpec) -> Iterator[Mistake]:
    """The parts of a job that are unknown to its spec."""
    if job.type != spec.name:
        yield _mistake("type", job.type, f"it is not a job of '{spec.name}'", "Use its own spec.")
        return
    if job.version != spec.version:
        fix = "Use the spec of this version, or start a new job."
        yield _mistake("version", job.version, f"this spec is of version {spec.version}", fix)
    commands = [command.name for command in spec.commands]
    if job.command and job.command not in commands:
        fix = did_you_mean(job.command, commands, f"Use one of: {', '.join(commands)}.")
        yield _mistake("command", job.command, "there is no such command", fix)
    names = [slot.name for slot in spec.slots]
    for field, name in _named_in(job):
        if name not in names:
            fix = did_you_mean(name, names, f"The slots are: {', '.join(names)}.")
            yield _mistake(field, name, "there is no such slot", fix)


def _named_in(job: Job) -> Iterator[tuple[str, str]]:
    """The slots that a job names, with the fields."""
    rows = {
        "required_info[{}]": job.required_info,
        "validation_errors[{}].field": [issue.field for issue in job.validation_errors],
        "remarks[{}].field": [issue.field for issue in job.remarks],
    }
    for field, row in rows.items():
        yield from ((field.format(index), name) for index, name in enumerate(row))
    for field in ("collected_info", "planned_secrets"):
        yield from ((f"{field}.{name}", name) for name in getattr(job, field))
    for index, name in enumerate(job.asked.names):
        if name not in _OTHERS:
            yield f"asked.names[{index}]", name


def _mistake(field: str, value: object, reason: str, fix: str) -> Mistake:
    return mistake(field, value, reason, fix, "unknown_name")


def _recomputed(job: Job, spec: JobSpec) -> Job:
    """Compute again what follows from the spec and from the values."""
    names = spec.slots_of(job.command)
    values = {
        name: value
        for name, value in job.collected_info.items()
        # A view has a mask in place of a secret value: then the value is missing.
        if name in names and not (value == MASK and spec.slot(name).secret)
    }
    more = [name for name in job.required_info if name in names and job.command]
    required = spec.in_order((*spec.needs_of(job.command), *more))
    issues = merge_values(spec, names, {}, values, job.language).issues
    reported_fields = {issue.field for issue in issues}
    before = tuple(issue for issue in job.validation_errors if issue.field not in reported_fields)
    plan = job.plan
    if plan is not None and (plan.command != job.command or is_stale(job, plan)):
        plan = None
    elif plan is not None and plan.id and not has_own_id(spec, job, plan):
        plan = plan.replace(id="")
    return job.replace(
        collected_info=values,
        required_info=required,
        validation_errors=(*before, *issues),
        plan=plan,
    )

"""What of a job may be shown: where it is, and nothing of the values of secret slots."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, cast

from pydantic import JsonValue

from replan.base.secrets.masking import MASK
from replan.base.values import leaves, mapped
from replan.jobs.job import Job
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.spec.slot import ValidationIssue


def view_of(spec: JobSpec, job: Job) -> dict[str, JsonValue]:
    """Where a job is, for people: its stage, what it has, what is missing, what it asks for."""
    view: dict[str, Any] = {
        "id": job.id,
        "type": job.type,
        "command": job.command,
        "phase": job.phase.value,
        "status": job.status,
        "stage": job.stage,
        "collected": masked(spec, job.collected_info),
        "missing": list(job.missing_info),
        "asked": list(job.asked.names[:1]),
        "problems": [f"{issue.field}: {issue.message}" for issue in job.validation_errors],
        "turns": job.turns,
        "max_turns": spec.max_turns,
        "error": job.error,
    }
    return cast("dict[str, JsonValue]", without_secrets(spec, job, view))


def shown_job(spec: JobSpec, job: Job) -> Job:
    """A whole job without the values of secret slots, even inside actions or errors."""
    plan = job.plan
    if plan is not None:
        items = (without_secrets(spec, job, masked(spec, item)) for item in plan.items)
        plan = plan.replace(items=tuple(items))

    def bare(value: Any) -> Any:
        return without_secrets(spec, job, value)

    def masked_issues(issues: Iterable[ValidationIssue]) -> tuple[ValidationIssue, ...]:
        return tuple(
            issue.replace(message=bare(issue.message), value=bare(issue.value)) for issue in issues
        )

    return job.replace(
        collected_info=bare(masked(spec, job.collected_info)),
        plan=plan,
        planned_secrets={},
        intermediate_results=tuple(
            intermediate.replace(
                result=bare(intermediate.result), error_msg=bare(intermediate.error_msg)
            )
            for intermediate in job.intermediate_results
        ),
        error=bare(job.error),
        remarks=masked_issues(job.remarks),
        validation_errors=masked_issues(job.validation_errors),
    )


def shown_value(spec: JobSpec, job: Job, name: str) -> str:
    """The name of a slot and its value for the user; masked if a secret slot has this text, too."""
    slot, value = spec.slot(name), job.collected_info[name]
    shown = slot.shown(value, job.language)
    secrets = secrets_in(spec, job.collected_info)
    if slot.is_free and any(len(text) >= _SHORTEST_MASKED and text in shown for text in secrets):
        shown = MASK
    return f"{slot.called(job.language)}: {shown}"


# A shorter text stands in too many others.
_SHORTEST_MASKED = 4


def without_secrets(spec: JobSpec, job: Job, value: Any) -> Any:
    """Plain data with a mask in place of each value that secret slots of a job have or had."""
    planned = {name: list(secret.values) for name, secret in job.planned_secrets.items()}
    return hidden(value, secrets_in(spec, job.collected_info, planned))


def secrets_in(spec: JobSpec, *rows: Mapping[str, Any]) -> list[str]:
    """The texts of the values of secret slots in rows of values by slot, the longest first."""
    held = [row.get(slot.name) for slot in spec.slots if slot.secret for row in rows]
    return sorted({*_texts_in(held)}, key=len, reverse=True)


def _texts_in(value: JsonValue) -> Iterator[str]:
    """The texts and numbers of plain data; a yes or a no alone reveals nothing."""
    for leaf in leaves(value):
        if leaf not in (None, "") and not isinstance(leaf, bool):
            yield str(leaf)
            # As it is in a text that is JSON.
            yield json.dumps(str(leaf), ensure_ascii=False)[1:-1]


def hidden(value: Any, secrets: Sequence[str]) -> Any:
    """Plain data with a mask in place of each of some texts."""

    def without(leaf: Any) -> Any:
        if isinstance(leaf, str):
            return reduce(lambda text, secret: text.replace(secret, MASK), secrets, leaf)
        is_number = isinstance(leaf, int | float) and not isinstance(leaf, bool)
        return MASK if is_number and str(leaf) in secrets else leaf

    return mapped(value, without) if secrets else value


def masked(spec: JobSpec, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return values by slot, with a mask in place of those that are secret."""
    return {
        name: MASK if spec.knows(name) and spec.slot(name).secret else value
        for name, value in values.items()
    }

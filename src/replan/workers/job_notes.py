"""What a run in the queue begins or continues with: notes of the run until a worker has done it.

Notes are encrypted where their storage is; the job in the queue has nothing but ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter

from replan.base.errors import InputError
from replan.base.values import restored
from replan.log.events.types import Event
from replan.log.run_log import RunLog
from replan.runs.run_at_work import RunJob
from replan.runs.run_input import stored_input
from replan.state.limits import RunSettings

NOTES = "queue/"  # how the keys of these notes begin

_EVENTS = TypeAdapter[tuple[Event, ...]](tuple[Event, ...])


@dataclass(frozen=True)
class JobNotes:
    """The notes of a run, merged."""

    keys: tuple[str, ...] = ()  # the notes
    input: JsonValue = None  # what the run begins with, as it is stored; None if it continues
    settings: RunSettings | None = None  # its settings, or what is changed of them
    prior_events: tuple[Event, ...] = ()  # of what a person did to it
    by: str = ""  # who continues it


async def write_job_note(job: RunJob, key: str, log: RunLog) -> None:
    """Record what a run begins or continues with."""
    _check(job)
    if job.input is None and job.settings is None and not job.prior_events and not job.by:
        return
    row: dict[str, JsonValue] = {
        "given": stored_input(job.input) if isinstance(job.input, Mapping) else None,
        "settings": job.settings and job.settings.model_dump(mode="json", exclude_unset=True),
        "told": _EVENTS.dump_python(job.prior_events, mode="json"),
        "by": job.by,
    }
    noted = await log.note(job.run_id, NOTES + key, row)
    if not job.goes_on and _without_ids(noted) != _without_ids(row):
        raise InputError(f"Another request began a run '{job.run_id}'. Give it another run_id.")


async def read_job_notes(run_id: str, log: RunLog) -> JobNotes:
    """Read and merge the notes of a run; later settings change earlier ones."""
    merged = JobNotes()
    for key, value in (await log.notes(run_id, NOTES)).items():
        row = cast("dict[str, Any]", value)
        settings = restored(RunSettings, row["settings"]) if row["settings"] else None
        if merged.settings is not None:
            settings = merged.settings.overridden_by(settings)
        merged = JobNotes(
            keys=(*merged.keys, key),
            input=row["given"] if merged.input is None else merged.input,
            settings=settings,
            prior_events=(*merged.prior_events, *_EVENTS.validate_python(row["told"])),
            by=row["by"] or merged.by,
        )
    return merged


def _without_ids(value: JsonValue) -> JsonValue:
    """A value without the ids that messages are given again each time."""
    if isinstance(value, dict):
        return {name: _without_ids(part) for name, part in value.items() if name != "id"}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value


def _check(job: RunJob) -> None:
    if job.following.get("on_event") or job.following.get("stop"):
        raise InputError(
            "A worker does this run, in another process: `on_event` and `stop` cannot reach it. "
            "Follow it with `events`, and stop it with `Runtime.stop`."
        )
    if (job.config or {}).get("callbacks"):
        raise InputError(
            "A worker does this run, in another process: callbacks cannot reach it. Give them to "
            "the team that the workers have."
        )

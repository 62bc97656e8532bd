"""The order of a run, on record until a worker has done it.

An errand is a note of the run, encrypted where its storage is; its job has nothing but ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter

from replan.errors import InputError
from replan.events.types import Event
from replan.log.run_log import RunLog
from replan.runs.run_input import kept_input
from replan.runs.work import RunJob
from replan.state.limits import RunSettings
from replan.values import restored

NOTES = "queue/"  # how the keys of these notes begin

_EVENTS = TypeAdapter[tuple[Event, ...]](tuple[Event, ...])


@dataclass(frozen=True)
class Errands:
    """All that is on record for a run, as one."""

    keys: tuple[str, ...] = ()  # the notes
    given: JsonValue = None  # what the run begins with, as it is kept; None if it continues
    settings: RunSettings | None = None  # its settings, or what is changed of them
    told: tuple[Event, ...] = ()  # what a person did to it
    by: str = ""  # who continues it


async def note_errand(errand: RunJob, key: str, log: RunLog) -> None:
    """Record the order of a run."""
    _check(errand)
    given = errand.input
    if given is None and errand.settings is None and not errand.told and not errand.by:
        return
    row: dict[str, JsonValue] = {
        "given": kept_input(given) if isinstance(given, Mapping) else None,
        "settings": errand.settings and errand.settings.model_dump(mode="json", exclude_unset=True),
        "told": _EVENTS.dump_python(errand.told, mode="json"),
        "by": errand.by,
    }
    noted = await log.note(errand.run_id, NOTES + key, row)
    if not errand.goes_on and _without_ids(noted) != _without_ids(row):
        raise InputError(f"Another request began a run '{errand.run_id}'. Give it another run_id.")


async def errands_of(run_id: str, log: RunLog) -> Errands:
    """All that is on record for a run; later settings change earlier ones."""
    found = Errands()
    for key, value in (await log.notes(run_id, NOTES)).items():
        row = cast("dict[str, Any]", value)
        settings = restored(RunSettings, row["settings"]) if row["settings"] else None
        if found.settings is not None:
            settings = found.settings.overridden_by(settings)
        found = Errands(
            keys=(*found.keys, key),
            given=row["given"] if found.given is None else found.given,
            settings=settings,
            told=(*found.told, *_EVENTS.validate_python(row["told"])),
            by=row["by"] or found.by,
        )
    return found


def _without_ids(value: JsonValue) -> JsonValue:
    """A value without the ids that messages are given again each time."""
    if isinstance(value, dict):
        return {name: _without_ids(each) for name, each in value.items() if name != "id"}
    return [_without_ids(each) for each in value] if isinstance(value, list) else value


def _check(errand: RunJob) -> None:
    if errand.following.get("on_event") or errand.following.get("stop"):
        raise InputError(
            "A worker does this run, in another process: `on_event` and `stop` cannot reach it. "
            "Follow it with `events`, and stop it with `Runtime.stop`."
        )
    if (errand.config or {}).get("callbacks"):
        raise InputError(
            "A worker does this run, in another process: callbacks cannot reach it. Give them to "
            "the team that the workers have."
        )

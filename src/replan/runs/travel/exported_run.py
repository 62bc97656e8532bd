"""A run as one file, without secrets, that is opened elsewhere."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from replan.base.secrets.masking import without_secrets
from replan.base.values import restored_strictly
from replan.errors import InputError
from replan.runs.reports import WholeReport

FORMAT = "replan run"
VERSION = 1
LARGEST = 500_000_000  # bytes of a file that is opened

_PLACES = 3
_LARGEST_NUMBER = 1e15  # of seconds, tokens and money
_YEARS = range(1990, 3000)
# Of any event; one of these names has no text anywhere.
_NUMBERS = (
    *("seconds", "step_seconds", "round_seconds", "run_seconds"),
    *("cost", "calls", "input_tokens", "output_tokens"),
    *("step_id", "attempt", "version", "steps", "value"),
    *("covered", "visible", "summarised", "omitted", "truncated"),
)


# Whose number is kept, so that rows that are missing are seen.
_COUNTED = ("events", "requests", "results")


def exported(run: WholeReport, at: datetime) -> str:
    """Write a run with all its texts as JSON, without secrets or what looks like one."""
    record = {"format": FORMAT, "version": VERSION, "exported_at": at.isoformat()}
    kept = _mask(run.model_dump(mode="json"))
    rows = {name: len(kept[name]) for name in _COUNTED}
    return json.dumps({**record, "run": kept, "rows": rows}, ensure_ascii=False, indent=1) + "\n"


def opened_export(path: Path) -> WholeReport:
    """Read the run of a file."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise refused(path, f"It has {size} bytes, and {LARGEST} are read at most.")
        text = path.read_bytes().decode()
        found: Any = json.loads(text)
    except OSError as error:
        raise refused(path, f"{error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise refused(
            path, f"Byte {error.start} is not UTF-8: it is damaged, or not text."
        ) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        is_cut = error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg
        cut = " It seems to be cut off." if is_cut else ""
        raise refused(path, f"It is not JSON at {where}: {error.msg}.{cut}") from error
    except RecursionError as error:
        raise refused(path, "It is nested too deeply.") from error
    return _read(path, found)


def _read(path: Path, found: Any) -> WholeReport:
    export = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if export.get("format") != FORMAT:
        raise refused(path, f"It is not an export of a run: its `format` is not '{FORMAT}'.")
    version = export.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise refused(path, f"`version` is {version!r}, and should be a number from 1 on.")
    if version > VERSION:
        newer = f"It has version {version}, and this Replan reads {VERSION} at most."
        raise refused(path, newer, "Open it with a newer Replan.")
    try:
        run = restored_strictly(WholeReport, export.get("run"))
    except RecursionError as error:
        raise refused(path, "It is nested too deeply.") from error
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        problems = [f"{_location_text(details['loc'])}: {details['msg']}" for details in faults]
        raise _damaged(path, problems) from error
    if faults := [*_missing_rows(export), *_faults(export["run"])]:
        raise _damaged(path, faults)
    return run


def _damaged(path: Path, faults: Sequence[str]) -> InputError:
    more = f"; and {len(faults) - _PLACES} more" if len(faults) > _PLACES else ""
    return refused(path, f"It is damaged. {'; '.join(faults[:_PLACES])}{more}.")


def _missing_rows(export: Mapping[str, Any]) -> Iterator[str]:
    """The parts with a wrong number of entries."""
    rows = export.get("rows")
    counts: Mapping[str, Any] = cast("dict[str, Any]", rows) if isinstance(rows, dict) else {}
    for name in _COUNTED:
        there, written = len(export["run"][name]), counts.get(name)
        if there != written:
            yield f"run.{name}: there are {there}, and {written} were written"


def _faults(run: Mapping[str, Any]) -> Iterator[str]:
    """Values that have the right or an unknown type, and are still impossible."""
    for name in ("started_at", "last_seen_at"):
        yield from _time_faults(f"run.{name}", run[name])
    for at, request in enumerate(run["requests"]):
        yield from _time_faults(f"run.requests[{at}].at", request.get("at"))
    yield from _amount_faults("run.usage", run.get("usage"))
    yield from _amount_faults("run.spent", run["spent"])
    for at, result in enumerate(run["results"]):
        for name in ("usage", "duration"):
            yield from _amount_faults(f"run.results[{at}].{name}", result.get(name))
    yield from _event_faults(run["events"])


def _event_faults(events: Sequence[Any]) -> Iterator[str]:
    for at, event in enumerate(events):
        place = f"run.events[{at}]"
        if event.get("seq") != (following := at + 1):
            yield f"{place}.seq: {event.get('seq')!r} should be {following}, without a gap"
        yield from _time_faults(f"{place}.at", event.get("at"))
        for name in event.keys() & set(_NUMBERS):
            yield from _amount_faults(f"{place}.{name}", event[name])


def _time_faults(place: str, value: object) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, str):
        yield f"{place}: {value!r} should be a time such as '2026-01-31T09:30:00Z'"
        return
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        yield f"{place}: '{value}' should have an offset such as +00:00"
    elif moment.year not in _YEARS:
        yield f"{place}: '{value}' should be of a year from {_YEARS[0]} to {_YEARS[-1]}"


def _amount_faults(place: str, value: object) -> Iterator[str]:
    match value:
        case None:
            return
        case dict() | list():
            fields = cast("dict[str, Any] | list[Any]", value)
            named = fields.items() if isinstance(fields, dict) else enumerate(fields)
            for name, each in named:
                part = f"[{name}]" if isinstance(name, int) else f".{name}"
                yield from _amount_faults(f"{place}{part}", each)
        case int() | float() if not isinstance(value, bool):
            if not 0 <= value <= _LARGEST_NUMBER:
                yield f"{place}: {value} should be from 0 to {_LARGEST_NUMBER:g}"
        case _:
            yield f"{place}: {value!r} should be a number"


def _location_text(location: tuple[int | str, ...]) -> str:
    """A place as people write it: `run.events[3].at`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return f"run{''.join(parts)}"


def refused(path: Path, problem: str, fix: str = "") -> InputError:
    fix = fix or "Write it again with `replan export RUN -o FILE`."
    return InputError(f"The export '{path}' cannot be opened. {problem} {fix}")


def _mask(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {without_secrets(name): _mask(value) for name, value in fields.items()}
    if isinstance(value, list):
        return [_mask(part) for part in cast("list[Any]", value)]
    return value

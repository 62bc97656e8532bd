"""A run as one file, without secrets, that is opened elsewhere."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import JsonValue, ValidationError

from replan.base.declared.part import field_path
from replan.base.errors import InputError
from replan.base.secrets.masking import without_secrets
from replan.base.values import Value, fields_in, mapped, restored_strictly
from replan.log.amounts import Spending
from replan.log.events.types import Event
from replan.runs.reports import WholeReport

FORMAT = "replan run"
VERSION = 1
LARGEST = 500_000_000  # bytes of a file that is opened

_PLACES = 3
_LARGEST_NUMBER = 1e15  # of seconds, tokens and money
_YEARS = range(1990, 3000)
_FREE = ("priority", "score")  # numbers that may be below 0

# Whose number is kept, so that rows that are missing are seen.
_COUNTED = ("events", "requests", "results")


def exported(run: WholeReport, at: datetime) -> str:
    """Write a run with all its texts as JSON, without secrets or what looks like one."""
    record = {"format": FORMAT, "version": VERSION, "exported_at": at.isoformat()}
    kept = mapped(run.model_dump(mode="json"), _masked, without_secrets)
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
    export = fields_in(found)
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
        problems = [f"{field_path(('run', *each['loc']))}: {each['msg']}" for each in faults]
        raise _damaged(path, problems) from error
    # LangChain's messages fail on other values before pydantic can refuse them.
    except (AttributeError, TypeError) as error:
        raise _damaged(path, ["A message in it has another form"]) from error
    if faults := [*_missing_rows(export), *_gaps(run.events), *_faults(run, "run")]:
        raise _damaged(path, faults)
    return run


def _damaged(path: Path, faults: Sequence[str]) -> InputError:
    more = f"; and {len(faults) - _PLACES} more" if len(faults) > _PLACES else ""
    return refused(path, f"It is damaged. {'; '.join(faults[:_PLACES])}{more}.")


def _missing_rows(export: Mapping[str, Any]) -> Iterator[str]:
    """The parts with a wrong number of entries."""
    counts = fields_in(export.get("rows"))
    for name in _COUNTED:
        there, written = len(export["run"][name]), counts.get(name)
        if there != written:
            yield f"run.{name}: there are {there}, and {written} were written"


def _gaps(events: Sequence[Event]) -> Iterator[str]:
    for at, event in enumerate(events):
        if event.seq != (following := at + 1):
            yield f"run.events[{at}].seq: {event.seq!r} should be {following}, without a gap"


def _faults(value: object, place: str) -> Iterator[str]:
    """Times and numbers that have the right type and are still impossible."""
    if problem := _problem_of(value):
        yield f"{place}: {problem}"
    for name, part in _parts(value):
        yield from _faults(part, f"{place}{name}")


def _problem_of(value: object) -> str:
    match value:
        case datetime() if value.tzinfo is None:
            return f"'{value.isoformat()}' should have an offset such as +00:00"
        case datetime() if value.year not in _YEARS:
            years = f"{_YEARS[0]} to {_YEARS[-1]}"
            return f"'{value.isoformat()}' should be of a year from {years}"
        case int() | float() if not 0 <= value <= _LARGEST_NUMBER:
            return f"{value} should be from 0 to {_LARGEST_NUMBER:g}"
        case _:
            return ""


def _parts(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case Value():
            yield from ((f".{name}", getattr(value, name)) for name in _checked(type(value)))
        case Spending():
            yield from ((f".{name}", part) for name, part in value.as_json().items())
        case dict():
            fields = cast("dict[object, object]", value)
            yield from ((f".{name}", part) for name, part in fields.items())
        case tuple():
            parts = cast("tuple[object, ...]", value)
            yield from ((f"[{at}]", part) for at, part in enumerate(parts))
        case _:
            pass


@cache
def _checked(kind: type[Value]) -> Sequence[str]:
    """The fields with values of ours; in the JSON of users any number may be."""
    fields = kind.model_fields.items()
    return [name for name, field in fields if name not in _FREE and not _has_json(field.annotation)]


def _has_json(kind: Any) -> bool:
    return kind is JsonValue or any(map(_has_json, get_args(kind)))


def refused(path: Path, problem: str, fix: str = "") -> InputError:
    fix = fix or "Write it again with `replan export RUN -o FILE`."
    return InputError(f"The export '{path}' cannot be opened. {problem} {fix}")


def _masked(leaf: Any) -> Any:
    return without_secrets(leaf) if isinstance(leaf, str) else leaf

"""The one form in which a slot of a type holds its values; what cannot have it gives None."""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Literal, cast

from pydantic import JsonValue

from replan.base.texts.storable import LARGEST, first_unwritable
from replan.jobs.sayings import means

SlotType = Literal["text", "integer", "number", "boolean", "date", "list", "object"]
"""The value of a slot. A date is a text such as `2026-03-31`, a list has only texts."""

_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
# 1.000 is a thousand to some, and one to others.
_NUMBER = re.compile(r"(?![+-]?[1-9]\d{0,2}\.\d{3}$)[+-]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_BETWEEN = re.compile(r"[,，、;；\n]")
_BETWEEN_FIELDS = re.compile(r"[;；\n]|[,，](?=\s*[A-Za-z_]\w*\s*[:：=])")
_PAIR = re.compile(r"([A-Za-z_]\w{0,60})\s*[:：=]\s*(.+)", re.DOTALL)
_MOST = 100_000


def to_text(value: object) -> JsonValue:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
        value = str(value)
    return value if isinstance(value, str) and first_unwritable(value) < 0 else None


def to_integer(value: object) -> JsonValue:
    found = to_number(value)
    return found if isinstance(found, int) else None


def to_number(value: object) -> JsonValue:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value) if _WHOLE.fullmatch(value) else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or abs(value) > LARGEST:
        return None
    return int(value) if value == int(value) else value


def to_boolean(value: object) -> bool | None:
    if isinstance(value, str):
        return True if means(value, "yes") else False if means(value, "no") else None
    return value if isinstance(value, bool) else None


def to_date(value: object) -> JsonValue:
    if type(value) is date:
        return value.isoformat()
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        return None


def to_list(value: object) -> JsonValue:
    parts = _BETWEEN.split(value) if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return None
    found = [to_text(part) for part in cast("list[object]", parts)]
    kept = [part.strip() for part in found if isinstance(part, str) and part.strip()]
    return None if None in found else cast("JsonValue", [*dict.fromkeys(kept)])


def to_object(value: object) -> JsonValue:
    if isinstance(value, str):
        value = _fields_in(value)
    if not isinstance(value, Mapping):
        return None
    try:
        written = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    is_kept = len(written) <= _MOST and "\\u0000" not in written and "\\ud" not in written
    return cast("JsonValue", json.loads(written)) if is_kept else None


def _fields_in(text: str) -> object:
    """The fields in a text: JSON, or `name: value` one after another."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        parts = map(str.strip, _BETWEEN_FIELDS.split(text))
        pairs = [_PAIR.fullmatch(part) for part in parts if part]
    if not pairs or None in pairs:
        return None
    found = [(pair[1].strip(), pair[2].strip()) for pair in pairs if pair is not None]
    return {name: each if (n := to_number(each)) is None else n for name, each in found}


OF_TYPE: dict[SlotType, Callable[[object], JsonValue]] = {
    "text": to_text,
    "integer": to_integer,
    "number": to_number,
    "boolean": to_boolean,
    "date": to_date,
    "list": to_list,
    "object": to_object,
}
"""By the type of a slot: a value in its form, or None."""

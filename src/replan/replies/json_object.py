"""A reply that is a JSON object, bare or inside the markup of a tool call."""

import re
from collections.abc import Collection, Mapping
from typing import cast

from replan.replies.forms.front_matter import DELIMITER, Parts
from replan.replies.forms.json_text import Decoded, as_text, decode, dumped, unwrap
from replan.replies.forms.wrapping import BLANK, few_lines, plain, skip_blank, unless_announcement
from replan.replies.vocabulary.keys import (
    BODY_KEYS,
    LABEL_KEYS,
    find_key,
    fits,
    spelled_out,
    squeezed,
)
from replan.replies.vocabulary.labels import complexity_of, verdict_of
from replan.replies.written_plans.records import LISTS

_MARKUP = tuple(
    re.compile(pattern)
    for pattern in (r"\s*[\]})`~\"']+", r"\s*<(?:/|\|)[^<>\n]{1,40}>", r"\s*\[/[A-Z_]{1,20}\]")
)


def read_object(text: str, known: Collection[str]) -> Parts | None:
    """Read a JSON object with known keys at the start of a text, after a line of talk at most."""
    start = text.find("{")
    if start < 0 or not few_lines(text[:start]):
        return None
    before = text[:start].rstrip()
    if before.endswith("["):
        start = len(before) - 1
    value, end, is_cut = _first_reply(text, start, known)
    is_empty = value == {} or (is_cut and not _says_anything(value))
    if is_empty and not (text[:start] + text[end:]).strip(BLANK):
        return Parts({}, "", is_cut)  # nothing is in it, or it was cut off at once
    found = unwrap(value, lambda fields: _is_reply(fields, known))
    if found is None:
        return None
    fields = _fields(found, known)
    body = _body(found, fields)
    if not body and fields:
        body = _without_markup(text[end:]) or unless_announcement(text[:start])
    return Parts(fields, body, is_cut)


def _first_reply(text: str, start: int, known: Collection[str]) -> Decoded:
    """Read the first object that is a reply; a schema may be repeated before it."""
    first = found = decode(text, start)
    for _ in range(_MOST_OBJECTS):
        if unwrap(found.value, lambda fields: _is_reply(fields, known) and not _is_schema(fields)):
            return found
        start = text.find("{", found.end)
        if start < 0 or found.is_cut or found.value is None:
            break
        found = decode(text, start)
    return first


_MOST_OBJECTS = 3


def _is_schema(fields: Mapping[str, object]) -> bool:
    return all(isinstance(value, dict) and "type" in value for value in fields.values())


def _is_reply(fields: Mapping[str, object], known: Collection[str]) -> bool:
    """Whether an object is a reply: it has two known keys, or one and nothing else."""
    count = 0
    for name, value in fields.items():
        key = find_key(name, known)
        if key:
            is_certain = key[1] or key[0] not in LABEL_KEYS
            count += is_certain or fits(key[0], spelled_out(name, as_text(value)))
        elif squeezed(name) in LISTS or (
            squeezed(name) in BODY_KEYS and not isinstance(value, dict)
        ):
            count += 1
    return count > 1 or (count == 1 and len(fields) == 1)


def _fields(found: Mapping[str, object], known: Collection[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in found.items():
        key = find_key(name, known)
        if key and (key[1] or key[0] not in fields):
            fields[key[0]] = spelled_out(name, plain(as_text(value)).strip(BLANK))
    return fields


def _body(found: Mapping[str, object], fields: Mapping[str, str]) -> str:
    """Return the body under `answer`, `plan` or `body`; of several, the expected one."""
    is_plan = complexity_of(fields.get("complexity", "")) in ("moderate", "complex") or (
        verdict_of(fields.get("verdict", "")) == "continue"
    )
    bodies = {squeezed(name): value for name, value in found.items()}
    bodies = {name: value for name, value in bodies.items() if name in BODY_KEYS and value}
    others = [name for name in bodies if name not in LISTS]
    # A list of numbers is no plan, and nobody called it an answer.
    plans = [name for name in bodies if name in LISTS and _may_be_steps(bodies[name])]
    order = [*plans, *others] if is_plan else [*others, *plans]
    if not order:
        return ""
    value = bodies[order[0]]
    if isinstance(value, list) and _are_lines(cast("list[object]", value)):
        return plain("\n".join(cast("list[str]", value)))
    # Steps stay data: they are read as such where the plan is read.
    return plain(value if isinstance(value, str) else dumped(cast("object", value)))


def _says_anything(value: object) -> bool:
    if isinstance(value, dict):
        return any(cast("dict[str, object]", value).values())
    return isinstance(value, list) and any(
        isinstance(item, dict) for item in cast("list[object]", value)
    )


def _may_be_steps(value: object) -> bool:
    rows = cast("list[object]", value) if isinstance(value, list) else [value]
    return any(isinstance(row, (str, dict, list)) for row in rows)


def _are_lines(rows: list[object]) -> bool:
    return all(isinstance(row, str) for row in rows) and any(
        str(row).startswith("#") or not str(row).strip() for row in rows
    )


def _without_markup(rest: str) -> str:
    """Return the text after a JSON object without the closing markup of a tool call or a fence."""
    for pattern in _MARKUP:
        found = pattern.match(rest)
        rest = rest[found.end() :] if found else rest
    rest = rest[skip_blank(rest) :]
    closed = DELIMITER.match(rest)
    return rest[closed.end() :] if closed else rest

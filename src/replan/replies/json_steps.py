"""Turning a plan that a model gave as JSON into the Markdown task list that it should have been."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from replan.replies.json_text import as_text, decode

_STEPS = ("steps", "tasks", "plan", "items", "subtasks", "todos", "task_list")
_TITLE = ("title", "goal", "name", "objective", "heading")
_LINE = ("title", "description", "task", "step", "content", "text", "name", "action", "objective")
_BRIEF = ("description", "brief", "details", "instructions", "detail")
_ID = ("id", "step_id", "number", "index", "step", "step_number")
_WAITS = ("dependencies", "depends_on", "dependsOn", "after", "requires", "deps")
_WHO = ("assigned_to", "specialist", "agent", "assignee", "assignedTo", "worker", "owner", "role")
_CERTAIN = frozenset((*_WAITS, *_WHO)) - {"owner", "role"}
_MARKS = {"completed": "x", "complete": "x", "done": "x", "failed": "!", "skipped": "-"}
_NUMBERING = re.compile(
    r"\s*(?:[-*+•]\s+)?(?:\[(?P<mark>.)\]\s*)?(?:(?:step\s*)?(?P<id>\d{1,4})\s*[.):]\s+)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{1,6}")
_JSON_START = re.compile(r"\s*(?=[\[{])")


class _Step(NamedTuple):
    key: str
    line: str
    brief: str
    who: tuple[str, ...]
    waits: tuple[str, ...]
    mark: str


def plan_text(value: object) -> str | None:
    """Write a plan that is a list of steps, or an object with such a list, as a task list.

    Steps that have no numbers, or numbers that cannot be ids of steps, are counted from 1.

    Returns:
        The document, or none if there are no steps in the value.
    """
    title, items = _steps_of(value)
    steps = [step for item in items if (step := _step(item)) and step.line]
    if not steps:
        return None
    ids = _ids(steps)
    lines = [f"# {title}\n"] if title else []
    lines += [
        _written(step, number, ids) for step, number in zip(steps, _numbers(steps), strict=True)
    ]
    return "\n".join(lines)


def plan_in_json(text: str, *, expected: bool) -> str | None:
    """Write a plan that stands as JSON in this text as a task list, or give none.

    Where no plan is `expected`, only a list whose items have dependencies or specialists is one:
    an answer may be JSON too.
    """
    start = _JSON_START.match(text)
    if start is None:
        return None
    value, _ = decode(text, start.end())
    return plan_text(value) if expected or _has_step_fields(value) else None


def _has_step_fields(value: object) -> bool:
    return any(_CERTAIN & _names_in(item) for item in _steps_of(value)[1])


def _names_in(item: object) -> frozenset[str]:
    return frozenset(cast("dict[str, object]", item)) if isinstance(item, dict) else frozenset()


def _steps_of(value: object) -> tuple[str, list[object]]:
    if isinstance(value, list):
        return "", cast("list[object]", value)
    if not isinstance(value, dict):
        return "", []
    fields = cast("dict[str, object]", value)
    for name in _STEPS:
        if isinstance(fields.get(name), list | dict):
            title = next(
                (str(fields[key]) for key in _TITLE if isinstance(fields.get(key), str)), ""
            )
            return " ".join(title.split()), _steps_of(fields[name])[1]
    if fields and all(_DIGITS.search(key) for key in fields):  # {"1": "...", "step 2": "..."}
        return "", [
            {"id": key, **cast("dict[str, object]", item)} if isinstance(item, dict)
            else {"id": key, "title": item}
            for key, item in fields.items()
        ]  # fmt: skip
    return "", []


def _step(item: object) -> _Step | None:
    if isinstance(item, str):
        return _step_of_line(item)
    if not isinstance(item, dict):
        return None
    fields = cast("dict[str, object]", item)
    name, line = _first(fields, _LINE)
    brief = next((_text(fields[key]) for key in _BRIEF if key != name and fields.get(key)), "")
    bare = _step_of_line(line)
    return _Step(
        key=_id_text(fields) or bare.key,
        line=bare.line,
        brief=brief,
        who=tuple(_names(_any(fields, _WHO))),
        waits=tuple(_texts(_any(fields, _WAITS))),
        mark=_MARKS.get(str(fields.get("status", "")).lower(), bare.mark),
    )


def _step_of_line(text: str) -> _Step:
    line = " ".join(text.split())
    found = _NUMBERING.match(line)
    key, mark = (found["id"] or "", found["mark"] or " ") if found else ("", " ")
    return _Step(key, line[found.end() if found else 0 :], "", (), (), mark)


def _first(fields: Mapping[str, object], names: Iterable[str]) -> tuple[str, str]:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return name, value
    return "", ""


def _any(fields: Mapping[str, object], names: Iterable[str]) -> object:
    return next((fields[name] for name in names if fields.get(name) not in (None, "", [])), None)


def _id_text(fields: Mapping[str, object]) -> str:
    for name in _ID:
        value = fields.get(name)
        short = isinstance(value, str) and (name != "step" or value.isdigit())
        if short or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
    return ""


def _text(value: object) -> str:
    return as_text(value).strip()


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [_text(item) for item in cast("list[object]", value)]
    text = _text(value)
    return [part.strip() for part in text.split(",") if part.strip()]


def _names(value: object) -> Iterable[str]:
    for name in _texts(value):
        word = "_".join(name.strip("@ ").split())
        if word:
            yield word


def _numbers(steps: list[_Step]) -> list[int]:
    """Give the steps their numbers: their own if they can be ids, else counted from 1."""
    found = [int(digits[0]) if (digits := _DIGITS.search(step.key)) else 0 for step in steps]
    usable = all(number > 0 for number in found) and len(set(found)) == len(found)
    return found if usable else list(range(1, len(steps) + 1))


def _ids(steps: list[_Step]) -> dict[str, int]:
    """Map what a dependency may say to the number of the step that it means."""
    numbers = _numbers(steps)
    waits = {wait for step in steps for wait in step.waits}
    if not any(step.key for step in steps):
        first = 0 if "0" in waits else 1
        return {str(place + first): number for place, number in enumerate(numbers)}
    return {step.key: number for step, number in zip(steps, numbers, strict=True) if step.key}


def _written(step: _Step, number: int, ids: Mapping[str, int]) -> str:
    who = "".join(f" @{name}" for name in step.who)
    waits = [str(found) for wait in step.waits if (found := _waited(wait, ids)) is not None]
    after = f" (after {', '.join(waits)})" if waits else ""
    brief = "".join(f"\n\n  {line}" for line in step.brief.split("\n") if line.strip())
    end = "\n" if brief else ""
    return f"- [{step.mark}] {number}. {step.line}{who}{after}{brief}{end}"


def _waited(wait: str, ids: Mapping[str, int]) -> int | None:
    if wait in ids:
        return ids[wait]
    digits = _DIGITS.search(wait)
    return None if digits is None else ids.get(digits[0], int(digits[0]))

"""Steps that are records, from JSON, YAML, XML or a table, written as a plan document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from replan.plan.markdown import words
from replan.replies.forms.json_text import as_text
from replan.replies.vocabulary.naming import Names, squeezed
from replan.replies.written_plans.entries import Entry, document
from replan.replies.written_plans.openings import opening_of
from replan.replies.written_plans.order_phrases import label_of, read_order
from replan.replies.written_plans.step_fields import part_of
from replan.replies.written_plans.step_line import read_line

LISTS = frozenset(
    (
        "steps",
        "tasks",
        "plan",
        "items",
        "subtasks",
        "todos",
        "tasklist",
        "revisedplan",
        "planofaction",
    )
)
_HEADS = frozenset(("title", "goal", "name", "objective", "heading"))
_MARKS = {"completed": "x", "complete": "x", "done": "x", "failed": "!"} | dict.fromkeys(
    ("skipped", "removed", "dropped", "deleted", "cancelled", "canceled"), "-"
)
_CERTAIN = frozenset(("who", "after"))
_LEAST_NAMED = ("owner", "role", "by", "who", "name")
_NUMBERS = frozenset(
    ("priority", "prio", "retries", "maxretries", "timeout", "duration", "estimate", "effort")
)
"""Keys whose numbers are not steps."""

_MOST_STEPS = 2_000
_DEEPEST = 6

Record = Mapping[str, object]


def plan_text(value: object, names: Names) -> str | None:
    """Write steps that came as data as a document; without usable numbers, counted from 1."""
    title, items = _items(value)
    items = items[:_MOST_STEPS]
    found = [_fields_by_part(item, names) for item in items]
    parts = [each for each in found if each and each.get("task")]
    if not parts:
        return None
    own = [_label(each) for each in parts]
    labels = {label for label in own if label} or {str(at) for at in range(len(parts) + 1)}
    if not any(each.get("after") for each in parts):
        _read_order_column(items, found, labels)
    titles = {
        squeezed(as_text(each["task"])): label or str(at)
        for at, (each, label) in enumerate(zip(parts, own, strict=True), 1)
    }
    entries = [
        _entry(each, label, names, labels, titles) for each, label in zip(parts, own, strict=True)
    ]
    return document(title, [entry for entry in entries if entry.line.text])


def has_step_fields(value: object) -> bool:
    for item in _items(value)[1]:
        parts = _fields_by_part(item, Names()) or {}
        keys: Record = cast("Record", item) if isinstance(item, dict) else {}
        said = {part_of(key) for key in keys if squeezed(key) not in _LEAST_NAMED}
        if said & _CERTAIN and parts.get("task"):
            return True
    return False


def _items(value: object, depth: int = 0) -> tuple[str, list[object]]:
    """Find the list of steps in data, and the title beside it."""
    if isinstance(value, list):
        return "", cast("list[object]", value)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return "", []
    fields = cast("dict[str, object]", value)
    for key, inner in fields.items():
        if squeezed(key) in LISTS and isinstance(inner, list | dict):
            head = (str(v) for k, v in fields.items() if k.lower() in _HEADS and isinstance(v, str))
            found = _items(cast("object", inner), depth + 1)
            return " ".join(next(head, "").split()) or found[0], found[1]
    if fields and all(any(sign.isdigit() for sign in str(key)) for key in fields):
        return "", [_with_number(str(key), item) for key, item in fields.items()]
    return "", []


def _with_number(key: str, item: object) -> Record:
    """Return a step that is under its number: `{"1": "...", "step 2": "..."}`."""
    return (
        {"id": key, **cast("Record", item)} if isinstance(item, dict) else {"id": key, "task": item}
    )


def _fields_by_part(item: object, names: Names) -> dict[str, object] | None:
    """Sort the fields of a step by what they are; of two, the first that says something counts."""
    if isinstance(item, str):
        return {"task": item, "line": True}
    if not isinstance(item, dict):
        return None
    parts: dict[str, object] = {}
    rest: list[str] = []
    fields = sorted(cast("Record", item).items(), key=lambda each: _weight(each[0]))
    for key, value in fields:
        part = None if value in (None, "", []) else _part(key, value, names)
        if part is not None and part not in parts:
            parts[part] = value
        elif further := _further_text(part, key, value):
            rest.append(further)
    if rest:
        parts["brief"] = "\n".join(filter(None, [as_text(parts.get("brief", "")), *rest]))
    if "task" not in parts and "id" in parts and not as_text(parts["id"]).strip().isdigit():
        parts["task"] = parts.pop("id")  # `step: Do it`
    return parts


def _further_text(part: str | None, key: str, value: object) -> str:
    """The text of another field; the specialist may know the meaning of its key."""
    if part in ("task", "brief"):
        return as_text(value)
    text = value.strip() if isinstance(value, str) else ""
    return "" if part is not None or _is_none(text.strip("-—–")) else f"{key}: {text}"


def _read_order_column(
    items: Sequence[object], found: Sequence[dict[str, object] | None], labels: set[str]
) -> None:
    """Treat an unknown key that all steps have as the order, if its values are labels of steps."""
    rows: list[Record] = [cast("Record", each) if isinstance(each, dict) else {} for each in items]
    keys = [key for key in rows[0] if part_of(key) is None and squeezed(key) not in _NUMBERS]
    able = [
        key
        for key in keys
        if all(key in row for row in rows) and _is_order([row[key] for row in rows], labels)
    ]
    for row, parts in zip(rows, found, strict=True):
        if len(able) == 1 and parts is not None and row[able[0]] not in (None, "", []):
            parts["after"] = row[able[0]]


def _is_order(values: Iterable[object], labels: set[str]) -> bool:
    """Whether values only name steps, except the first, which cannot wait for any."""
    texts = [" ".join(_texts(value)).strip(" -—–") for value in values]
    given = [text for text in texts if text and not _is_none(text)]
    orders = [read_order(text, labels) for text in given]
    has_only_refs = all(order is not None and order.refs for order in orders)
    return bool(given) and has_only_refs and not (texts[0] and not _is_none(texts[0]))


def _part(key: str, value: object, names: Names) -> str | None:
    """Return the kind of a field; `step: 2` is a label, and a name means who does it."""
    part = part_of(key)
    if part is None and isinstance(value, str) and names.find(value.strip("@*` ")):
        return "who"
    return "id" if part == "task" and _is_label(as_text(value)) else part


def _is_label(text: str) -> bool:
    """Whether a text is only a label of a step: `2`, `Step 2`, `T2`."""
    written = f"{text.strip(' .:')}: "
    opening = opening_of(written)
    has_number = any(sign.isdigit() for sign in opening.label)
    return has_number and opening.text == len(written)


def _weight(key: str) -> int:
    """Which of several fields is the step's line: its title before its description."""
    word = squeezed(key)
    return {"title": 0, "task": 1, "name": 2, "step": 4, "text": 3, "role": 5, "owner": 5}.get(
        word, 3
    )


def _label(parts: Record) -> str:
    """Return the label of a step; of a list of lines, the beginning of its line."""
    written = as_text(parts.get("id", "")).strip()
    if not written and parts.get("line"):
        return opening_of(as_text(parts["task"])).label
    found = opening_of(f"{written}: x")
    return found.label or label_of(written)


def _entry(
    parts: Record, label: str, names: Names, labels: set[str], titles: Mapping[str, str]
) -> Entry:
    def by_title(title: str) -> str | None:
        return titles.get(squeezed(title))

    task = " ".join(as_text(parts["task"]).split())
    opening = opening_of(task)
    is_line = opening.is_box or bool(opening.label and opening.label == label) or "line" in parts
    line = read_line(task[opening.text if is_line else 0 :], names, labels, by_title)
    for name in _names(parts.get("who")):
        known = names.find(name) or "_".join(name.strip("@*` ").split())
        line.who += [known] if known and known not in line.who else []
    for wait in _texts(parts.get("after")):
        order = read_order(wait, labels)
        if order is not None:
            line.waits += order.refs
        elif wait.strip(" -—–"):
            line.waits.append(by_title(wait) or label_of(wait))
    status = as_text(parts.get("status", "")).lower()
    return Entry(label, line, as_text(parts.get("brief", "")), _MARKS.get(status, " "))


def _names(value: object) -> Iterable[str]:
    for text in _texts(value):
        yield from (name for name in text.split(",") if not _is_none(name))


def _is_none(text: str) -> bool:
    return text.strip().casefold() in words.listed("none") or not text.strip()


def _texts(value: object) -> list[str]:
    """Return the texts in a field: of a text, a number, a list, objects with a name or id."""
    if isinstance(value, list):
        return [text for item in cast("list[object]", value) for text in _texts(item)]
    if isinstance(value, dict):
        fields = cast("Record", value)
        inner = next((v for k, v in fields.items() if part_of(k) in ("id", "task", "who")), None)
        return _texts(inner)
    text = as_text(value).strip()
    return [text] if text else []

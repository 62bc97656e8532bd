"""Lines under or next to a step that say who does it, or what it waits for."""

import re
from collections.abc import Collection

from replan.plan.markdown import words
from replan.replies.vocabulary.naming import Names, squeezed
from replan.replies.written_plans.order_phrases import read_order
from replan.replies.written_plans.step_line import StepLine, read_line

_FIELD = re.compile(
    r"[\s>*+•–-]*+[*_`]{0,2}(?P<key>[^:：=*`|]{1,40}?)[*_`]{0,2}\s*+[:：=]\s*+[*_`]{0,2}\s*+(?P<value>.*)"
)
_PIECES = re.compile(r"(?:(?<!\s)\s++)?[|;]\s*+")
_EDGE = re.compile(
    r"[\s*•+-]*+(?P<from>.{1,200}?)\s*+(?:--?>|=>|→)\s*+\D{0,12}?(?P<to>\w{1,12})\W*+"
)


_PARTS = ("who", "after", "task", "brief", "id", "status")
_WORD_OF = {squeezed(word): part for part in reversed(_PARTS) for word in words.FIELDS[part]} | {
    squeezed(word): part
    for part, names in (("after", ("depends_on", "needs", "after")), ("who", ("assigned_to",)))
    for name in names
    for word in words.listed(name)
}


def part_of(key: str) -> str | None:
    """Return which part of a step a key, a column or a tag holds; None if it holds no part."""
    return _WORD_OF.get(squeezed(key), "id" if key.strip() in ("#", "№") else None)


def is_field(line: str) -> bool:
    found = _FIELD.fullmatch(line)
    if found is None or not found["value"].strip(" *_"):
        return False
    return part_of(found["key"]) in ("who", "after")


def read_field(line: str, step: StepLine, names: Names, labels: Collection[str]) -> bool:
    if not line.strip():
        return False
    pieces = _PIECES.split(line)
    if len(pieces) > 1 and all(map(is_field, pieces)):
        taken = [read_field(piece, step, names, labels) for piece in pieces]
        return all(taken)
    found = _FIELD.fullmatch(line)
    part = part_of(found["key"]) if found else None
    value = found["value"].strip(" \t*_`.") if found else ""
    if part == "who" or (found and squeezed(found["key"]) and names.find(value)):
        return _read_who(value, step, names, labels)
    if part == "after":
        return _read_order(value, step, names, labels)
    if part == "task" and not step.text:
        step.text = value
        return True
    return _read_bare(line, step, names, labels)


def _read_bare(line: str, step: StepLine, names: Names, labels: Collection[str]) -> bool:
    name = names.find(line.strip(" \t*_`>-•+.@"))
    order = None if name else read_order(line.strip(" \t()[]*_`>-.•"), labels)
    if name:
        step.who += [] if name in step.who else [name]
    elif order and order.is_strong:
        step.waits += order.refs
    return name is not None or (order is not None and order.is_strong)


def _read_who(value: str, step: StepLine, names: Names, labels: Collection[str]) -> bool:
    read = read_line(f"({words.listed('assigned_to')[0]}: {value})", names, labels)
    step.who += [name for name in read.who if name not in step.who]
    return bool(read.who) or re.fullmatch(words.NONE, value, re.IGNORECASE) is not None


def _read_order(value: str, step: StepLine, names: Names, labels: Collection[str]) -> bool:
    order = read_order(value, labels)
    refs = order.refs if order else read_line(f"(after {value})", names, labels).waits
    step.waits += refs
    return order is not None or bool(refs)


def is_order_of(line: str, labels: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Read a line that says about a step which steps it waits for, and nothing else."""
    edge = _EDGE.fullmatch(line)
    if edge and edge["to"].casefold() in labels:
        order = read_order(edge["from"], labels)
        return (edge["to"].casefold(), order.refs) if order and not order.is_said else None
    subject, _, rest = line.strip(" \t-*•+.`").replace(":", " ", 1).partition(" ")
    if subject.casefold() in words.listed("step"):
        subject, _, rest = rest.partition(" ")
    label = subject.strip(" #:.").casefold()
    order = read_order(rest, labels) if label in labels else None
    return (label, order.refs) if order and order.is_strong and order.refs else None


def reads_as_field(line: str, names: Names, labels: Collection[str]) -> bool:
    read = StepLine()
    read_field(line, read, names, labels)
    return bool(read.who or read.waits)

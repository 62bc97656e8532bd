"""Steps that are lines of a text, however each begins, rewritten as a task list.

Lines that begin in one way are a series. The series that names specialists and order, else the one
with labels, holds the steps; all other lines stay where and what they are.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

from replan.plan.markdown.lines import dedent, outside_fences, trim_blank
from replan.replies.vocabulary.naming import Names, squeezed
from replan.replies.written_plans.entries import Entry, labels_of, step_lines
from replan.replies.written_plans.openings import Opening, opening_of
from replan.replies.written_plans.order_phrases import read_order
from replan.replies.written_plans.pieces import uncommented
from replan.replies.written_plans.step_fields import (
    is_field,
    is_order_of,
    read_field,
    reads_as_field,
)
from replan.replies.written_plans.step_line import StepLine, read_line

_LEAST = 2
_MOST_LINES = 20_000
_ITEM, _ITEM_END = re.compile(r"<li>", re.IGNORECASE), re.compile(r"</li>", re.IGNORECASE)
_ONE_LINE = re.compile(r"(?:^|(?<=\s))(?:[-*]\s+\[.\]\s+)?(?P<number>\d{1,3})[.)]\s+(?=\S)")


@dataclass(slots=True)
class _Step:
    at: int
    opening: Opening
    end: int = 0
    line: StepLine = field(default_factory=StepLine)
    kept: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class _Text:
    """The lines of a text, each read once, however many steps look at it."""

    lines: list[str]
    openings: list[Opening]
    names: Names
    is_field_line: Callable[[str], bool]
    """Whether a line says who does a step or what it waits for."""


def rewritten(text: str, names: Names) -> str | None:
    """Return a text with its steps as a task list; None if no lines of it are steps."""
    read = _read(_lines(text), names)
    lines, steps = read.lines, _steps_of(read)
    if not steps:
        return None
    _find_ends(read, steps)
    steps, dropped = _without_repetition(read, steps)
    entries = _entries(lines, steps, names)
    _read_order_lines(lines, steps, entries, dropped)
    return _joined(lines, steps, entries, dropped)


def _read(lines: list[str], names: Names) -> _Text:
    @cache
    def is_field_line(line: str) -> bool:
        return is_field(line) or reads_as_field(line, names, ())

    return _Text(lines, [opening_of(line) for line in lines], names, is_field_line)


def _lines(text: str) -> list[str]:
    text = uncommented(text)
    text = re.sub(r"(?m)^([^\S\n]*+)\\([-*+#])", r"\1\2", text)
    text = _ITEM_END.sub("\n", _ITEM.sub("\n- ", text))
    lines = text.split("\n")[:_MOST_LINES]
    return [part for line in lines for part in _split_numbered(line)]


def _split_numbered(line: str) -> list[str]:
    cuts: list[int] = []
    for found in _ONE_LINE.finditer(line):
        if int(found["number"]) == len(cuts) + 1:
            cuts.append(found.start())
    if len(cuts) < _LEAST or line[: cuts[0]].strip(" \t>-*"):
        return [line]
    return [line[a:b].rstrip() for a, b in zip(cuts, [*cuts[1:], len(line)], strict=True)]


def _steps_of(text: _Text) -> list[_Step]:
    ranked = [
        (rank, steps)
        for steps in _lines_that_begin_alike(text)
        if (rank := _rank(text, steps)) is not None
    ]
    return max(ranked, key=lambda each: each[0])[1] if ranked else []


def _lines_that_begin_alike(text: _Text) -> Iterable[list[_Step]]:
    groups: defaultdict[tuple[int, int, bool, str], list[_Step]] = defaultdict(list)
    outside = outside_fences(text.lines)
    for at, (line, opening) in enumerate(zip(text.lines, text.openings, strict=True)):
        if not outside[at] or not line.strip():
            continue
        if opening.label or (opening.is_listed and not opening.level):
            key = (opening.indent, opening.level, opening.is_box, opening.style)
            groups[key].append(_Step(at, opening))
    return groups.values()


def _rank(text: _Text, steps: list[_Step]) -> tuple[int, ...] | None:
    """Return how much lines with the same beginning look like steps; None if they do not."""
    first = steps[0].opening
    is_said = any(_has_name_or_order(text, step) for step in steps)
    is_labelled = len({step.opening.label for step in steps}) > 1
    is_box = first.is_box or first.level > 0
    if not (is_said or is_labelled or first.is_box):
        return None
    if len(steps) < (1 if first.is_box or is_said else _LEAST):
        return None
    return (int(is_said), int(is_labelled), int(is_box), -first.indent, len(steps))


def _has_name_or_order(text: _Text, step: _Step) -> bool:
    """Whether a line, or the lines below it, say who does it or what it waits for."""
    line = text.lines[step.at]
    read = read_line(line[step.opening.text :], text.names, ())
    if read.text and (read.who or read.waits):
        return step.opening.style != "" or not is_field(line)
    for at in range(step.at + 1, min(step.at + 6, len(text.lines))):
        opening = text.openings[at]
        if opening.label and opening.style == step.opening.style:
            return False
        if text.is_field_line(text.lines[at]):
            return bool(step.opening.style or step.opening.is_box)
    return False


def _find_ends(text: _Text, steps: list[_Step]) -> None:
    """Find where each step ends: at the next one, at a heading, or where plain text continues."""
    lines, outside = text.lines, outside_fences(text.lines)
    starts = [*(step.at for step in steps[1:]), len(lines)]
    for step, stop in zip(steps, starts, strict=True):
        at = step.at + 1
        was_blank = False
        while at < stop and not (
            outside[at] and _ends(lines[at], text.openings[at], step.opening, was_blank)
        ):
            was_blank = not lines[at].strip()
            at += 1
        step.end = at


def _ends(line: str, opening: Opening, head: Opening, was_blank: bool) -> bool:  # noqa: FBT001
    """Whether a line below a step no longer belongs to it."""
    if not line.strip():
        return False
    if opening.level:
        return not head.level or opening.level <= head.level
    if re.fullmatch(r"\s*[-*_=]{3,}\s*", line):
        return True
    if head.level or opening.indent > head.indent:
        return False
    if is_field(line) or read_order(line.strip(" ()*_`>"), ()):
        return False
    return was_blank or opening.is_listed or bool(re.fullmatch(r"\s*\*\*[^*]+\*\*:?\s*", line))


def _without_repetition(text: _Text, steps: list[_Step]) -> tuple[list[_Step], set[int]]:
    """Of a plan that was written twice, keep the copy with more details."""
    if len({step.opening.label for step in steps}) == 1:
        return steps, set()
    runs: list[list[_Step]] = []
    seen: set[str] = set()
    for step in steps:
        if not runs or (step.opening.label and step.opening.label in seen):
            runs.append([])
            seen = set()
        seen.add(step.opening.label)
        runs[-1].append(step)
    titles = [[_title(text, step) for step in run] for run in runs]
    if len(runs) == 1 or any(one != titles[0] for one in titles):
        return steps, set()
    counts = [sum(_has_name_or_order(text, step) for step in run) for run in runs]
    best = max(range(len(runs)), key=lambda at: (counts[at], at))
    others = (step for at, run in enumerate(runs) if at != best for step in run)
    return runs[best], {at for step in others for at in range(step.at, step.end)}


def _title(text: _Text, step: _Step) -> str:
    return squeezed(read_line(text.lines[step.at][step.opening.text :], text.names, ()).text)


def _entries(lines: list[str], steps: list[_Step], names: Names) -> list[Entry]:
    labels = [step.opening.label for step in steps]
    if len(set(labels)) == 1:
        labels = [""] * len(steps)  # all the same, as lazy Markdown has it
    known = {label for label in labels if label} or {str(n + 1) for n in range(len(steps))}
    titles: dict[str, str] = {}

    def by_title(title: str) -> str | None:
        return titles.get(squeezed(title))

    for at, (step, label) in enumerate(zip(steps, labels, strict=True), 1):
        text = lines[step.at][step.opening.text :]
        step.line = read_line(text, names, known, by_title)
        titles.setdefault(squeezed(step.line.text), label or str(at))
    for step in steps:
        text = lines[step.at][step.opening.text :]
        step.line = read_line(text, names, known, by_title)
        for line in lines[step.at + 1 : step.end]:
            if not read_field(line, step.line, names, known):
                step.kept.append(line)
    return [
        Entry(label, step.line, body=step.kept) for step, label in zip(steps, labels, strict=True)
    ]


def _read_order_lines(
    lines: list[str], steps: list[_Step], entries: list[Entry], dropped: set[int]
) -> None:
    """Read lines outside the steps that say which step waits for which: `Step 3 depends on 1`."""
    inside = {at for step in steps for at in range(step.at, step.end)} | dropped
    labels = labels_of(entries)
    by_label = dict(zip(labels, entries, strict=False))
    for at, line in enumerate(lines):
        order = is_order_of(line, labels) if at not in inside else None
        if order is not None:
            by_label[order[0]].line.waits += order[1]


def _joined(lines: list[str], steps: list[_Step], entries: list[Entry], dropped: set[int]) -> str:
    """Return the text with the steps as a task list in the places of their lines."""
    written = step_lines(entries)
    text: list[str] = []
    at = 0
    for step, entry, line in zip(steps, entries, written, strict=True):
        text += [row for k, row in enumerate(lines[at : step.at], at) if k not in dropped]
        body = trim_blank(entry.body)
        text.append(line)
        if body:
            text += ["", *(f"  {row}" if row.strip() else "" for row in dedent(body)), ""]
        elif step.end > step.at + 1 and not lines[step.end - 1].strip():
            text.append("")
        at = step.end
    text += [row for k, row in enumerate(lines[at:], at) if k not in dropped]
    return "\n".join(text)

"""Change the lines of one step in its document, and only those that must change."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from replan.plan.markdown.body import write_body, write_quotes
from replan.plan.markdown.lines import Line, indent_of, is_blank
from replan.plan.markdown.outline import PENDING_MARKS
from replan.plan.markdown.reading import Block, number_steps
from replan.plan.markdown.rendering import MARKS, lines_under
from replan.plan.markdown.title import write_title
from replan.plan.model import PlanStep, StepStatus


@dataclass(frozen=True, slots=True)
class Marking:
    """What has to be added to lines."""

    marks: frozenset[int]  # the ids of unmarked steps that need a mark
    numbers: frozenset[int]  # the ids of steps that need their number written
    plain: bool  # whether new steps have no marks, as the document has none


def marking(blocks: Mapping[int, Block], steps: Sequence[PlanStep]) -> Marking:
    """Find out what the lines of a document need."""
    kept = [(blocks[step.id], step) for step in steps if step.id in blocks]
    numbers = _numbers_needed(blocks, steps)
    all_counted = all(block.item.counter is not None for block in blocks.values())
    needy = {step.id for block, step in kept if _needs_mark(block, step, numbers)}
    new = len(kept) < len(steps)
    is_marked = any(block.item.mark is not None for block in blocks.values())
    plain = bool(blocks) and all_counted and not is_marked and not needy
    if not needy and not (new and not plain) and not is_marked:
        return Marking(frozenset(), frozenset(numbers), plain)
    return _with_neighbours(kept, needy, numbers)


def _with_neighbours(
    kept: Sequence[tuple[Block, PlanStep]], needy: set[int], numbers: set[int]
) -> Marking:
    """Mark also those steps that would be taken for text next to the marked ones."""
    groups = {
        block.item.group for block, step in kept if block.item.mark is not None or step.id in needy
    }
    marks = set(needy)
    for block, step in kept:
        if block.item.mark is None and not _is_of_group(block, groups):
            marks.add(step.id)
    implicit = {step.id for block, step in kept if not block.explicit}
    return Marking(frozenset(marks), frozenset(numbers | (marks & implicit)), plain=False)


def _is_of_group(block: Block, groups: set[int]) -> bool:
    return block.explicit and block.item.numbered and block.item.group in groups


def _needs_mark(block: Block, step: PlanStep, numbers: set[int]) -> bool:
    if block.item.mark is not None:
        return False
    return step.status is not StepStatus.PENDING or step.id in numbers


def _numbers_needed(blocks: Mapping[int, Block], steps: Sequence[PlanStep]) -> set[int]:
    """Find the steps that would get another number if theirs was not written."""
    needed: set[int] = set()
    implicit = {step_id for step_id, block in blocks.items() if not block.explicit}
    while True:
        numbers = [
            (None if step.id in implicit and step.id not in needed else str(step.id), 0)
            for step in steps
        ]
        given = number_steps(numbers, ())
        wrong = {step.id for step, number in zip(steps, given, strict=True) if number.id != step.id}
        if not wrong - needed:
            return needed
        needed |= wrong


_in_title = attrgetter(
    *("description", "assigned_to", "joined_by", "dependencies", "condition"),
    *("optional", "priority", "max_retries", "timeout", "writes"),
)
_in_body = attrgetter("brief", "parameters")
_in_quotes = attrgetter("result", "feedback")


class BlockEditor:
    """Writes the new lines of existing steps and of added ones."""

    def __init__(self, lines: Sequence[Line], end: str, needs: Marking) -> None:
        self._lines = lines
        self._end = end
        self._needs = needs

    def edited(self, block: Block, step: PlanStep, *, must_rewrite: bool) -> list[Line]:
        """Return the lines of a step after a change; lines that still fit stay as they are."""
        item = block.item
        lines = list(self._lines[item.start : item.end])
        if must_rewrite or _in_body(block.step) != _in_body(step):
            return [self._title(block, step, lines[0]), *self._under(write_body(step), block)]
        if _in_title(block.step) != _in_title(step):
            title = self._title(block, step, lines[0])
            if block.body.key_lines:
                # The attributes now all are in the title, so the key lines must go.
                return [title, *self._under(write_body(step), block)]
            lines[: block.head] = [title]
        else:
            lines[0] = self._marked(block, step, lines[0])
        if _in_quotes(block.step) != _in_quotes(step):
            lines = self._requoted(block, step, lines)
        return lines

    def new(self, step: PlanStep, beside: Block | None) -> list[Line]:
        """Return the lines of an added step, written like a step beside it."""
        marker, indent = "- ", ""
        if beside is not None and beside.item.depth:
            line = self._lines[beside.item.start].text
            found = _MARKER.match(line)
            indent, marker = (found[1], found[0][len(found[1]) :]) if found else ("", "- ")
        ordered = _COUNTER.match(marker)
        if ordered and step.id <= _LARGEST_COUNTER:
            marker = f"{step.id}{ordered[1]} "
        number = "" if ordered else f"{step.id}. "
        mark = "" if self._needs.plain and step.status is StepStatus.PENDING else _mark(step)
        title = Line(indent + marker + mark + write_title(step, number=number), self._end)
        columns = indent_of(indent) + len(marker)
        return [title, *self._lines_of(lines_under(write_body(step), columns))]

    def _title(self, block: Block, step: PlanStep, line: Line) -> Line:
        item = block.item
        prefix = line.text[: item.content]
        if prefix and not prefix[-1].isspace():
            prefix += " "
        unmarked = item.mark is None and step.id not in self._needs.marks
        counted = item.counter is not None and block.explicit and int(item.counter) == step.id
        mark = "" if unmarked else _mark(step)
        title = write_title(step, number="" if counted else f"{step.id}. ")
        return Line(prefix + mark + title, line.end or self._end)

    def _marked(self, block: Block, step: PlanStep, line: Line) -> Line:
        """Change the mark of a line, or add a mark or a number that it now needs."""
        item, text = block.item, line.text
        number = f"{step.id}. " if step.id in self._needs.numbers else ""
        if item.mark is None:
            mark = _mark(step) if step.id in self._needs.marks else ""
            return Line(text[: item.text] + mark + number + text[item.text :], line.end)
        start, end = item.content, item.content + len(item.mark) + 2
        mark = MARKS[step.status]
        if item.mark and mark in PENDING_MARKS and item.mark in PENDING_MARKS:
            # A mark that a person set to "executing" is read as pending and stays as it is.
            mark = "~" if step.status is StepStatus.EXECUTING else item.mark
        elif item.mark.lower() == mark:
            mark = item.mark
        if not item.mark and not mark.strip() and not number:
            return line
        changed = f"{text[:start]}[{mark}]{text[end : item.text]}{number}{text[item.text :]}"
        return Line(changed, line.end)

    def _requoted(self, block: Block, step: PlanStep, lines: list[Line]) -> list[Line]:
        """Replace the block quotes of a step; the new ones are at its end."""
        # What is under the title is counted from the end; the title may have been shortened.
        first = len(lines) - (block.item.end - block.item.start - block.head)
        quoted = {first + at for quote in block.body.quotes for at in quote}
        kept: list[Line] = []
        for at, line in enumerate(lines):
            after_quote = at - 1 in quoted and is_blank(line.text)
            if at not in quoted and not (after_quote and kept and is_blank(kept[-1].text)):
                kept.append(line)
        while is_blank(kept[-1].text) and len(kept) > 1:
            kept.pop()
        return [*kept, *self._under(write_quotes(step), block)]

    def _under(self, lines: Sequence[str], block: Block) -> list[Line]:
        return self._lines_of(lines_under(lines, self._column(block)))

    def _column(self, block: Block) -> int:
        """Return the indentation of the lines under a step: their own, else what Markdown needs."""
        item = block.item
        below = [line.text for line in self._lines[item.start + block.head : item.end]]
        present = [indent_of(text) for text in below if not is_blank(text)]
        prefix = self._lines[item.start].text[: item.content]
        least = indent_of(prefix) + len(prefix.strip()) + 1 if item.depth else 0
        return max(min(present, default=least), least)

    def _lines_of(self, texts: Sequence[str]) -> list[Line]:
        return [Line(text, self._end) for text in texts]


def _mark(step: PlanStep) -> str:
    return f"[{MARKS[step.status]}] "


_MARKER = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+")
_COUNTER = re.compile(r"\d{1,9}([.)])")
_LARGEST_COUNTER = 999_999_999

"""Write a changed plan into its document, touching only the lines that changed."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

from replan.plan.markdown.body import write_body, write_quotes
from replan.plan.markdown.lines import Line, indent_of, is_blank
from replan.plan.markdown.outline import MARKS, PENDING_MARKS, continues_text
from replan.plan.markdown.reading import Block, Reading, read_document
from replan.plan.markdown.rendering import (
    heading_line,
    lines_under,
    normalised,
    render,
    step_lines,
    visible_parts,
)
from replan.plan.markdown.title import write_title
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.option_table import IN_LINE

_in_title = attrgetter(*IN_LINE)
_in_body = attrgetter("brief", "parameters")
_in_quotes = attrgetter("result", "feedback")
_MARKER = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+")
_COUNTER = re.compile(r"\d{1,9}([.)])")
_LARGEST_COUNTER = 999_999_999

WHOLE = 2
"""All lines of a step are written anew, and not its own line alone."""


def new_lines(step: PlanStep, beside: Block | None) -> list[Line]:
    """Return the lines of an added step, written like a step beside it."""
    marker, indent = "- ", ""
    if beside is not None:
        found = _MARKER.match(beside.lines[0].text)
        indent, marker = (found[1], found[0][len(found[1]) :]) if found else ("", "- ")
    ordered = _COUNTER.match(marker)
    if ordered:
        marker = f"{step.id}{ordered[1]} " if step.id <= _LARGEST_COUNTER else "- "
    return [Line(text) for text in step_lines(step, indent, marker)]


def edited_lines(block: Block, step: PlanStep, anew: int) -> list[Line]:
    """Return the lines of a step after a change; those that still fit stay as they are.

    Args:
        block: The step in its document.
        step: The step as it now is.
        anew: Whether its own line is written anew, or all of it (`WHOLE`).
    """
    lines = list(block.lines)
    is_renamed = anew or _in_title(block.step) != _in_title(step)
    # Once the options are all in the title, the key lines must go.
    is_moved = is_renamed and block.said.key_lines
    if anew >= WHOLE or is_moved or _in_body(block.step) != _in_body(step):
        return [_title(block, step), *_under(write_body(step), block)]
    if is_renamed:
        lines[: block.said.head] = [_title(block, step)]
    else:
        lines[0] = _marked(block, step)
    if _in_quotes(block.step) != _in_quotes(step):
        lines = _requoted(block, step, lines)
    return lines


def _title(block: Block, step: PlanStep) -> Line:
    item, line = block.item, block.lines[0]
    counted = item.counter is not None and block.explicit and int(item.counter) == step.id
    title = write_title(step, number="" if counted else f"{step.id}. ")
    return Line(line.text[: item.content] + _mark(step) + title, line.end)


def _marked(block: Block, step: PlanStep) -> Line:
    """Change the mark of a line, or add a box."""
    item, (text, end) = block.item, block.lines[0]
    if item.mark is None:
        return Line(text[: item.text] + _mark(step) + text[item.text :], end)
    mark, old = MARKS[step.status], item.mark or ""
    if mark.strip(PENDING_MARKS) == old.strip(PENDING_MARKS).lower():
        # Both are the same, or pending in two ways: what a person set to "executing" stays.
        mark = "~" if step.status is StepStatus.EXECUTING else old
    box = f"[{mark}]" + text[item.content + len(old) + 2 : item.text]
    return Line(text[: item.content] + box + text[item.text :], end)


def _requoted(block: Block, step: PlanStep, lines: list[Line]) -> list[Line]:
    """Replace the block quotes of a step; the new ones are at its end."""
    kept: list[Line] = []
    # The title may have been shortened.
    for at, line in enumerate(lines, len(block.lines) - len(lines)):
        after_quote = at - 1 in block.said.quoted and is_blank(line.text)
        doubled = after_quote and bool(kept) and is_blank(kept[-1].text)
        if at not in block.said.quoted and not doubled:
            kept.append(line)
    while is_blank(kept[-1].text) and len(kept) > 1:
        kept.pop()
    return [*kept, *_under(write_quotes(step), block)]


def _under(lines: Sequence[str], block: Block) -> list[Line]:
    return [Line(text) for text in lines_under(lines, _column(block))]


def _column(block: Block) -> int:
    """Return the indentation of the lines under a step: their own, else what Markdown needs."""
    item = block.item
    below = [line.text for line in block.lines[block.said.head :]]
    present = [indent_of(text) for text in below if not is_blank(text)]
    prefix = block.lines[0].text[: item.content]
    least = indent_of(prefix) + len(prefix.strip()) + 1
    return max(min(present, default=least), least)


def _mark(step: PlanStep) -> str:
    return f"[{MARKS[step.status]}] "


_MOST_TRIES = WHOLE + 1
_END = re.compile(r"(?:\r\n|\r|\n)\Z")


def write_document(reading: Reading, plan: TaskPlan) -> str:
    """Return the text of a document after its plan has changed.

    Only the lines that must change do. Where they make the document mean something else, their
    steps are written anew, and then all of it: in every case the result reads back as the plan
    (normalised), if the plan is valid at all.
    """
    wanted = normalised(plan)
    anew = Counter[int](dict.fromkeys(_wrong_steps(reading), WHOLE))
    for _ in range(_MOST_TRIES):
        text = _Composition(reading, wanted, anew).written()
        new = read_document(text)
        if _shows(new, wanted):
            return text
        # Among them are steps without a number that get another one, and have to say it now.
        anew.update(_unlike(new, wanted))
    return reading.bom + render(wanted).replace("\n", reading.end)


def shows(plan: TaskPlan) -> bool:
    """Whether the document of a plan has no mistakes, and exactly its steps and title."""
    return _shows(read_document(plan.content), normalised(plan))


def _shows(reading: Reading, plan: TaskPlan) -> bool:
    """Whether a document reads back as a plan."""
    return (
        (not reading.mistakes or not plan.steps)
        and reading.title == plan.title
        and [block.step.id for block in reading.blocks] == [step.id for step in plan.steps]
        and not _unlike(reading, plan)
    )


def _unlike(reading: Reading, plan: TaskPlan) -> set[int]:
    """The steps of a plan that a document does not have as they are."""
    shown = {block.step.id: visible_parts(block.step) for block in reading.blocks}
    return {step.id for step in plan.steps if shown.get(step.id) != visible_parts(step)}


def _wrong_steps(reading: Reading) -> set[int]:
    """The steps in whose lines a document has mistakes."""
    wrong = {mistake.line - 1 for mistake in reading.mistakes}
    placed = reading.placed() if wrong else ()
    return {
        block.step.id
        for at, block in placed
        if not wrong.isdisjoint(range(at, at + len(block.lines)))
    }


def _is_grown(lines: Sequence[Line], block: Block) -> bool:
    """Whether a step has got more lines under its own; then the next step stands apart."""
    return len(lines) > len(block.lines) and lines[-1].text.startswith((" ", "\t"))


class _Composition:
    """Puts the steps of a plan into the places that the document has for steps."""

    def __init__(self, reading: Reading, plan: TaskPlan, anew: Mapping[int, int]) -> None:
        self._reading = reading
        self._plan = plan
        self._lines: list[Line] = []
        self._blocks = {block.step.id: block for block in reading.blocks}
        self._anew = anew  # how much of steps is written anew, if any
        others = () if reading.mistakes else (step for step in plan.steps if step.id not in anew)
        self._same = {step.id for step in others if self._fits(step)}

    def written(self) -> str:
        reading = self._reading
        self._lines.extend(self._head())
        self._add_steps()
        self._lines.extend(reading.rest)
        had_end = not reading.lines or bool(reading.lines[-1].end)
        text = "".join([text + (end or reading.end) for text, end in self._lines])
        return reading.bom + (text if had_end else _END.sub("", text))

    def _fits(self, step: PlanStep) -> bool:
        block = self._blocks.get(step.id)
        if block is None or (step.status is StepStatus.EXECUTING and block.item.mark != "~"):
            return False
        return visible_parts(block.step) == visible_parts(step)

    def _new_lines(self, step: PlanStep) -> Sequence[Line]:
        """The lines of a step as it now is."""
        block = self._blocks[step.id]
        # In a list without boxes all steps get one at the first change.
        is_boxed = block.item.mark is not None
        if step.id in self._same and (is_boxed or len(self._same) == len(self._plan.steps)):
            return block.lines
        return edited_lines(block, step, self._anew.get(step.id, 0))

    def _add_steps(self) -> None:
        blocks = self._reading.blocks
        kept = iter([step for step in self._plan.steps if step.id in self._blocks])
        remaining = {step.id for step in self._plan.steps}
        following = _new_after(self._plan.steps, self._blocks)
        self._add_new(following.get(None, []), blocks[0] if blocks else None)
        for block in blocks:
            gap, is_last = block.gap, block is blocks[-1]
            if block.step.id not in remaining:
                self._close_up(gap, is_last=is_last)
                continue
            step = next(kept)
            lines = self._new_lines(step)
            new = following.get(step.id, [])
            self._lines.extend(lines)
            self._add_new(new, block)
            last = self._lines[-1].text
            is_grown = _is_grown(lines, block) or (bool(new) and last.startswith((" ", "\t")))
            is_loose = bool(gap) and last != block.lines[-1].text and continues_text(gap[0].text)
            is_apart = is_last or (bool(gap) and is_blank(gap[0].text))
            if is_loose or (is_grown and not is_apart):
                gap = (Line(""), *gap)
            self._lines.extend(gap)

    def _add_new(self, steps: Sequence[PlanStep], beside: Block | None) -> None:
        for step in steps:
            lines = new_lines(step, beside)
            before = self._lines[-1].text if self._lines else ""
            apart = beside is None or len(lines) > 1 or self._is_separated(beside)
            if (apart or before.startswith((" ", "\t", "#"))) and not is_blank(before):
                self._lines.append(Line(""))
            self._lines.extend(lines)

    def _is_separated(self, block: Block) -> bool:
        """Whether a blank line separates a step from the one before, or the first from the next."""
        blocks = self._reading.blocks
        gap = blocks[max(0, blocks.index(block) - 1)].gap
        return len(blocks) > 1 and bool(gap) and is_blank(gap[0].text)

    def _close_up(self, gap: Sequence[Line], *, is_last: bool) -> None:
        """Leave out the blank lines after a removed step, or those before it if it was the last."""
        if all(is_blank(line.text) for line in gap) and not is_last:
            return
        while is_last and self._lines and is_blank(self._lines[-1].text):
            self._lines.pop()
        self._lines.extend(gap)

    def _head(self) -> Sequence[Line]:
        """Return the lines before the first step, with the plan's title."""
        reading, lines, wanted = self._reading, self._reading.head, self._plan.title
        if reading.title == wanted:
            return lines
        new = [Line(heading_line(wanted))] if wanted else []
        if reading.title_at is None:
            return [*lines[: reading.start], *new, Line(""), *lines[reading.start :]]
        after = reading.title_at + 1
        while not wanted and after < len(lines) and is_blank(lines[after].text):
            after += 1
        return [*lines[: reading.title_at], *new, *lines[after:]]


def _new_after(
    steps: Sequence[PlanStep], known: Collection[int]
) -> dict[int | None, list[PlanStep]]:
    """Group the added steps by the known step that each comes after."""
    groups: dict[int | None, list[PlanStep]] = {}
    last: int | None = None
    for step in steps:
        if step.id in known:
            last = step.id
        else:
            groups.setdefault(last, []).append(step)
    return groups

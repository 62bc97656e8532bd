"""Change the lines of one step in its document, and only those that must change."""

import re
from collections.abc import Sequence
from operator import attrgetter

from replan.plan.markdown.body import write_body, write_quotes
from replan.plan.markdown.lines import Line, indent_of, is_blank
from replan.plan.markdown.outline import MARKS, PENDING_MARKS
from replan.plan.markdown.reading import Block
from replan.plan.markdown.rendering import lines_under, step_lines
from replan.plan.markdown.title import write_title
from replan.plan.model import PlanStep, StepStatus
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

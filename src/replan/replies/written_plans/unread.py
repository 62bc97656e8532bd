"""Parts of a plan document that seem to matter and were not read: names, order, steps."""

import re
from collections import Counter
from collections.abc import Collection, Iterator

from replan.errors import Mistake
from replan.plan.markdown.lines import outside_fences
from replan.plan.markdown.overlooked import sequence_word
from replan.plan.markdown.reading import Block, read_document
from replan.replies.vocabulary.naming import Names, squeezed
from replan.replies.written_plans.openings import opening_of
from replan.replies.written_plans.order_phrases import keyword_places
from replan.replies.written_plans.step_fields import is_order_of, reads_as_field
from replan.replies.written_plans.step_line import read_line

_LEAST_REPEATED = 2
_LONGEST_HEADING, _REACH = 80, 30
_NUMBERS = re.compile(r"\d{1,4}")
_KEYED = re.compile(r"(?:id|step_id|number)\s*:\s*\S{1,20}$", re.IGNORECASE)


def unread(text: str, names: Names) -> tuple[Mistake, ...]:
    """Report every place that looks like a part of the plan and was read as text."""
    reading = read_document(text)
    lines = [line.text for line in reading.lines]
    labels = {str(block.step.id) for block in reading.blocks}
    found: list[Mistake] = []
    for block in reading.blocks:
        found += _in_line(block, names, labels)
        found += _below(block, lines, names, labels)
    found += _outside_steps(reading.blocks, lines, names)
    found += _repeated(reading.blocks)
    found += _cut_off(reading.blocks, lines)
    return tuple(found)


def _in_line(block: Block, names: Names, labels: Collection[str]) -> Iterator[Mistake]:
    step = block.step
    if not any(sign.isalpha() for sign in step.description) or _KEYED.match(step.description):
        yield _mistake(block, "looks_like_data", f"'{step.description[:60]}' is nothing to do.")
    read = read_line(step.description, names, labels)
    if [name for name in read.who if name in names.team or not step.assigned_to]:
        yield _mistake(block, "looks_like_name", f"'{read.who[0]}' in it is read as text.")
    if read.waits:
        reason = f"Its text seems to say that it waits for {', '.join(read.waits)}."
        yield _mistake(block, "looks_like_dependency", reason)
    elif step.id > 1 and (word := sequence_word(step)):
        reason = f"It begins with '{word}', but waits for no step."
        yield _mistake(block, "looks_like_dependency", reason)


def _below(
    block: Block, lines: list[str], names: Names, labels: Collection[str]
) -> Iterator[Mistake]:
    body = lines[block.item.start + block.head : block.item.end]
    taken = set(block.body.key_lines)
    outside = outside_fences(body)
    for at, line in enumerate(body):
        is_field = at not in taken and outside[at] and reads_as_field(line, names, labels)
        if is_field and not (block.step.is_finished and line.lstrip().startswith(">")):
            reason = f"'{line.strip()[:60]}' under it is read as text."
            yield _mistake(block, "looks_like_attribute", reason)


def _outside_steps(blocks: Collection[Block], lines: list[str], names: Names) -> Iterator[Mistake]:
    """Report lines between the steps that name steps, or look like one."""
    inside = {at for block in blocks for at in range(block.item.start, block.item.end)}
    outside = outside_fences(lines)
    titles = {squeezed(block.step.description) for block in blocks}
    waits = {str(block.step.id): set(map(str, block.step.dependencies)) for block in blocks}
    for at, line in enumerate(lines):
        if at in inside or not outside[at] or not line.strip():
            continue
        order = is_order_of(line, waits)
        is_lost = order is not None and not set(order[1]) <= waits[order[0]]
        if is_lost or _waits_for_one(line, waits):
            yield _place(at, "order_not_read", f"'{line.strip()[:60]}' is read as text.")
            continue
        opening = opening_of(line)
        if not (opening.label or opening.is_box or opening.level):
            continue
        read = read_line(line[opening.text :], names, waits)
        is_step = any(name in names.team for name in read.who) and opening.label
        if is_step and squeezed(read.text) not in titles:
            yield _place(
                at, "step_not_read", f"'{line.strip()[:60]}' is read as text, not as a step."
            )


def _waits_for_one(line: str, labels: Collection[str]) -> bool:
    """Whether a heading or a short line says that something comes after a number of a step."""
    if len(line) > _LONGEST_HEADING:
        return False
    rests = (line[place : place + _REACH] for place in keyword_places(line))
    return any(number in labels for rest in rests for number in _NUMBERS.findall(rest))


def _repeated(blocks: Collection[Block]) -> Iterator[Mistake]:
    titles = Counter(squeezed(block.step.description) for block in blocks)
    if titles and min(titles.values()) >= _LEAST_REPEATED:
        yield _mistake(next(iter(blocks)), "repeated_steps", "It has each step twice.")


def _cut_off(blocks: Collection[Block], lines: list[str]) -> Iterator[Mistake]:
    last = next(reversed(tuple(blocks)), None)
    if last is None:
        return
    line = lines[last.item.start]
    if any(line.count(left) > line.count(right) for left, right in ("()", "（）", "[]", "{}")):
        yield _mistake(last, "cut_off", "Its line ends within a bracket, as if it were cut off.")


def _mistake(block: Block, code: str, reason: str) -> Mistake:
    return _place(block.item.start, code, f"Step {block.step.id}: {reason}")


def _place(at: int, code: str, reason: str) -> Mistake:
    fix = "Write it like this: - [ ] 3. What is to be done @specialist (after 1, 2)"
    return Mistake(line=at + 1, column=1, code=code, reason=reason, fix=fix)

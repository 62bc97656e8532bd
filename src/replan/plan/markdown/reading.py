"""Turn a plan document into steps, and report every mistake in it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, takewhile

from replan.base.errors import Mistake
from replan.base.texts.bounds import MOST_DEPENDENCIES
from replan.plan.encoding import decode
from replan.plan.markdown.body import key_phrase, read_body
from replan.plan.markdown.lines import Line, split_lines, usual_line_end
from replan.plan.markdown.outline import (
    KNOWN_MARKS,
    MARKS,
    Item,
    continues_text,
    is_marked_line,
    outline,
)
from replan.plan.markdown.title import Said, UnplacedMistake, read_title
from replan.plan.markdown.unread_steps import unread_steps
from replan.plan.model import PlanStep, StepStatus
from replan.plan.option_table import ASSIGNED
from replan.plan.order import misfits

BOM = "\ufeff"

# More than 64 bits are a number that no store keeps.
_MOST_DIGITS = 18
_MOST_WRAPPED_LINES = 8
_LEAST_READINGS, _MOST_READINGS = 16, 256
_MOST_CHARACTERS = 1_000_000
_MOST_KEPT = 10_000

# A document does not say which steps are running, only that they are still to be done.
_STATUS = {
    **{mark: status for status, mark in MARKS.items()},
    "~": StepStatus.PENDING,
    "X": StepStatus.COMPLETED,
}


@dataclass(frozen=True, slots=True)
class Block:
    """A step in its document; in what its lines say, places are counted from its first line."""

    lines: tuple[Line, ...]  # its lines
    gap: tuple[Line, ...]  # those behind them that are in no step
    item: Item  # where its first line has what
    said: Said  # what they say
    step: PlanStep  # the step that they describe
    explicit: bool  # whether they say the step's id


@dataclass(frozen=True, slots=True)
class Reading:
    bom: str  # the byte order mark before the first line, or nothing
    head: tuple[Line, ...]  # the lines before the first step
    rest: tuple[Line, ...]  # those after its end, if it has no steps
    start: int  # the line with which it begins, behind a fence around all of it
    end: str  # the line end that it uses most
    title: str
    title_at: int | None  # the line of the title
    blocks: tuple[Block, ...]  # its steps; they fit together, whatever the mistakes
    mistakes: tuple[Mistake, ...]  # what is wrong with it, in the order of the lines

    @property
    def lines(self) -> list[Line]:
        """All lines of the document."""
        steps = (line for block in self.blocks for line in (*block.lines, *block.gap))
        return [*self.head, *steps, *self.rest]

    def placed(self) -> Iterator[tuple[int, Block]]:
        """Each step with its first line, counted from 0."""
        at = len(self.head)
        for block in self.blocks:
            yield at, block
            at += len(block.lines) + len(block.gap)


# What the last texts say that were read: many short ones, few long ones. Writing a plan begins and
# ends with reading its document, and whoever reads what was written is next.
_readings: dict[tuple[str, frozenset[int]], Reading] = {}


def read_document(text: str, known: frozenset[int] = frozenset()) -> Reading:
    """Return what a document says."""
    reading = _readings.get((text, known))
    if reading is None:
        reading = _readings[text, known] = read_afresh(text, known)
        while _has_too_many_readings():
            del _readings[next(iter(_readings))]
    return reading


def forget_readings() -> None:
    """Forget what any text says."""
    _readings.clear()
    _read_short_lines.cache_clear()


def _has_too_many_readings() -> bool:
    return len(_readings) > _LEAST_READINGS and (
        len(_readings) > _MOST_READINGS or sum(len(key) for key, _ in _readings) > _MOST_CHARACTERS
    )


def read_afresh(text: str, known_ids: frozenset[int] = frozenset()) -> Reading:
    """Return what a document says, whether or not that is known already."""
    lines = split_lines(text.removeprefix(BOM))
    texts = [line.text for line in lines]
    document_outline = outline(texts)
    starts = [item.start for item in document_outline.items]
    blocks = _read_blocks(lines, texts, document_outline.items, known_ids)
    sound_blocks, complaints = _sound_blocks(blocks, known_ids)
    blocks_with_start = list(zip(starts, blocks, strict=True))
    line_of_step = {
        block.step.id: start + 1 for start, block in blocks_with_start if block.explicit
    }
    mistakes = list(unread_steps(texts, document_outline, {block.step.id for block in blocks}))
    for start, block in blocks_with_start:
        wrong = [*_complaints(block, start + 1, line_of_step), *complaints.get(block.step.id, ())]
        mistakes += [mistake_at(start, block, complaint) for complaint in wrong]
    if not blocks:
        in_code = any(is_marked_line(texts[at]) for at in document_outline.verbatim)
        mistakes.append((_STEPS_IN_CODE if in_code else _NO_STEPS).placed(1, 1))
    title, title_at = document_outline.title or ("", None)
    first = starts[0] if starts else document_outline.window.stop
    return Reading(
        BOM if text.startswith(BOM) else "",
        head=tuple(lines[:first]),
        rest=() if starts else tuple(lines[first:]),
        start=document_outline.window.start,
        end=usual_line_end(lines),
        title=decode(title),
        title_at=title_at,
        blocks=sound_blocks,
        mistakes=tuple(sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column))),
    )


def mistake_at(start: int, block: Block, complaint: UnplacedMistake) -> Mistake:
    """Place a complaint about a step that begins at the line `start`."""
    at, about = complaint.line, complaint.about
    line = block.lines[at].text
    # What a title ends with is what most complaints about it mean.
    column = line.find(about) if at or complaint.code in _IN_FRONT else line.rfind(about)
    if not about or column < 0:
        column = 0 if at else block.item.content
    return complaint.placed(start + at + 1, column + 1)


def read_lines(texts: Sequence[str], start: int, counter: str | None) -> Said:
    """Read the lines of one step.

    Args:
        texts: The lines.
        start: Where in the first one the text begins.
        counter: The number in its list marker.
    """
    is_short = sum(map(len, texts)) <= _MOST_KEPT
    read = _read_short_lines if is_short else _read_short_lines.__wrapped__
    return read(tuple(texts), start, counter)


# Of a plan that is written again, few steps have changed.
@lru_cache(maxsize=2_048)
def _read_short_lines(texts: tuple[str, ...], start: int, counter: str | None) -> Said:
    head = 1 + _wrapped_lines(texts, start)
    said = read_title(" ".join(line.strip() for line in (texts[0][start:], *texts[1:head])))
    said.head, said.number = head, said.number or counter
    read_body(texts[head:], said, head)
    return said


def _read_blocks(
    lines: Sequence[Line], texts: Sequence[str], items: Sequence[Item], known: frozenset[int]
) -> list[Block]:
    """Read the steps, each alone but for its number."""
    lazy = _lazy_groups(items)
    counters = [None if item.group in lazy else item.counter for item in items]
    every = [
        read_lines(texts[item.start : item.end], item.text, counter)
        for item, counter in zip(items, counters, strict=True)
    ]
    numbers = number_steps([said.number for said in every], known)
    ends = [*(item.start for item in items), len(lines)][1:]
    blocks: list[Block] = []
    for item, end, said, (step_id, is_own) in zip(items, ends, every, numbers, strict=True):
        block_lines, gap = tuple(lines[item.start : item.end]), tuple(lines[item.end : end])
        step = step_of(item.mark, said, step_id)
        blocks.append(Block(block_lines, gap, item, said, step, explicit=is_own))
    return blocks


def _complaints(
    block: Block, line: int, line_of_step: Mapping[int, int]
) -> Iterator[UnplacedMistake]:
    """What is wrong with a step alone, and with its number; `own` has the lines of all numbers."""
    mark, number, step_id = block.item.mark, block.said.number, block.step.id
    if mark and mark not in KNOWN_MARKS:
        reason = f"'[{mark}]' is not the mark of a step."
        fix = "Use [ ] pending, [~] executing, [x] completed, [!] failed or [-] skipped."
        yield UnplacedMistake("bad_mark", f"[{mark}]", reason, fix)
    if number is not None and not block.explicit:
        if earlier := line_of_step.get(_value_of(number)):
            reason = f"Lines {earlier} and {line} both have step {_value_of(number)}."
            fix = "Give each step its own number."
            yield UnplacedMistake("duplicate_step", number, reason, fix)
        else:
            reason = f"'{number}' is not the number of a step."
            yield UnplacedMistake("bad_number", number, reason, "Number the steps from 1.")
    if not block.said.description:
        reason = f"Step {step_id} does not say what is to be done."
        yield UnplacedMistake("empty_description", "", reason, "Write it after the number.")
    yield from block.said.complaints


def _sound_blocks(
    blocks: Sequence[Block], known: frozenset[int]
) -> tuple[tuple[Block, ...], dict[int, list[UnplacedMistake]]]:
    """Make the steps fit together, by what they wait for; and what was wrong, by step."""
    complaints: dict[int, list[UnplacedMistake]] = {}
    dropped: dict[int, set[int]] = {}
    steps: list[PlanStep] = []
    left = MOST_DEPENDENCIES
    for block in blocks:
        before, left = left, left - len(block.step.dependencies)
        if left < 0 <= before:
            complaints[block.step.id] = [_TOO_MANY_DEPENDENCIES]
        steps.append(block.step.replace(dependencies=()) if left < 0 else block.step)
    for found in misfits(steps, known):
        complaint = UnplacedMistake(found.code, str(found.awaited), found.reason, found.fix)
        complaints.setdefault(found.step, []).append(complaint)
        dropped.setdefault(found.step, set()).add(found.awaited)
    sound = (_without(step, dropped.get(step.id, ())) for step in steps)
    pairs = zip(blocks, sound, strict=True)
    return tuple(b if b.step is step else replace(b, step=step) for b, step in pairs), complaints


def _without(step: PlanStep, dropped: Collection[int]) -> PlanStep:
    """Return a step that does not wait for some steps."""
    if not dropped:
        return step
    kept = tuple(other for other in step.dependencies if other not in dropped)
    lost = step.condition is not None and step.condition.step in dropped
    return step.replace(dependencies=kept, condition=None if lost else step.condition)


def step_of(mark: str | None, said: Said, step_id: int) -> PlanStep:
    """The step that an item with this mark describes."""
    options = dict(said.options)
    specialists = options.pop(ASSIGNED.field, ())
    return PlanStep(
        id=step_id,
        description=said.description or f"Step {step_id}",
        brief=said.brief,
        parameters=said.parameters,
        status=_STATUS.get(mark or " ", StepStatus.PENDING),
        assigned_to=specialists[0] if specialists else "",
        joined_by=specialists[1:],
        result=said.result,
        feedback=said.feedback,
        **options,
    )


_IN_FRONT = ("bad_mark", "bad_number", "duplicate_step")
_TOO_MANY_DEPENDENCIES = UnplacedMistake(
    "too_large",
    "",
    f"With this step the steps have more than {MOST_DEPENDENCIES:,} dependencies.",
    "Let steps wait for one step that brings others together.",
)
_NO_STEPS = UnplacedMistake(
    "no_steps",
    "",
    "This document has no steps.",
    "Write each step on a line like this: - [ ] 1. What is to be done @specialist",
)
_STEPS_IN_CODE = UnplacedMistake(
    "no_steps",
    "",
    "The steps of this document are in code, a comment or a quote, and so are none.",
    "Write them as a list outside. Only a fence around all of the document may stay.",
)


def _wrapped_lines(texts: Sequence[str], start: int) -> int:
    """Count the lines into which a step's line was broken: names or options end the last one."""
    more = takewhile(lambda line: continues_text(line) and not key_phrase(line), texts[1:])
    lines = sum(1 for _ in more)
    if not 0 < lines <= _MOST_WRAPPED_LINES:
        return 0
    is_whole = read_title(texts[0][start:]).options or not read_title(texts[lines]).options
    return 0 if is_whole else lines


def _lazy_groups(items: Sequence[Item]) -> frozenset[int]:
    """Find the lists whose items are all `1.`, as in lazy Markdown: they have no numbers."""
    counters: dict[int, list[int]] = {}
    for item in items:
        counters.setdefault(item.group, []).append(int(item.counter or 0))
    return frozenset(
        group for group, found in counters.items() if len(found) > 1 and set(found) == {1}
    )


def number_steps(
    numbers: Sequence[str | None], reserved: Collection[int] = ()
) -> list[tuple[int, bool]]:
    """Give each step the number that it is the first to state, or the next free one.

    Returns:
        The numbers, and whether each is the one that the step states.
    """
    first: dict[int, int] = {}
    for at, number in enumerate(numbers):
        if number is not None and (value := _value_of(number)):
            first.setdefault(value, at)
    number_at = {at: value for value, at in first.items()}
    free = (number for number in count(1) if number not in first and number not in reserved)
    return [
        (number_at[at], True) if at in number_at else (next(free), False)
        for at in range(len(numbers))
    ]


def _value_of(number: str) -> int:
    """The value of a number that can be that of a step; else 0."""
    return int(number) if len(number) <= _MOST_DIGITS else 0

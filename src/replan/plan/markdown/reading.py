"""Turn a plan document into steps, and report every mistake in it."""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from replan.errors import Mistake
from replan.plan.encoding import decode
from replan.plan.markdown.body import key_phrase, read_body
from replan.plan.markdown.lines import Line, split_lines
from replan.plan.markdown.outline import (
    KNOWN_MARKS,
    Item,
    Outline,
    continues_text,
    is_marked_line,
    outline,
)
from replan.plan.markdown.seal import without_seal
from replan.plan.markdown.title import Said, UnplacedMistake, read_title
from replan.plan.markdown.unread_steps import unread_steps
from replan.plan.misfits import misfits
from replan.plan.model import PlanStep, StepStatus
from replan.plan.option_table import ASSIGNED
from replan.texts.bounds import MOST_DEPENDENCIES

BOM = "\ufeff"

# More than 64 bits are a number that no store keeps.
_MOST_DIGITS = 18
_MOST_WRAPPED_LINES = 8
_LEAST_READINGS, _MOST_READINGS = 16, 256
_MOST_CHARACTERS = 1_000_000

_STATUS = {
    " ": StepStatus.PENDING,
    "~": StepStatus.PENDING,
    "x": StepStatus.COMPLETED,
    "X": StepStatus.COMPLETED,
    "!": StepStatus.FAILED,
    "-": StepStatus.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Block:
    item: Item  # where the lines are
    head: int  # how many of them are the step's own line; more than one if it was broken
    said: Said  # what they say
    step: PlanStep  # the step that they describe
    explicit: bool  # whether they say the step's id


@dataclass(frozen=True, slots=True)
class Reading:
    bom: str  # the byte order mark before the first line, or nothing
    lines: tuple[Line, ...]  # the lines, without it
    window: range  # those that are the document, without a fence around all of it
    title: str
    title_at: int | None  # the line of the title
    blocks: tuple[Block, ...]  # its steps; they fit together, whatever the mistakes
    mistakes: tuple[Mistake, ...]  # what is wrong with it, in the order of the lines


class _KeptReadings(OrderedDict[tuple[str, frozenset[int]], Reading]):
    """What the last texts say that were read or written: many short ones, few long ones."""

    def keep(self, text: str, known: frozenset[int], reading: Reading) -> None:
        self[text, known] = reading
        while len(self) > _LEAST_READINGS and (
            len(self) > _MOST_READINGS or sum(len(key) for key, _ in self) > _MOST_CHARACTERS
        ):
            self.popitem(last=False)


# Writing a plan begins with reading its document, and whoever reads what was written is next.
_readings = _KeptReadings()


def read_document(text: str, known: frozenset[int] = frozenset()) -> Reading:
    """Return what a document says."""
    reading = _readings.get((text, known))
    if reading is None:
        reading = read_afresh(text, known)
        _readings.keep(text, known, reading)
    return reading


def forget_readings() -> None:
    """Forget what any text says."""
    _readings.clear()


def keep_reading(text: str, reading: Reading) -> None:
    """Keep what a text is known to say, so that nobody has to read it."""
    _readings.keep(text, frozenset(), reading)


def read_afresh(text: str, known: frozenset[int] = frozenset()) -> Reading:
    """Return what a document says, whether or not that is known already."""
    bom = BOM if text.startswith(BOM) else ""
    lines = split_lines(text.removeprefix(BOM))
    texts = [line.text for line in without_seal(lines)]
    found = outline(texts)
    blocks, mistakes = _StepsReader(texts, found, known).read()
    title, title_at = found.title or ("", None)
    return Reading(bom, tuple(lines), found.window, decode(title), title_at, blocks, mistakes)


def read_lines(texts: Sequence[str], item: Item, counter: str | None) -> tuple[int, Said]:
    """Read the lines of one step: how many are its own line, and what all of them say."""
    head = 1 + _wrapped_lines(texts, item)
    lines = [texts[item.start][item.text :], *texts[item.start + 1 : item.start + head]]
    said = read_title(" ".join(line.strip() for line in lines))
    said.number = said.number or counter
    read_body(texts[item.start + head : item.end], said, head)
    return head, said


class _StepsReader:
    """Reads the items of an outline."""

    def __init__(self, texts: list[str], found: Outline, known: frozenset[int]) -> None:
        self._texts = texts
        self._outline = found
        self._known = known
        self._mistakes: list[Mistake] = []

    def read(self) -> tuple[tuple[Block, ...], tuple[Mistake, ...]]:
        items = self._outline.items
        lazy = _lazy_groups(items)
        parts = [
            read_lines(self._texts, item, None if item.group in lazy else item.counter)
            for item in items
        ]
        numbers = number_steps([said.number for _, said in parts], self._known)
        drafts = [
            Block(item, head, said, step_of(item, said, step_id), explicit)
            for item, (head, said), (step_id, explicit) in zip(items, parts, numbers, strict=True)
        ]
        lines = {block.step.id: block.item.start + 1 for block in drafts if block.explicit}
        for block in drafts:
            self._add_mistakes(block, lines)
        places = {block.step.id: block.item for block in drafts}
        steps = list(self._bounded(drafts))
        dropped: dict[int, set[int]] = {}
        for found in misfits(steps, self._known):
            dropped.setdefault(found.step, set()).add(found.awaited)
            complaint = UnplacedMistake(found.code, str(found.awaited), found.reason, found.fix)
            self._mistake(places[found.step].start, complaint, places[found.step])
        if not drafts:
            self._mistake(0, _STEPS_IN_CODE if self._has_steps_in_code() else _NO_STEPS)
        self._mistakes += unread_steps(self._texts, self._outline, places)
        sound = [_without(step, dropped.get(step.id, ())) for step in steps]
        blocks = tuple(
            block if block.step is step else replace(block, step=step)
            for block, step in zip(drafts, sound, strict=True)
        )
        return blocks, tuple(sorted(self._mistakes, key=lambda each: (each.line, each.column)))

    def _add_mistakes(self, block: Block, lines: Mapping[int, int]) -> None:
        """Add what is wrong with a step alone, and with its number; `lines` have the others."""
        item, said, step_id = block.item, block.said, block.step.id
        if item.mark and item.mark not in KNOWN_MARKS:
            self._mistake(item.start, _bad_mark(item.mark), item)
        if said.number is not None and not block.explicit:
            self._mistake(item.start, _bad_number(said.number, item.start + 1, lines))
        if not said.description:
            reason = f"Step {step_id} does not say what is to be done."
            fix = "Write it after the number."
            self._mistake(item.start, UnplacedMistake("empty_description", "", reason, fix), item)
        for at, complaint in said.complaints:
            self._mistake(item.start + at, complaint, None if at else item)

    def _bounded(self, blocks: Sequence[Block]) -> Iterator[PlanStep]:
        """The steps; beyond a number of dependencies of all of them they have none."""
        left = MOST_DEPENDENCIES
        for block in blocks:
            before, left = left, left - len(block.step.dependencies)
            if left < 0 <= before:
                self._mistake(block.item.start, _TOO_MANY_DEPENDENCIES, block.item)
            yield block.step.replace(dependencies=()) if left < 0 else block.step

    def _has_steps_in_code(self) -> bool:
        """Whether blocks of code hold what would be steps elsewhere."""
        return any(is_marked_line(self._texts[at]) for at in self._outline.verbatim)

    def _mistake(self, at: int, complaint: UnplacedMistake, item: Item | None = None) -> None:
        line = self._texts[at] if at < len(self._texts) else ""
        place = line.rfind(complaint.about) if item else line.find(complaint.about)
        column = place if complaint.about and place >= 0 else item.content if item else 0
        self._mistakes.append(complaint.at(at + 1, column + 1))


def _without(step: PlanStep, dropped: Collection[int]) -> PlanStep:
    """Return a step that does not wait for some steps."""
    if not dropped:
        return step
    kept = tuple(other for other in step.dependencies if other not in dropped)
    lost = step.condition is not None and step.condition.step in dropped
    return step.replace(dependencies=kept, condition=None if lost else step.condition)


def step_of(item: Item, said: Said, step_id: int) -> PlanStep:
    """The step that the lines of an item describe."""
    options = dict(said.options)
    specialists = options.pop(ASSIGNED.field, ())
    return PlanStep(
        id=step_id,
        description=said.description or f"Step {step_id}",
        brief=said.brief,
        parameters=said.parameters,
        status=_STATUS.get(item.mark or " ", StepStatus.PENDING),
        assigned_to=specialists[0] if specialists else "",
        joined_by=specialists[1:],
        result=said.result,
        feedback=said.feedback,
        **options,
    )


def _bad_mark(mark: str) -> UnplacedMistake:
    reason = f"'[{mark}]' is not the mark of a step."
    fix = "Use [ ] pending, [~] executing, [x] completed, [!] failed or [-] skipped."
    return UnplacedMistake("bad_mark", f"[{mark}]", reason, fix)


def _bad_number(number: str, line: int, lines: Mapping[int, int]) -> UnplacedMistake:
    value = _value_of(number)
    if not value:
        reason = f"'{number}' is not the number of a step."
        return UnplacedMistake("bad_number", number, reason, "Number the steps from 1.")
    reason = f"Lines {lines[value]} and {line} both have step {value}."
    return UnplacedMistake("duplicate_step", number, reason, "Give each step its own number.")


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


def _wrapped_lines(texts: Sequence[str], item: Item) -> int:
    """Count the lines into which a step's line was broken: names or options end the last one."""
    end = item.start + 1
    while end < item.end and continues_text(texts[end]) and not key_phrase(texts[end]):
        end += 1
    if not 0 < end - item.start - 1 <= _MOST_WRAPPED_LINES:
        return 0
    if read_title(texts[item.start][item.text :]).options or not read_title(texts[end - 1]).options:
        return 0
    return end - item.start - 1


def _lazy_groups(items: Sequence[Item]) -> frozenset[int]:
    """Find the lists whose items are all `1.`, as in lazy Markdown: they have no numbers."""
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    return frozenset(
        group
        for group, members in groups.items()
        if len(members) > 1 and all(int(item.counter or 0) == 1 for item in members)
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
    own = {at: value for value, at in first.items()}
    free = (number for number in count(1) if number not in first and number not in reserved)
    return [(own[at], True) if at in own else (next(free), False) for at in range(len(numbers))]


def _value_of(number: str) -> int:
    """The value of a number that can be that of a step; else 0."""
    return int(number) if len(number) <= _MOST_DIGITS else 0

"""Turn a plan document into steps, and report every mistake in it."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from replan.errors import Mistake
from replan.plan.markdown.attributes import Attributes
from replan.plan.markdown.body import Body, read_body
from replan.plan.markdown.encoding import decode
from replan.plan.markdown.lines import Line, is_blank, split_lines
from replan.plan.markdown.outline import KNOWN_MARKS, Item, Outline, outline
from replan.plan.markdown.phrases import read_key_line
from replan.plan.markdown.repair import repair
from replan.plan.markdown.seal import without_seal
from replan.plan.markdown.title import Title, UnplacedMistake, own_number, read_title, repeated
from replan.plan.markdown.unread_steps import begins_with_box, unread_steps
from replan.plan.model import PlanStep, StepStatus
from replan.texts.bounds import MOST_DEPENDENCIES

BOM = "\ufeff"

# More than 64 bits are a number that no store keeps.
_MOST_DIGITS = 18

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
    body: Body  # what is under the first of them
    step: PlanStep  # what they say together
    explicit: bool  # whether they say the step's id


@dataclass(frozen=True, slots=True)
class Reading:
    bom: str  # the byte order mark before the first line, or nothing
    lines: tuple[Line, ...]  # the lines, without it
    outline: Outline  # where its parts are
    title: str
    blocks: tuple[Block, ...]  # its steps; they fit together, whatever the mistakes
    mistakes: tuple[Mistake, ...]  # what is wrong with it, in the order of the lines


@dataclass(frozen=True, slots=True)
class Numbered:
    id: int  # the id; one that no other step of the document has
    explicit: bool  # whether the document says it; else it follows from the steps before
    complaint: UnplacedMistake | None = None  # what is wrong with the number that the document says


def read_document(text: str, known: frozenset[int] = frozenset()) -> Reading:
    # The cache tells a default from the same value that is given.
    return _read_document(text, known)


# Writing a plan reads what it wrote, and the next writing begins with reading the same text.
@lru_cache(maxsize=16)
def _read_document(text: str, known: frozenset[int]) -> Reading:
    bom = BOM if text.startswith(BOM) else ""
    lines = split_lines(text.removeprefix(BOM))
    read = without_seal(lines)
    found = outline(read)
    blocks, mistakes = _StepsReader([line.text for line in read], found, known).read()
    title = decode(found.title.text) if found.title else ""
    return Reading(bom, tuple(lines), found, title, blocks, mistakes)


class _StepsReader:
    """Reads the items of an outline."""

    def __init__(self, texts: list[str], found: Outline, known: frozenset[int]) -> None:
        self._texts = texts
        self._outline = found
        self._items = found.items
        self._known = known
        self._lazy = _lazy_groups(texts, found.items)
        self._mistakes: list[Mistake] = []

    def read(self) -> tuple[tuple[Block, ...], tuple[Mistake, ...]]:
        heads = [1 + wrapped_lines(self._texts, item) for item in self._items]
        titles = list(map(self._title, self._items, heads))
        bodies = [
            read_body(self._texts[item.start + head : item.end])
            for item, head in zip(self._items, heads, strict=True)
        ]
        written = [title.number for title in titles]
        lines = [item.start + 1 for item in self._items]
        numbers = number_steps(list(zip(written, lines, strict=True)), self._known)
        parts = list(zip(self._items, titles, bodies, numbers, strict=True))
        for part, head in zip(parts, heads, strict=True):
            self._complain(*part, head)
        steps, found = repair(list(self._steps(parts)), self._known)
        place = {number.id: item for item, _, _, number in parts}
        for step_id, complaint in found:
            self._mistake(place[step_id].start, complaint, place[step_id])
        blocks = tuple(
            Block(item, head, body, step, number.explicit)
            for (item, _, body, number), head, step in zip(parts, heads, steps, strict=True)
        )
        if not blocks:
            self._mistake(0, _NO_STEPS, None)
        self._mistakes += unread_steps(self._texts, self._outline)
        return blocks, tuple(sorted(self._mistakes, key=lambda each: (each.line, each.column)))

    def _steps(self, parts: Sequence[tuple[Item, Title, Body, Numbered]]) -> Iterator[PlanStep]:
        left = MOST_DEPENDENCIES
        for item, title, body, number in parts:
            attributes = title.attributes | body.attributes
            before, left = left, left - len(attributes.dependencies or ())
            if left < 0 <= before:
                self._mistake(item.start, _TOO_MANY_DEPENDENCIES, item)
            attributes = replace(attributes, dependencies=None) if left < 0 else attributes
            yield _step(item, title.description, body, number.id, attributes)

    def _title(self, item: Item, head: int) -> Title:
        counter = None if item.group in self._lazy else item.counter
        lines = [self._texts[item.start][item.text :], *self._texts[item.start + 1 :][: head - 1]]
        text = " ".join(line.strip() for line in lines) if head > 1 else lines[0]
        return read_title(text, numbered=counter)

    def _complain(self, item: Item, title: Title, body: Body, number: Numbered, head: int) -> None:
        if item.mark and item.mark not in KNOWN_MARKS:
            self._mistake(item.start, _bad_mark(item.mark), item)
        if number.complaint is not None:
            self._mistake(item.start, number.complaint, None)
        if not title.description:
            self._mistake(item.start, _no_description(number.id), item)
        for complaint in title.complaints:
            self._mistake(item.start, complaint, item)
        name = title.attributes.conflict(body.attributes)
        if name is not None:
            self._mistake(item.start, repeated(name, ""), item)
        for placed in body.complaints:
            self._mistake(item.start + head + placed.line, placed.complaint, None)

    def _mistake(self, at: int, complaint: UnplacedMistake, item: Item | None) -> None:
        line = self._texts[at] if at < len(self._texts) else ""
        place = line.rfind(complaint.about) if item else line.find(complaint.about)
        column = place if complaint.about and place >= 0 else item.content if item else 0
        self._mistakes.append(complaint.at(at + 1, column + 1))


def _step(
    item: Item, description: str, body: Body, step_id: int, attributes: Attributes
) -> PlanStep:
    specialists = attributes.specialists or ()
    return PlanStep(
        id=step_id,
        description=description or f"Step {step_id}",
        brief=body.brief,
        parameters=body.parameters,
        status=_STATUS.get(item.mark or " ", StepStatus.PENDING),
        assigned_to=specialists[0] if specialists else "",
        joined_by=specialists[1:],
        result=body.result,
        feedback=body.feedback,
        dependencies=attributes.dependencies or (),
        condition=attributes.condition,
        optional=bool(attributes.optional),
        priority=attributes.priority or 0,
        max_retries=attributes.max_retries,
        timeout=attributes.timeout,
        writes=attributes.writes or (),
    )


def _bad_mark(mark: str) -> UnplacedMistake:
    reason = f"'[{mark}]' is not the mark of a step."
    fix = "Use [ ] pending, [~] executing, [x] completed, [!] failed or [-] skipped."
    return UnplacedMistake("bad_mark", f"[{mark}]", reason, fix)


def _no_description(step_id: int) -> UnplacedMistake:
    reason = f"Step {step_id} does not say what is to be done."
    return UnplacedMistake("empty_description", "", reason, "Write it after the number.")


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


_NO_PLAIN_TEXT = re.compile(r"[ \t]*(?:[-*+>#`~|<=]|\d{1,9}[.)](?:\s|$))")
_MOST_LINES = 8


def wrapped_lines(texts: Sequence[str], item: Item) -> int:
    """Count the lines into which a step's first line was broken: its attributes end the last."""
    lines: list[str] = []
    for text in texts[item.start + 1 : item.end]:
        if is_blank(text) or _NO_PLAIN_TEXT.match(text) or begins_with_box(text):
            break
        if read_key_line(text) is not None:
            break
        lines.append(text)
    if not 0 < len(lines) <= _MOST_LINES or read_title(texts[item.start][item.text :]).attributes:
        return 0
    return len(lines) if read_title(f"1. {lines[-1].strip()}").attributes else 0


def _lazy_groups(texts: Sequence[str], items: Sequence[Item]) -> frozenset[int]:
    """Find the lists whose items are all `1.`, as in lazy Markdown: they have no numbers."""
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    return frozenset(group for group, members in groups.items() if _is_lazy(texts, members))


def _is_lazy(texts: Sequence[str], members: Sequence[Item]) -> bool:
    if len(members) < 2 or any(item.counter is None or int(item.counter) != 1 for item in members):  # noqa: PLR2004 - one item is not a list
        return False
    bare = sum(item.mark is None for item in members)
    careless = [
        item
        for item in members
        if item.mark is not None and own_number(texts[item.start][item.text :]) is None
    ]
    return not careless or bare > 1


def number_steps(
    numbers: Sequence[tuple[str | None, int]], reserved: Collection[int]
) -> list[Numbered]:
    """Give each step its own number, or the next free one."""
    first_line: dict[int, int] = {}
    stated = [_stated_number(number, line, first_line) for number, line in numbers]
    free = (number for number in count(1) if number not in first_line and number not in reserved)
    return [
        Numbered(next(free), explicit=False, complaint=found)
        if not isinstance(found, int)
        else Numbered(found, explicit=True)
        for found in stated
    ]


def _stated_number(
    number: str | None, line: int, first_line: dict[int, int]
) -> int | UnplacedMistake | None:
    """Read the number that a step states; None if it states none."""
    if number is None:
        return None
    value = int(number) if len(number) <= _MOST_DIGITS else 0
    if value < 1:
        reason = f"'{number}' is not the number of a step."
        return UnplacedMistake("bad_number", number, reason, "Number the steps from 1.")
    if value in first_line:
        reason = f"Lines {first_line[value]} and {line} both have step {value}."
        return UnplacedMistake("duplicate_step", number, reason, "Give each step its own number.")
    first_line[value] = line
    return value

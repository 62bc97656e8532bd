"""Which steps of a document need a mark or a number of their own once the plan has changed.

A list without marks is a plan as a whole; with a first mark in it, only what is marked or numbered
beside it is. A step without a number has the next free one, which other steps' coming and going
changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replan.plan.markdown.numbering import number_steps
from replan.plan.markdown.reading import Block
from replan.plan.model import PlanStep, StepStatus


@dataclass(frozen=True, slots=True)
class Marking:
    """What must be written into lines that did not have it."""

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
    return _spread(kept, needy, numbers)


def _spread(kept: Sequence[tuple[Block, PlanStep]], needy: set[int], numbers: set[int]) -> Marking:
    """Mark also those steps that would be taken for text beside the marked ones."""
    groups = {
        block.item.group for block, step in kept if block.item.mark is not None or step.id in needy
    }
    marks = set(needy)
    for block, step in kept:
        if block.item.mark is None and not _belongs(block, groups):
            marks.add(step.id)
    implicit = {step.id for block, step in kept if not block.explicit}
    return Marking(frozenset(marks), frozenset(numbers | (marks & implicit)), plain=False)


def _belongs(block: Block, groups: set[int]) -> bool:
    return block.explicit and block.item.numbered and block.item.group in groups


def _needs_mark(block: Block, step: PlanStep, numbers: set[int]) -> bool:
    if block.item.mark is not None:
        return False
    return step.status is not StepStatus.PENDING or step.id in numbers


def _numbers_needed(blocks: Mapping[int, Block], steps: Sequence[PlanStep]) -> set[int]:
    needed: set[int] = set()
    implicit = {step_id for step_id, block in blocks.items() if not block.explicit}
    while True:
        said = [
            (None if step.id in implicit and step.id not in needed else str(step.id), 0)
            for step in steps
        ]
        given = number_steps(said, ())
        wrong = {step.id for step, number in zip(steps, given, strict=True) if number.id != step.id}
        if not wrong - needed:
            return needed
        needed |= wrong

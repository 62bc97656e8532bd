"""The plan document: a Markdown text and the typed plan in it."""

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from replan.base.errors import Mistake, PlanDocumentError
from replan.base.texts.bounds import PLAN, Bounds, excess_of
from replan.base.texts.storable import first_unwritable, whole_characters
from replan.plan.markdown.reading import Reading, mistake_at, read_document, step_of
from replan.plan.markdown.rendering import render
from replan.plan.markdown.title import UnplacedMistake
from replan.plan.markdown.writing import write_document
from replan.plan.model import PlanStep, TaskPlan


@dataclass(frozen=True)
class PlanDocument:
    """A Markdown document, kept byte for byte, and the plan in it.

    Make one with `parse` or `recover`.

    Attributes:
        text: The document.
        mistakes: What is wrong with it; `parse` returns only documents without mistakes.
    """

    text: str
    mistakes: tuple[Mistake, ...]
    _reading: Reading = field(repr=False)

    @classmethod
    def parse(cls, text: str, *, known: Collection[int] = ()) -> Self:
        """Read a document strictly.

        Args:
            text: The document.
            known: Ids of steps outside the document that its steps may wait for, as in a revision
                that leaves out finished steps. Steps without a number get other numbers.

        Raises:
            PlanDocumentError: The document has mistakes; the error lists them with their fixes.
        """
        document = cls.recover(text, known=known)
        if document.mistakes:
            raise PlanDocumentError(document.mistakes)
        return document

    @classmethod
    def recover(cls, text: str, *, known: Collection[int] = ()) -> Self:
        """Read everything that can be read. Never raises an error.

        Mistakes are dropped or fixed in the plan, not in the text: dependencies on unknown steps
        are removed, repeated numbers are replaced, cycles lose the dependencies that close them. A
        text beyond the bounds of a plan document is not read.
        """
        clean = whole_characters(text)
        beyond = too_large(clean, PLAN)
        reading = read_document("" if beyond else clean, frozenset(known))
        halves = () if clean == text else (_half_character(text),)
        return cls(clean, beyond or (*halves, *reading.mistakes), reading)

    @cached_property
    def plan(self) -> TaskPlan:
        """The plan in its first version, with the marks and results that the document shows."""
        reading = self._reading
        steps = tuple(_with_own_parameters(block.step) for block in reading.blocks)
        return TaskPlan(content=self.text, title=reading.title, steps=steps)

    @property
    def misfits(self) -> tuple[PlanStep, ...]:
        """The steps that cannot wait for what their lines say, with what these say."""
        written = (
            step_of(block.item.mark, block.said, block.step.id) for block in self._reading.blocks
        )
        steps = self.plan.by_id
        return tuple(step for step in written if step.awaits != steps[step.id].awaits)

    def write(self, plan: TaskPlan) -> "PlanDocument":
        """Return the document with a changed plan in it.

        Only the lines that must change do: a mark, a result, the line of a step whose attributes
        changed. Steps that the plan no longer has go, new ones are added where the plan has them.
        The new document reads back as the plan, in the form that `normalised` gives it.
        """
        return PlanDocument.recover(write_document(self._reading, plan))

    def line_of(self, step_id: int) -> int | None:
        """The line, counted from 1, with which a step begins; None if there is no such step."""
        begins = (at + 1 for at, block in self._reading.placed() if block.step.id == step_id)
        return next(begins, None)

    def mistake_in(self, step_id: int, complaint: UnplacedMistake) -> Mistake:
        """Return a mistake with its place in the line of a step of the document."""
        placed = self._reading.placed()
        return next(mistake_at(at, b, complaint) for at, b in placed if b.step.id == step_id)

    def __str__(self) -> str:
        return self.text


def parse_plan_from_markdown(text: str) -> TaskPlan:
    """Read the plan in a Markdown document.

    Raises:
        PlanDocumentError: The document has mistakes; the error lists all of them.
    """
    return PlanDocument.parse(text).plan


def refresh_content(plan: TaskPlan) -> TaskPlan:
    """Return the plan with a `content` that matches its other fields."""
    is_empty = not plan.content.strip()
    content = render(plan) if is_empty else write_document(read_document(plan.content), plan)
    return plan if content == plan.content else plan.replace(content=content)


def looks_like_plan(text: str) -> bool:
    """Whether a text is certainly a plan, and not an answer that contains a list.

    Proof are task marks on list items, but for those in a fence that is within other text, or a
    numbered list of several items of which one names a specialist or what it waits for.
    """
    if excess_of(text, PLAN):
        return False
    reading = read_document(whole_characters(text))
    steps = [block.step for block in reading.blocks]
    is_numbered = len(steps) > 1 and any(step.assigned_to or step.awaits for step in steps)
    return is_numbered or any(block.item.is_marked for block in reading.blocks)


def too_large(text: str, bounds: Bounds) -> tuple[Mistake, ...]:
    """Report where a document exceeds its bounds; such a document is not read at all."""
    found = excess_of(text, bounds)
    if found is None:
        return ()
    return (UnplacedMistake("too_large", "", found.reason, found.fix).placed(found.line, 1),)


def _with_own_parameters(step: PlanStep) -> PlanStep:
    """Return a step with its own copy of the parameters: all readers of a text share a reading."""
    return step.replace(parameters=deepcopy(step.parameters)) if step.parameters else step


def _half_character(text: str) -> Mistake:
    """The mistake of a text with half of a character, at the first one."""
    at = first_unwritable(text)
    return _HALF.placed(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


_HALF = UnplacedMistake(
    "bad_character", "", "Here is half of a character.", "Save the document as UTF-8."
)

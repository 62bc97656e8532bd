"""What a model is told of its plan: mistakes, and what may be meant otherwise than it is read."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from replan.base.texts.bounds import MODEL_PLAN
from replan.plan.changes import title_key
from replan.plan.markdown.document import PlanDocument, too_large
from replan.plan.markdown.overlooked import overlooked
from replan.plan.markdown.reading import read_document
from replan.state.team import SpecialistCard


def mistakes_in(text: str, document: PlanDocument, team: Sequence[SpecialistCard]) -> Iterator[str]:
    """What a model is told of its plan: mistakes, and what may be meant for a part of it."""
    if beyond := too_large(text, MODEL_PLAN):
        yield from map(str, beyond)
        return
    yield from map(str, document.mistakes)
    yield from (str(warning) for warning in overlooked(text) if warning.kind in _ASKED)
    yield from _in_blocks(text)
    yield from _without_names(document, team)
    titles = Counter(map(title_key, document.plan.steps))
    if titles and min(titles.values()) > 1:
        yield "plan: it has each step twice"


def _in_blocks(text: str) -> Iterator[str]:
    """What is odd in the lines of a plan: steps without a number, and text that is not indented."""
    reading = read_document(text)
    heads = {start + at for start, block in reading.placed() for at in range(block.said.head)}
    for at, line in enumerate(reading.lines):
        is_detail = line.text.startswith(("  ", "\t"))
        sign = _IN_DETAIL if is_detail else _IN_STEP
        if at not in heads and sign.search(line.text[:_REACH]):
            yield f"line {at + 1}: '{line.text.strip()[:_LONGEST_SHOWN]}' is read as text, no step"
    has_numbers = any(block.explicit for block in reading.blocks)
    for at, block in reading.placed():
        if has_numbers and not block.explicit:
            yield f"line {at + 1}: '{block.step.description[:_LONGEST_SHOWN]}' has no number"
        for place, line in enumerate(block.lines[block.said.head :], at + block.said.head + 1):
            if line.text.strip() and not line.text.startswith(("  ", "\t")):
                shown = line.text.strip()[:_LONGEST_SHOWN]
                yield f"line {place}: '{shown}' is read as a brief; indent it"


def _without_names(document: PlanDocument, team: Sequence[SpecialistCard]) -> Iterator[str]:
    """The steps that miss the name of a specialist."""
    steps = document.plan.steps
    has_names = any(step.specialists for step in steps)
    names = {card.name.casefold() for card in team}
    for step in steps:
        # A name on a line of its own was broken off the step's line.
        words = {*_WORD.findall(step.description.casefold())}
        words |= {line.strip(" \t@*`") for line in step.brief.casefold().split("\n")}
        is_named = step.specialists or step.is_finished
        if not is_named and (has_names or not names.isdisjoint(words)):
            yield f"line {document.line_of(step.id)}: step {step.id} says nobody; write @name"


_ASKED = ("dependency", "name", "number")
_LONGEST_SHOWN, _REACH = 60, 2_000
_IN_DETAIL = re.compile(
    r"[(\uff08]after \d|\A\s*+(?:after \d|\[[ ~xX!-]?\]\s)|(?<=\S)- \[ \]|(?<=\S )- \[ \]"
)
_IN_STEP = re.compile(r"[(\uff08]after \d|\[ \]|(?<!\w)@\w")
_WORD = re.compile(r"[a-z0-9_]+(?:[.-]+[a-z0-9_]+)*+|[^\W_a-z0-9]+")

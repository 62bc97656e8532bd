"""Find the plan in a text, in whatever form, and write it as a plan document.

A document that is one already stays byte for byte. Else the steps are looked for as data and as
lines; its outcome is read again as a document, and whatever is then still not understood is a
problem to report to the model.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from replan.errors import Mistake
from replan.plan.markdown import words
from replan.plan.markdown.document import PlanDocument, looks_like_plan, too_large
from replan.plan.markdown.reading import read_document
from replan.plan.model import PlanStep
from replan.replies.forms.json_text import decode
from replan.replies.forms.wrapping import NEUTRAL_LANGUAGES, first_fence, trimmed, whole_fence
from replan.replies.vocabulary.naming import Names
from replan.replies.written_plans.accounting import unaccounted
from replan.replies.written_plans.listings import rewritten
from replan.replies.written_plans.records import plan_text
from replan.replies.written_plans.structures import steps_in
from replan.replies.written_plans.unread import unread
from replan.texts.bounds import MODEL_PLAN

_LEAST = 2
_LONGEST = 60_000
"""Longer texts are read only as plan documents."""

_DOUBTS = ("cut_off", "name_not_read", "order_not_read", "step_not_read")
_STRUCTURED = NEUTRAL_LANGUAGES | {"xml", "html", "plan", "tasks", "csv", "yaml"}
_MARGIN = re.compile(r"^(?:[ \t]*(?:>[ \t]?|\|[ \t](?=[-*\d]))|[ \t]{2,})")
_MARGINS = re.compile(r"(?:[ \t]*(?:>|\|[ \t](?=[-*\d]))|[ \t]{2}|[ \t]*$)")


class FoundPlan(NamedTuple):
    text: str  # the plan document
    problems: tuple[Mistake, ...]  # what in it was not understood, or cannot be
    is_certain: bool  # whether the text can be nothing but a plan for this team
    is_cut: bool = False  # whether its reply was cut off, so that the steps in it are not all

    @property
    def doubt(self) -> str:
        """Signs that the document is not complete; the document itself does not show it."""
        return next((p.reason for p in self.problems if p.code in _DOUBTS), "")


def problems_of(text: str, names: Names, known: Collection[int] = ()) -> tuple[Mistake, ...]:
    """Report everything that is wrong, or was not understood, in a model's plan document."""
    return _problems_of(text, names.team, frozenset(known))


# One node finds the plan in a reply, and the next one asks what is wrong with it.
@lru_cache(maxsize=16)
def _problems_of(text: str, team: tuple[str, ...], known: frozenset[int]) -> tuple[Mistake, ...]:
    beyond = too_large(text, MODEL_PLAN)
    return beyond or (
        *PlanDocument.recover(text, known=known).mistakes,
        *unread(text, Names(team)),
    )


def find_plan(
    body: str, team: Collection[str] = (), *, expected: bool, is_cut: bool = False
) -> FoundPlan | None:
    """Find the plan in a body: of all its forms, the one with the fewest problems."""
    if beyond := too_large(body, MODEL_PLAN):
        return FoundPlan(body, beyond, is_certain=False, is_cut=is_cut) if expected else None
    names = Names(team)
    best: FoundPlan | None = None
    fewest = 0
    for form, is_proof in _forms(_unwrapped(body), names):
        text = form.rstrip() + _ENDLESS if is_cut else form
        problems = problems_of(text, names)
        if not problems and len(body) <= _LONGEST:
            problems = tuple(unaccounted(body, _steps_in(text), names))
        found = FoundPlan(text, problems, _is_bound(text, names))
        has_steps = all(problem.code != "no_steps" for problem in problems)
        if not (has_steps and (expected or is_proof)):
            continue
        faults = len(problems) + _strangers(text, names)
        if best is None or faults < fewest:
            best, fewest = found, faults
        if not fewest or any(problem.code == "too_large" for problem in problems):
            break  # nothing is better, or worth the time
    return best


def _forms(body: str, names: Names) -> Iterator[tuple[str, bool]]:
    """Yield the ways to read a body as a plan document, and whether each can be nothing else."""
    if _reads(body):
        yield body, looks_like_plan(body)
    if len(body) > _LONGEST:
        return
    data = steps_in(body)
    if data is not None and (text := plan_text(data.value, names)):
        yield (text.rstrip() + _ENDLESS if data.is_cut else text), data.is_certain
    loose = "\n".join(_MARGIN.sub("", line) for line in body.split("\n"))
    for form in dict.fromkeys((body, loose)):
        if form != body and _reads(form):
            yield form, looks_like_plan(form)
        text = rewritten(form, names)
        if text is not None:
            yield text, looks_like_plan(body) or _names_or_orders(text)
    yield body, looks_like_plan(body)  # mere bullets may be steps too


_ENDLESS = " (..."
"""The end of a line of a step that was cut off."""


def _reads(text: str) -> bool:
    """Whether lines call themselves steps; bullets with keys below may be data instead."""
    reading = read_document(text)
    return any(
        block.item.is_marked or block.item.numbered or "@" in reading.lines[block.item.start].text
        for block in reading.blocks
    )


def _steps_in(text: str) -> list[PlanStep]:
    return [block.step for block in read_document(text).blocks]


def _strangers(text: str, names: Names) -> int:
    """Count the names that the team does not have; another form may show who is meant."""
    known = {name.casefold() for name in names.team}
    named = [name for step in _steps_in(text) for name in step.specialists]
    return sum(name.casefold() not in known for name in named) if known else 0


def _names_or_orders(text: str) -> bool:
    steps = _steps_in(text)
    return len(steps) >= _LEAST and any(step.assigned_to or step.awaits for step in steps)


def _is_bound(text: str, names: Names) -> bool:
    """Whether its steps name specialists of the team; no answer to a person does that."""
    team = {name.casefold() for name in names.team}
    steps = _steps_in(text)
    named = [step for step in steps if step.assigned_to.casefold() in team]
    return len(named) == len(steps) > 0


def _unwrapped(body: str) -> str:
    """Return a body without its wrapping: a fence, quoting, indentation, a string."""
    body = trimmed(body)
    fence = whole_fence(body) if body.startswith(("```", "~~~")) else None
    if fence and fence.language in _STRUCTURED and not trimmed(fence.rest):
        body = trimmed(fence.inner) or body
    elif (inner := _only_fence(body)) is not None:
        body = inner
    if body.startswith('"') and isinstance(text := decode(body, 0).value, str):
        body = text
    lines = body.split("\n")
    while len(lines) >= _LEAST and any(map(str.strip, lines)) and all(map(_MARGINS.match, lines)):
        lines = [_MARGIN.sub("", line) for line in lines]
        body = "\n".join(lines)
    return body


def _only_fence(body: str) -> str | None:
    """Return the content of a fence that holds the steps as data, with talk around it."""
    start = body.find("```")
    if start < 0 or (start and body[start - 1] != "\n"):
        return None
    fence = first_fence(body[start:])
    if fence is None or fence.language not in _STRUCTURED or _reads(body[:start]):
        return None
    data = steps_in(trimmed(fence.inner))
    return trimmed(fence.inner) if data and data.is_certain else None


_LEFT_OUT = re.compile(r"[\s>*+(\[-]*(?:\[.\]\s*)?(?:\.{3,}|…)")
_DIFFERENCE = re.compile(r"(?m)^```diff|^[+-] ?- \[.\] ")


def is_partial(text: str) -> bool:
    """Whether a revised plan says that it omits steps, or is only a difference."""
    if _DIFFERENCE.search(text):
        return True
    inside = {block.item.start for block in read_document(text).blocks}
    return any(
        _LEFT_OUT.match(line) or (at not in inside and _says_unchanged(line))
        for at, line in enumerate(text.split("\n"))
    )


def _says_unchanged(line: str) -> bool:
    """Whether a short line says that other steps stay as they are."""
    words_in = re.findall(r"\w+", line[:200].casefold())
    return (
        0 < len(words_in) <= _MOST_WORDS
        and bool(_UNCHANGED & set(words_in))
        and bool(_STEPS & set(words_in))
    )


_MOST_WORDS = 12
_STEPS = frozenset(words.listed("step")) | frozenset(words.listed("all")) | {"rest"}
_UNCHANGED = frozenset(words.listed("unchanged"))

"""The options in the yaml block of a step, and everything that is wrong with a person's plan."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from pydantic import JsonValue, ValidationError

from replan.base.errors import Mistake
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import overlooked
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.rerun import reopened, rerun_reasons
from replan.state.knowledge import RAGOptions, asks_for_knowledge
from replan.state.options import Kind, MemoryOptions, Options
from replan.state.team import SpecialistCard, seat_mistakes

KINDS: Final[Mapping[type[Options], str]] = {MemoryOptions: "memory", RAGOptions: "knowledge"}
"""The kinds of options that a step may have, by their names for people."""

_LONGEST = 80
"""Characters of a wrong value that is reported."""


def step_options(kind: type[Kind], parameters: Mapping[str, JsonValue], *, by_model: bool) -> Kind:
    """The options that are among a step's parameters; of what a model wrote, the mode alone."""
    names = {f"{kind.prefix}mode"} if by_model else kind.names_in_steps()
    fields = {name: parameters[name] for name in names & parameters.keys()}
    try:
        return kind.model_validate(fields, strict=True)
    except ValidationError:
        # A person's plan was refused for it; a model's word is data.
        return kind()


def without_options(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters that a specialist is shown."""
    if _NAMES.isdisjoint(parameters):
        return parameters
    return {name: value for name, value in parameters.items() if name not in _NAMES}


def option_mistakes(document: PlanDocument, before: TaskPlan | None = None) -> list[Mistake]:
    """What is wrong with the options in a person's plan, or in a change of the one `before`."""
    old = (before or TaskPlan()).by_id
    fresh = [
        step
        for step in document.plan.steps
        if step.parameters and (step.id not in old or step.parameters != old[step.id].parameters)
    ]
    mistakes = (
        mistake
        for step in fresh
        for kind in KINDS
        for mistake in _mistakes_of(step, kind, document)
    )
    return sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column))


def requests_without_knowledge(asked: RAGOptions, plan: TaskPlan | None) -> Iterator[str]:
    """Who requests knowledge from a team that has none: a run, or steps of a person's plan."""
    steps = () if plan is None else plan.steps
    levels = [
        ("The run", asked),
        *(
            (f"Step {step.id}", step_options(RAGOptions, step.parameters, by_model=False))
            for step in steps
            if step.parameters
        ),
    ]
    for who, options in levels:
        if asks_for_knowledge(options):
            wish = f"asks for knowledge (rag_mode: {options.mode})"
            yield f"{who} {wish}, and the team has none."


def _mistakes_of(step: PlanStep, kind: type[Options], document: PlanDocument) -> Iterator[Mistake]:
    fields = {n: value for n, value in step.parameters.items() if n.startswith(kind.prefix)}
    names = kind.names_in_steps()
    for name in fields.keys() - names:
        near = get_close_matches(name, names, 1)
        fix = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(sorted(names))}."
        reason = f"Step {step.id} has {name}, and there is no such option of its {KINDS[kind]}."
        yield _mistake(step, name, document, "unknown_option", reason, fix)
    try:
        kind.model_validate({n: v for n, v in fields.items() if n in names}, strict=True)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            name = f"{kind.prefix}{details['loc'][0]}"
            text = repr(details["input"])
            text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
            reason = f"Step {step.id} has {name}: {text}, which cannot be."
            fix = f"It should{details['msg'].partition('should')[2]}."
            yield _mistake(step, name, document, "bad_option", reason, fix)


def _mistake(
    step: PlanStep, name: str, document: PlanDocument, code: str, reason: str, fix: str
) -> Mistake:
    line, column = mistake_place(step, name, document)
    return Mistake(line=line, column=column, code=code, reason=reason, fix=fix)


def mistake_place(step: PlanStep, name: str, document: PlanDocument) -> tuple[int, int]:
    """The line and the column of an option; the beginning of its step if it stands elsewhere."""
    begins = document.line_of(step.id) or 1
    lines = document.text.splitlines()[begins - 1 :]
    key = re.compile(rf"\s*[\"']?{re.escape(name)}\b")
    places = ((at, key.match(line)) for at, line in enumerate(lines))
    at, column = next(((at, it.end() - len(name) + 1) for at, it in places if it), (0, 1))
    return begins + at, column


_NAMES = frozenset(name for kind in KINDS for name in kind.names_in_steps())


def plan_mistakes(
    document: PlanDocument,
    team: Sequence[SpecialistCard] | None = None,
    before: TaskPlan | None = None,
) -> tuple[Mistake, ...]:
    """Return the mistakes of a document's text, of its steps' options, and of who does them.

    Args:
        document: What a person wrote; what can be read of it is checked, whatever else is wrong.
        team: Who can do the steps; without it, nobody is missed.
        before: The plan that the document changes; what it has already is not checked again.
    """
    mistakes = [*document.mistakes, *option_mistakes(document, before)]
    if team is not None:
        mistakes += _unassigned(document, team, before)
    return tuple(sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column)))


def _unassigned(
    document: PlanDocument, team: Sequence[SpecialistCard], before: TaskPlan | None
) -> Iterator[Mistake]:
    """Name the open steps that nobody does; a name in the wrong place is often the reason."""
    plan = document.plan
    old_steps = (before or TaskPlan()).by_id
    steps = [step for step in reopened(plan, rerun_reasons(plan)).steps if _is_new(step, old_steps)]
    misplaced = {
        warning.line: warning for warning in overlooked(document.text) if warning.kind == "name"
    }
    for mistake in seat_mistakes(steps, team, document):
        name = misplaced.get(mistake.line)
        yield mistake if name is None else replace(mistake, fix=f"{mistake.fix} In {name}.")


def _is_new(step: PlanStep, old_steps: Mapping[int, PlanStep]) -> bool:
    old = old_steps.get(step.id)
    return old is None or (step.specialists, step.model) != (old.specialists, old.model)

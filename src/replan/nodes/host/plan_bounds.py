"""What the author of a plan may set in it: a model and a client no more than the team gives.

What a model sets beyond that does not count, and is told. A plan from outside the process is
refused with every option of its steps that is looser than the team's.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from replan.base.errors import Mistake, PlanDocumentError
from replan.nodes.host.plan_texts import (
    new_plan_of_model,
    read_plan,
    with_fitting_document,
    with_team_names,
)
from replan.plan.changes import title_key
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import Kind, ParseWarning, prose_between
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.option_table import WORDS, removed_options
from replan.specialists.services import HOST, Services
from replan.state.knowledge import RAGOptions
from replan.state.options import MemoryOptions, Options
from replan.state.step_options import mistake_place, step_options
from replan.state.tightening import tightened_options

_WORK = ("description", "brief", "parameters", "assigned_to", "joined_by")


class _Looser(NamedTuple):
    """An option of a step that is looser than its author may set it."""

    name: str
    wanted: Any
    kept: Any  # the loosest that its author may set


def bounded_plan(
    plan: TaskPlan,
    services: Services,
    step_timeout: float,
    before: TaskPlan | None = None,
    text: str | None = None,
) -> tuple[TaskPlan, tuple[ParseWarning, ...]]:
    """Remove from a model's plan what only a person may set, and return what does not count.

    That is what was removed, and what of the text the plan before it does not have and nobody is
    given.
    """
    before, document = before or TaskPlan(), PlanDocument.recover(plan.content)
    prose = prose_between(plan.content if text is None else text)
    lost = [warning for warning in prose if warning.text not in before.content]
    written, known = plan.by_id, before.by_id
    steps = dict(written)
    for at, step in written.items():
        for field, looser in _looser_work(step, known.get(at), services, step_timeout):
            steps[at] = steps[at].replace(**{field: looser.kept or None})
            option = f"{looser.name} {_shown(looser.name, looser.wanted)}"
            line = document.line_of(at) or 1
            lost.append(ParseWarning(line=line, kind=_KINDS[field], step=at, text=option))
    if steps != written:
        plan = with_fitting_document(plan.replace(steps=tuple(steps.values())))
    return plan, tuple(lost)


def begun_plan(text: str, services: Services, step_timeout: float) -> TaskPlan:
    """The plan of which a model has written so much; without steps if something is wrong."""
    reading = read_plan(text, services.team)
    if reading.wrong:
        return TaskPlan()
    return bounded_plan(new_plan_of_model(reading.plan, services), services, step_timeout)[0]


_KINDS: Final[Mapping[str, Kind]] = {"timeout": "timeout", "max_retries": "retries"}


def _shown(name: str, value: float) -> str:
    return f"{value:g}s" if name == WORDS["timeout"] else f"{value:g}"


def _looser_work(
    step: PlanStep,
    before: PlanStep | None,
    services: Services,
    step_timeout: float,
    step_retries: float = math.inf,
) -> Iterator[tuple[str, _Looser]]:
    """Yield the fields of a step with more than these, and than a person gave it before."""
    timeout = max(step_timeout, (before and before.timeout) or 0)
    if step.timeout is not None and step.timeout > timeout:
        yield "timeout", _Looser(WORDS["timeout"], step.timeout, timeout)
    if not step.max_retries:
        return
    is_unsafe = not _unsafe_members(services).isdisjoint(step.specialists)
    retries = max(0 if is_unsafe else step_retries, _given_retries(step, before))
    if step.max_retries > retries:
        yield "max_retries", _Looser(WORDS["max_retries"], step.max_retries, retries)


def _unsafe_members(services: Services) -> set[str]:
    """The specialists whose work is declared unsafe."""
    cards = [specialist.card for specialist in services.specialists.values()]
    return {card.name for card in cards if card.is_declared and card.effects == "unsafe"}


def _given_retries(step: PlanStep, before: PlanStep | None) -> int:
    """The retries that a person set for exactly this work."""
    is_same = before and all(getattr(step, name) == getattr(before, name) for name in _WORK)
    return (before.max_retries or 0) if before and is_same else 0


def check_outside_plan(
    text: str, services: Services, before: TaskPlan | None = None, *, by_model: bool = False
) -> None:
    """Refuse a document from outside in which a step has an option looser than the team's.

    Other mistakes of the document are for its reader to refuse.

    Args:
        text: The document.
        services: The team.
        before: The plan that the document changes: what it has already is not asked for.
        by_model: Whether a model wrote it; then what a model may not set does not count at all.

    Raises:
        PlanDocumentError: Names every option that is looser.
    """
    document = PlanDocument.recover(text)
    plan = document.plan
    if by_model:
        plan = new_plan_of_model(plan, services)
        plan, _ = bounded_plan(plan, services, services.settings.limits.step_timeout)
    old = before or TaskPlan()
    mistakes = [
        _mistake(step, document, looser)
        for step in plan.steps
        for looser in _looser_options(step, old.by_id.get(step.id), services, by_model=by_model)
    ]
    mistakes += [mistake for step in plan.steps for mistake in _removed(old.steps, step, document)]
    if mistakes:
        raise PlanDocumentError(mistakes)


def without_looser_options(plan: TaskPlan, services: Services) -> TaskPlan:
    """The plan without the options of steps that are looser than the team's."""
    steps = tuple(_without_looser(step, services) for step in plan.steps)
    return plan if steps == plan.steps else with_fitting_document(plan.replace(steps=steps))


def _without_looser(step: PlanStep, services: Services) -> PlanStep:
    looser = {each.name for each in _looser_options(step, None, services, by_model=False)}
    fields: dict[str, Any] = {field: None for field, word in WORDS.items() if word in looser}
    kept = {name: value for name, value in step.parameters.items() if name not in looser}
    return step.replace(**fields, parameters=kept) if looser else step


def _looser_options(
    step: PlanStep, before: PlanStep | None, services: Services, *, by_model: bool
) -> Iterator[_Looser]:
    """Yield what a step from outside has that its team does not open to clients."""
    step, limits = with_team_names(step, services.team), services.settings.limits
    opened = services.client_overrides
    bounds = (limits.step_timeout, limits.step_retries)
    for _, (name, wanted, kept) in _looser_work(step, before, services, *bounds):
        if f"step_{name}" not in opened:
            yield _Looser(name, _shown(name, wanted), _shown(name, kept))
    if before is not None and step.parameters == before.parameters:
        return
    if "memory" not in opened:
        yield from _looser_of(MemoryOptions, step, services, by_model=by_model)
    if "rag" not in opened and services.knowledge is not None:
        yield from _looser_of(RAGOptions, step, services, by_model=by_model)


def _looser_of(
    kind: type[MemoryOptions] | type[RAGOptions],
    step: PlanStep,
    services: Services,
    *,
    by_model: bool,
) -> Iterator[_Looser]:
    """Compare the options of one kind with those of each specialist that may do the step."""
    fields = step_options(kind, step.parameters, by_model=by_model)
    looser: dict[str, _Looser] = {}
    for name in step.specialists or services.names:
        own: Options = (
            services.memory.get(name, services.prompts.memory)
            if kind is MemoryOptions
            else services.rag.get(name, services.rag[HOST])
        )
        bounded = tightened_options(own, fields)
        for option, wanted in fields.given.items():
            if getattr(bounded, option) != wanted:
                written = f"{kind.prefix}{option}"
                looser.setdefault(written, _Looser(written, wanted, getattr(bounded, option)))
    yield from looser.values()


def _removed(
    before: Iterable[PlanStep], step: PlanStep, document: PlanDocument
) -> Iterator[Mistake]:
    """Refuse to take away what only the team may remove from a step, whatever its number is now."""
    title = title_key(step)
    same = [old for old in before if old.id == step.id or title_key(old) == title]
    for field in dict.fromkeys(name for old in same for name in removed_options(old, step)):
        words = WORDS[field]
        yield Mistake(
            line=document.line_of(step.id) or 1,
            column=1,
            code="looser",
            reason=f"Step {step.id} has no longer ({words}), which only the team may remove.",
            fix=f"Write ({words}) again, or remove the whole step.",
            field=f"plan.{step.id}.{field}",
        )


def _mistake(step: PlanStep, document: PlanDocument, looser: _Looser) -> Mistake:
    name, wanted, kept = looser
    line, column = mistake_place(step, name, document)
    fix = "Leave it out." if kept is None else f"Leave it out, or stay within {kept}."
    return Mistake(
        line=line,
        column=column,
        code="looser",
        reason=f"{name} {wanted} is looser than the team's own; from outside it can only tighten.",
        fix=fix,
        field=f"plan.{step.id}.{name}",
    )

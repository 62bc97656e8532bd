"""A plan from outside the process: the options of its steps are within the team's settings."""

from collections.abc import Iterable, Iterator
from typing import Any

from replan.errors import Mistake, PlanDocumentError
from replan.host.model_bounds import bounded_plan, given_retries, unsafe_members
from replan.host.plan_texts import new_plan_of_model, with_fitting_document, with_team_names
from replan.plan.changes import title_key
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.option_table import WORDS, removed_options
from replan.services import HOST, Services
from replan.state.knowledge import RAGOptions
from replan.state.memory import MemoryOptions
from replan.state.options import Options
from replan.state.step_options import mistake_place, step_options
from replan.state.tightening import tightened_options

_Looser = tuple[str, Any, Any]  # the option, what was asked for, and what the team has


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
    looser = {name for name, _, _ in _looser_options(step, None, services, by_model=False)}
    if not looser:
        return step
    fields: dict[str, Any] = {field: None for field, word in WORDS.items() if word in looser}
    kept = {name: each for name, each in step.parameters.items() if name not in looser}
    return step.replace(**fields, parameters=kept)


def _looser_options(
    step: PlanStep, before: PlanStep | None, services: Services, *, by_model: bool
) -> Iterator[_Looser]:
    step, limits = with_team_names(step, services.team), services.settings.limits
    opened = services.open_to_clients
    timeout = max(limits.step_timeout, (before and before.timeout) or 0)
    if "step_timeout" not in opened and step.timeout is not None and step.timeout > timeout:
        yield "timeout", f"{step.timeout:g}s", f"{timeout:g}s"
    is_unsafe = not unsafe_members(services).isdisjoint(step.specialists)
    retries = max(0 if is_unsafe else limits.step_retries, given_retries(step, before))
    if "step_retries" not in opened and (step.max_retries or 0) > retries:
        yield "retries", step.max_retries, retries
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
    said = step_options(kind, step.parameters, by_model=by_model)
    found: dict[str, _Looser] = {}
    for name in step.specialists or services.names:
        own: Options = (
            services.memory.get(name, services.prompts.memory)
            if kind is MemoryOptions
            else services.rag.get(name, services.rag[HOST])
        )
        taken = tightened_options(own, said)
        for option, wanted in said.given.items():
            if getattr(taken, option) != wanted:
                written = f"{kind.prefix}{option}"
                found.setdefault(written, (written, wanted, getattr(taken, option)))
    yield from found.values()


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

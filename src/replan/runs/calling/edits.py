"""Edits of the state of a run, as Studio and `aupdate_state` make them: what a person wrote wins.

A result in the state may be an excerpt. One whose excerpt is edited becomes the person's own, and
is whole from then on. What was edited, and by whom, becomes a row of the run's log.
"""
# LangGraph leaves the type arguments of channels open, so `channels` reads as partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.types import Overwrite, StateUpdate
from pydantic import JsonValue

from replan.base.errors import PlanDocumentError
from replan.log.run_log import RunLog
from replan.log.whole_results import RESULTS, whole_results
from replan.plan.markdown.rendering import render
from replan.plan.model import TaskPlan
from replan.state.changed_steps import ChangedSteps
from replan.state.channels import checked
from replan.state.enhanced import EnhancedState
from replan.state.input_guard import PlanCheck
from replan.state.person.plan_edits import KEY, edited_plan
from replan.state.results import SpecialistResult, result_as_json
from replan.state.team import SpecialistCard

EDIT = "edit/"
"""The prefix of the rows about edits of a run's state; the name of the edit follows."""

Edits = Sequence[Sequence[StateUpdate]]
"""What somebody changes in the state of a thread."""

_USER = "langgraph_auth_user"  # as LangGraph's server puts it into a configuration


def changes_work(supersteps: Edits) -> bool:
    """Whether edits change the plan or the results of steps."""
    keys = {KEY, *RESULTS}
    values = [edit.values for superstep in supersteps for edit in superstep]
    return any(isinstance(value, Mapping) and not keys.isdisjoint(value) for value in values)


async def taken_edits(
    state: EnhancedState,
    supersteps: Edits,
    team: Sequence[SpecialistCard],
    log: RunLog,
    check_plan: PlanCheck,
) -> Edits:
    """The edits of a state as it takes them.

    A changed excerpt of a result is whole, and a changed document of a plan is a plan.

    Raises:
        InvalidUpdateError: An edit cannot be taken.
    """
    return own_edits(state, supersteps, team, check_plan, await whole_results(state, log))


def own_edits(
    state: EnhancedState,
    supersteps: Edits,
    team: Sequence[SpecialistCard],
    check_plan: PlanCheck,
    whole: EnhancedState | None = None,
) -> Edits:
    """Do as `taken_edits`, for a state of which `whole` has the whole results."""
    plan = state.get(KEY)
    taken = list[list[StateUpdate]]()
    for superstep in supersteps:
        taken.append([])
        for edit in superstep:
            values: Any = edit.values
            if isinstance(values, Mapping):
                values = _with_whole_results(
                    cast("Mapping[str, Any]", values), state, whole or state
                )
                if KEY in values:
                    plan = values[KEY] = _own_plan(plan, values[KEY], team, check_plan)
            taken[-1].append(edit._replace(values=values))
    return taken


def _own_plan(
    before: Any, value: Any, team: Sequence[SpecialistCard], check_plan: PlanCheck
) -> Any:
    # What the runtime itself writes is no edit.
    if value is None or isinstance(value, Overwrite | ChangedSteps):
        return value
    old = before if isinstance(before, TaskPlan) else None
    plan = edited_plan(old, value, team)
    # Its document and its steps need not agree yet.
    for text in filter(str.strip, (plan.content, render(plan) if plan.steps else "")):
        try:
            check_plan(text, old)
        except PlanDocumentError as error:
            raise InvalidUpdateError(f"A client may not edit the plan so. {error}") from error
    return plan


def _with_whole_results(
    values: Mapping[str, Any], state: EnhancedState, whole: EnhancedState
) -> dict[str, Any]:
    changed = dict(values)
    for key in RESULTS:
        if isinstance(changed.get(key), Overwrite | Mapping):
            before, now = cast("Any", state).get(key, {}), cast("Any", whole).get(key, {})
            changed[key] = _own_results(key, changed[key], before, now)
    return changed


def _own_results(
    key: str,
    edited: Any,
    before: Mapping[str, SpecialistResult],
    whole: Mapping[str, SpecialistResult],
) -> Any:
    if isinstance(edited, Overwrite):
        return Overwrite(_own_results(key, edited.value, before, whole))
    results: dict[str, SpecialistResult] = checked(key, dict[str, SpecialistResult], edited)
    return {
        name: _own_result(result, before[name], whole[name])
        if result.excerpt and name in before
        else result
        for name, result in results.items()
    }


def _own_result(
    edited: SpecialistResult, before: SpecialistResult, whole: SpecialistResult
) -> SpecialistResult:
    """An edited excerpt as a result of the person's own; one that is as it was stays."""
    fields = {name: value for name, value in edited if value != getattr(before, name)}
    if not fields:
        return edited
    return whole.model_copy(update={**fields, "excerpt": False, "length": 0, "log_key": ""})


@asynccontextmanager
async def on_record(
    run_id: str,
    name: str,
    supersteps: Edits,
    config: RunnableConfig,
    log: RunLog,
) -> AsyncGenerator[None]:
    """Record edits of results and of the plan, before they are made; superseded if refused."""
    changes = [
        item for superstep in supersteps for edit in superstep for item in _edited_values(edit)
    ]
    if not run_id or not changes:
        yield
        return
    key, by = f"{EDIT}{name}", config.get("configurable", {}).get(_USER)
    author = str(getattr(by, "identity", "")) or "a person"
    await log.note(run_id, key, {"by": author, "changes": changes})
    try:
        yield
    except Exception:
        await log.strike(run_id, key)
        raise


def _edited_values(edit: StateUpdate) -> Iterator[JsonValue]:
    """What an edit changes of the plan and the results of steps."""
    if not isinstance(edit.values, Mapping):
        return
    values = cast("Mapping[str, Any]", edit.values)
    for key in RESULTS:
        written: Any = values.get(key) or {}
        results = cast("Mapping[str, SpecialistResult]", getattr(written, "value", written))
        for name, result in results.items():
            if not result.excerpt:
                yield {"key": key, "name": name, "value": result_as_json(result, is_short=True)}
    plan: Any = values.get(KEY)
    if isinstance(plan, TaskPlan):
        yield {"key": KEY, "value": plan.content}

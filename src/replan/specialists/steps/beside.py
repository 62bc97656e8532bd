"""Steps of an edited plan that begin beside the round at work, as a part of it.

When a person edits the plan, no step of the old one begins any longer. What can begin of the edited
plan has a board of its own, which shares the places of the round. It ends with the round, so the
host judges it with the rest of the round.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, cast

from langgraph.errors import GraphInterrupt

from replan.base.langgraph_inside.tasks import as_node
from replan.log.events.types import StepsRouted
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.order import run_order
from replan.specialists.steps.board import Board
from replan.specialists.steps.step_run import StepRun
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.results import Assignment, SpecialistResult
from replan.state.rules import waiting_steps, within_limit
from replan.state.team import SpecialistCard, seats_of


def seats_to_begin(
    steps: Iterable[PlanStep],
    plan: TaskPlan,
    begun: Collection[int],
    team: Sequence[SpecialistCard],
    may_begin: Callable[[PlanStep, Collection[str]], bool] = lambda _step, _members: True,
) -> list[Assignment]:
    """The seats of the steps that wait for nothing but what has `begun`, or begins with them."""
    begun_ids, assignments = set(begun), list[Assignment]()
    for step in steps:
        waits = {step_id for step_id in step.awaits if not plan.by_id[step_id].is_finished}
        if step.id in begun_ids or not waits <= begun_ids:
            continue
        seats = seats_of(step, team)
        members = [seat.specialist for seat in seats]
        if not any(seat.refused for seat in seats) and may_begin(step, members):
            begun_ids.add(step.id)
            assignments += [Assignment(step_id=step.id, specialist=name) for name in members]
    return assignments


async def do_beside(state: EnhancedState, plan: TaskPlan, edit: str, one: StepRun) -> EnhancedState:
    """Do what can begin of an edited plan; return the update by its steps.

    Args:
        state: The state, with the results of the round so far.
        plan: The edited plan.
        edit: The name of the edit.
        one: A step of the round.
    """
    around, services = one.board, one.services
    plan = within_limit(plan, settings_of(state).limits.max_steps)
    apart = around.begun | waiting_steps({**state, "current_plan": plan})
    steps = [step for step in run_order(plan.open_steps()) if step.id not in apart]
    new = seats_to_begin(steps, plan, (), services.team)
    if not new:
        return {}
    around.edited = board = Board({**state, "dispatched": []}, early=around)
    board.follows = frozenset({edit})
    board.add(plan, new)
    chosen = {assignment.step_id: assignment.specialist for assignment in new}
    if unnamed := {i: name for i, name in chosen.items() if not plan.step(i).specialists}:
        await one.emitter.emit(StepsRouted, assignments=unnamed)
    nodes = [as_node(one.config, f"specialist_{assignment.specialist}") for assignment in new]
    sent_before = {sent.step_id for sent in around.state.get("dispatched", [])}
    runs = [
        StepRun.of(
            seat, board, services, one.runtime, node, in_round=seat.step_id not in sent_before
        )
        for seat, node in zip(new, nodes, strict=True)
    ]
    ended = await asyncio.gather(*map(seated, runs), return_exceptions=True)
    update, begun = EnhancedState(), set[int]()
    for run, result in zip(runs, ended, strict=True):
        # A graph that asks by itself does so in a task of its own, in the next round.
        if isinstance(result, GraphInterrupt):
            continue
        if isinstance(result, BaseException):
            raise result
        update = joined(update, run.update(result))
        if result is not None or run.asked or run.limit:
            begun.add(run.step.id)
    sent = [
        seat.replace(asked_by_edit=tuple(question.key for question in run.asked))
        for seat, run in zip(new, runs, strict=True)
        if seat.step_id in begun
    ]
    return {**update, "dispatched": [*around.state.get("dispatched", []), *sent]}


async def seated(run: StepRun) -> SpecialistResult | None:
    """What a step comes to that no task of LangGraph does."""
    async with run.board.seat(run.key):
        return await run.result()


def joined(one: EnhancedState, other: EnhancedState) -> EnhancedState:
    """The updates of two steps as one."""
    new: dict[str, Any] = dict(one)
    for key, value in cast("dict[str, Any]", other).items():
        earlier = new.get(key)
        new[key] = (
            value
            if earlier is None
            else earlier + value
            if isinstance(value, list)
            else earlier | value
        )
    return cast("EnhancedState", new)

"""Steps that begin early: while the host still writes their plan, or beside the round at work.

When a person edits the plan, no step of the old one begins any longer. What can begin of the edited
plan has a board of its own, which shares the places of the round. It ends with the round, so the
host judges it with the rest of the round.

A step whose line and brief are complete begins at once if its work is declared pure and what it
waits for has begun or is done. It works on its own key in the log, so its round finds it done or at
work. What the finished plan does not hold is cancelled, and told.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime

from replan.base.langgraph_inside.tasks import as_node, bounds_in
from replan.log.events.emitter import Emitter
from replan.log.events.types import EarlyStepDropped, StepsRouted
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.order import run_order
from replan.specialists.services import Services
from replan.specialists.steps.board import Board, cancelled
from replan.specialists.steps.on_record import keys_in
from replan.specialists.steps.step_run import StepRun
from replan.state.enhanced import EnhancedState, plan_of, settings_of
from replan.state.limits import RunSettings
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


logger = logging.getLogger(__name__)

MOST_EARLY = 50
"""Steps of a plan that begin before it is complete: it is read again for each of them."""

Outcome = SpecialistResult | None


@dataclass(frozen=True)
class _Early:
    """A step at one of its specialists that began before its plan was complete."""

    run: StepRun
    task: asyncio.Task[Outcome]


class EarlySteps:
    """The early steps of one call of a graph."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.board: Board | None = None  # theirs; their round shares its places
        # Those that no round has taken yet, by their keys, in the order in which they began.
        self._begun: dict[str, _Early] = {}
        self._tasks: set[asyncio.Task[Outcome]] = set()

    @property
    def is_at_work(self) -> bool:
        """Whether calls of models may be charged that no node has counted yet."""
        return bool(self._begun)

    def hear(
        self,
        state: EnhancedState,
        number: int,
        read: Callable[[str], TaskPlan],
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
    ) -> Callable[[str], None]:
        """Return what takes the complete part of a plan, again and again as it grows.

        Args:
            state: The state as it was before the plan.
            number: The round that the plan is for.
            read: Reads the complete part as the whole plan will be read.
            runtime: LangGraph's, of the node that hears the plan.
            config: That node's configuration.
        """
        before: EnhancedState = {**state, "current_round": number}
        if not self._begun:
            self.board = Board(before, bounds_in(config).max_concurrency)
        old_steps, most = plan_of(state).by_id, settings_of(state).limits.max_steps
        # A step inherits what the node has, and not what the call of its model has.
        context = contextvars.copy_context()

        def take(text: str) -> None:
            if self.board is None or len(self._begun) >= MOST_EARLY:
                return
            plan = within_limit(read(text), most)
            begun = {early_step.run.step.id for early_step in self._begun.values()}
            steps = (step for step in plan.open_steps() if step.id not in old_steps)
            new = seats_to_begin(steps, plan, begun, self._services.team, self._may_begin)
            if not new:
                return
            self.board.add(plan, new)
            for assignment in new:
                node = as_node(config, f"specialist_{assignment.specialist}")
                own_context = context.copy()
                early = partial(StepRun.of, runtime=runtime, config=node, in_round=False)
                run = own_context.run(early, assignment, self.board, self._services)
                self._begin(run, own_context)

        return take

    def _may_begin(self, step: PlanStep, members: Collection[str]) -> bool:
        return not step.ask_first and self._services.early_members.issuperset(members)

    def _begin(self, run: StepRun, context: contextvars.Context) -> None:
        task = asyncio.get_running_loop().create_task(seated(run), context=context)
        self._begun[run.key] = _Early(run, task)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            # It goes to the step's round, if the plan holds the step.
            logger.info("early step broke off", extra={"error": type(error).__name__})

    async def keep(self, plan: TaskPlan, emitter: Emitter) -> None:
        """Cancel the early steps that a finished plan does not hold, and report them."""
        kept, dropped = set[int](), list[_Early]()
        begun = {early_step.run.step.id for early_step in self._begun.values()}
        for early in self._begun.values():
            step = early.run.step
            is_kept = _words(plan.by_id.get(step.id)) == _words(step)
            if is_kept and kept >= begun.intersection(step.awaits):
                kept.add(step.id)
            else:
                dropped.append(early)
        self._begun = {
            key: early_step
            for key, early_step in self._begun.items()
            if early_step.run.step.id in kept
        }
        await cancelled(early.task for early in dropped)
        for early in dropped:
            step = early.run.step
            await emitter.emit(
                EarlyStepDropped,
                step_id=step.id,
                specialist=early.run.specialist,
                task=step.description,
            )

    async def outcome(self, step: StepRun) -> Outcome:
        """Return what a step of a round comes to: that of its early run, if it has one."""
        early = self._begun.pop(step.key, None)
        if early is None:
            return await step.result()
        step.board.begun.add(step.step.id)
        if _key(early.run) != _key(step) or _words(early.run.step) != _words(step.step):
            # The plan was edited in the meantime.
            await cancelled([early.task])
        await asyncio.wait([early.task])
        if not (early.task.cancelled() or isinstance(early.task.exception(), GraphInterrupt)):
            result = early.task.result()
            if result is not None or early.run.asked or early.run.limit:
                step.take_over(early.run, result)
                return result
        step.board.read_again()
        return await step.result()

    async def end(self) -> None:
        """Cancel what is left: the call of the graph is over."""
        self._begun.clear()
        await cancelled(self._tasks)


def _key(run: StepRun) -> str:
    return keys_in(run.board.state, run.step, run.specialist, {}).result


def _words(step: PlanStep | None) -> PlanStep | None:
    """A step as its plan describes it, whenever that was written."""
    return step and step.replace(created_at=None, updated_at=None)

"""Steps that begin while the host still writes their plan.

A step whose line and brief are complete begins at once if its work is declared pure and what it
waits for has begun or is done. It works on its own key in the log, so its round finds it done or at
work. What the finished plan does not hold is cancelled, and told.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime

from replan.base.langgraph_inside.tasks import as_node, bounds_in
from replan.log.events.emitter import Emitter
from replan.log.events.types import EarlyStepDropped
from replan.plan.model import PlanStep, TaskPlan
from replan.specialists.services import Services
from replan.specialists.steps.beside import seated, seats_to_begin
from replan.specialists.steps.board import Board, cancelled
from replan.specialists.steps.on_record import keys_in
from replan.specialists.steps.step_run import StepRun
from replan.state.enhanced import EnhancedState, plan_of, settings_of
from replan.state.limits import RunSettings
from replan.state.results import SpecialistResult
from replan.state.rules import within_limit

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

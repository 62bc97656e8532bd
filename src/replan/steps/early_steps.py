"""Steps that begin while the host still writes their plan.

A step whose line and brief are complete begins at once if its work is declared pure and what it
waits for has begun or is done. It works on its own key in the log, so its round finds it done or at
work. What the finished plan does not hold is cancelled, and told.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime

from replan.events.emitter import Emitter
from replan.events.types import EarlyStepDropped
from replan.langgraph_inside.tasks import as_node, bounds_in
from replan.plan.model import PlanStep, TaskPlan
from replan.services import Services
from replan.state.enhanced import EnhancedState, plan_of, settings_of
from replan.state.limits import RunSettings
from replan.state.results import Assignment, SpecialistResult
from replan.state.rules import within_limit
from replan.state.team import seats_of
from replan.steps.board import Board
from replan.steps.on_record import keys_in
from replan.steps.step_run import StepRun

logger = logging.getLogger(__name__)

MOST_EARLY = 50
"""Steps of a plan that begin before it is complete: it is read again for each of them."""

SECONDS_TO_END = 5.0
"""How long cancelled work may take to end; then it is left alone."""

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
        if self.board is None or not self._begun:
            self.board = Board(before, bounds_in(config).max_concurrency)
        else:
            # What began ahead of an edit: the round has ended since, with its results.
            now = self.board.state
            kept = EnhancedState(current_plan=plan_of(now), dispatched=now.get("dispatched", []))
            self.board.read({**before, **kept})
        known, most = plan_of(state).by_id, settings_of(state).limits.max_steps
        # A step inherits what the node has, and not what the call of its model has.
        context = contextvars.copy_context()

        def take(text: str) -> None:
            if self.board is None or len(self._begun) >= MOST_EARLY:
                return
            plan = within_limit(read(text), most)
            new = self._new_seats(
                [step for step in plan.open_steps() if step.id not in known], plan
            )
            self._begin_all(new, plan, runtime, config, context)

        return take

    def begin_ahead(
        self,
        state: EnhancedState,
        plan: TaskPlan,
        beside: Board,
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
    ) -> None:
        """Begin steps of the plan of the next round, beside the round that is at work.

        Args:
            state: The state, with the results of the round so far.
            plan: The plan of the next round.
            beside: The board of the round at work, whose places they share.
            runtime: LangGraph's, of a node of the round.
            config: That node's configuration.
        """
        if self._begun:
            return
        number = state.get("current_round", 0) + 1
        before: EnhancedState = {**state, "current_round": number, "dispatched": []}
        self.board = Board(before, early=beside)
        self.board.heeds_steering = False
        plan = within_limit(plan, settings_of(state).limits.max_steps)
        steps = [step for step in plan.open_steps() if step.id not in beside.begun]
        new = self._new_seats(steps, plan)
        self._begin_all(new, plan, runtime, config, contextvars.copy_context())

    def _begin_all(
        self,
        new: Sequence[Assignment],
        plan: TaskPlan,
        runtime: Runtime[RunSettings],
        config: RunnableConfig,
        context: contextvars.Context,
    ) -> None:
        if self.board is None or not new:
            return
        self.board.add(plan, new)
        for each in new:
            node = as_node(config, f"specialist_{each.specialist}")
            own = context.copy()
            run = own.run(StepRun.of, each, self.board, self._services, runtime, node)
            self._begin(run, own)

    def _new_seats(self, steps: Iterable[PlanStep], plan: TaskPlan) -> list[Assignment]:
        """The seats of steps that can begin and have not begun yet."""
        begun = {each.run.step.id for each in self._begun.values()}
        found: list[Assignment] = []
        for step in steps:
            waits = {each for each in step.awaits if not plan.by_id[each].is_finished}
            if step.id in begun or step.ask_first or not waits <= begun:
                continue
            seats = seats_of(step, self._services.team)
            able = {each.specialist for each in seats if not each.refused}
            if len(able) == len(seats) and able <= self._services.early_members:
                begun.add(step.id)
                found += [Assignment(step_id=step.id, specialist=each.specialist) for each in seats]
        return found

    def _begin(self, run: StepRun, context: contextvars.Context) -> None:
        task = asyncio.get_running_loop().create_task(_work(run), context=context)
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
        begun = {each.run.step.id for each in self._begun.values()}
        for early in self._begun.values():
            step = early.run.step
            is_kept = _words(plan.by_id.get(step.id)) == _words(step)
            if is_kept and kept >= begun.intersection(step.awaits):
                kept.add(step.id)
            else:
                dropped.append(early)
        self._begun = {key: each for key, each in self._begun.items() if each.run.step.id in kept}
        await _cancel(early.task for early in dropped)
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
            await _cancel([early.task])
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
        await _cancel(self._tasks)


async def _work(run: StepRun) -> Outcome:
    with run.board.seat(run.key):
        return await run.result()


async def _cancel(tasks: Iterable[asyncio.Task[Outcome]]) -> None:
    """Cancel tasks, and wait for their end; one that does not end is left alone."""
    at_work = [task for task in tasks if not task.done()]
    for task in at_work:
        task.cancel()
    if at_work:
        await asyncio.wait(at_work, timeout=SECONDS_TO_END)


def _key(run: StepRun) -> str:
    return keys_in(run.board.state, run.step, run.specialist, {}).result


def _words(step: PlanStep | None) -> PlanStep | None:
    """A step as its plan describes it, whenever that was written."""
    return step and step.replace(created_at=None, updated_at=None)

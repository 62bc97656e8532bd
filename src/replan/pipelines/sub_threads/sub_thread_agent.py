"""The agent of a sub-thread: it runs units in turn until their phases are completed."""

from collections.abc import Sequence
from typing import ClassVar

from langgraph.errors import GraphDrained

from replan.base.errors import PhaseError
from replan.base.failures import describe
from replan.pipelines.host_utils import in_phase
from replan.pipelines.phases.agent_and_handler import BaseAgent
from replan.pipelines.phases.suggestions import (
    ROUND,
    phase_unchanged,
    report_phase,
    round_of,
    suggested_phase,
    thread_of,
)
from replan.pipelines.phases.usable_response import check_sub_response
from replan.pipelines.response import Response, ends_pipeline
from replan.pipelines.sub_threads.interaction_unit import InteractionUnit
from replan.pipelines.task import Task
from replan.state.pipeline.threads import COMPLETED, Thread, ThreadMessage


class SubThreadAgent(BaseAgent):
    """Manages one sub-thread; the name is that of the source document.

    A subclass overrides `_initialize_interaction_units`, and `_summarize_results` where the text of
    the last message is not the result.

    Attributes:
        interaction_units: The units by phase.
        max_units: How many rounds a sub-thread may have, over all attempts.
        calls_of_unit: The maximum number of model calls of a unit; `replan check` counts them.
    """

    max_units: ClassVar[int] = 20
    calls_of_unit: ClassVar[int] = 1

    async def _initialize_state_handlers(self) -> None:
        self.interaction_units: dict[str, InteractionUnit] = {}
        await self._initialize_interaction_units()
        self.state_handlers = {
            phase: unit.state_handler for phase, unit in self.interaction_units.items()
        }

    async def _initialize_interaction_units(self) -> None:
        """Make the handlers, then set `interaction_units`; overridden by subclasses."""

    async def execute_task(self, task: Task, thread: Thread) -> Response:
        """Do the remaining work of the sub-thread; a failure is stored in it, and returned.

        Args:
            task: Its `sub_thread_path` says which sub-thread.
            thread: The main thread.
        """
        sub_thread = thread_of(task, thread)
        try:
            if task.is_retry:
                await self._repeat_round(task, thread)
            sub_thread.set_status(error=None)
            # With the first phase, if it has been made now.
            await task.host_utils.thread_repository.save_thread(thread, lasting=False)
            return await self._execute_sub_thread_interaction(task, thread)
        except Exception as error:
            if ends_pipeline(error):
                raise
            # Foreign code: its failure is a response.
            sub_thread.set_status(error=describe(error))
            await task.host_utils.thread_repository.save_thread(thread)
            return Response(failure=error)

    async def _execute_sub_thread_interaction(self, task: Task, thread: Thread) -> Response:
        """Run the units, then summarise their results."""
        results = await self._execute_interaction_units(task, thread)
        name = f"{type(self).__name__}._summarize_results"
        with phase_unchanged(task, thread, name):
            response = await self._summarize_results(results, task, thread)
        return check_sub_response(response, thread_of(task, thread), name)

    async def _execute_interaction_units(
        self, task: Task, thread: Thread
    ) -> Sequence[ThreadMessage]:
        """Run one unit after the other until the phase is `completed`; return their messages."""
        sub_thread = thread_of(task, thread)
        later_task = task.replace(meta={**task.meta, "_ui_action": None})
        while sub_thread.phase != COMPLETED:
            if round_of(sub_thread) > self.max_units:
                problem = f"{type(self).__name__} had all of its {self.max_units} rounds"
                fix = "Let its phases come to 'completed' sooner, or raise max_units."
                raise PhaseError(sub_thread.id, sub_thread.phase, problem, fix)
            if task.host_utils.is_stopping():
                raise GraphDrained("a stop after the phase")
            unit = self._unit(sub_thread)
            report_phase(thread, task)
            with in_phase(sub_thread.phase, task.sub_thread_path, round_of(sub_thread)):
                await unit.execute(later_task, thread, self)
            if suggested_phase(sub_thread) is None:
                problem = f"{type(unit).__name__} has suggested no phase"
                fix = "Let its _suggest_phase_update call that of InteractionUnit."
                raise PhaseError(sub_thread.id, sub_thread.phase, problem, fix)
            await self._apply_phase_update_suggestion(later_task, thread)
        return [message for message in sub_thread.messages if message.sender == "bot"]

    async def _summarize_results(
        self, results: Sequence[ThreadMessage], task: Task, thread: Thread
    ) -> Response:
        """Make the response of the bot's messages: by default of the last one."""
        if not results:
            sub_thread = thread_of(task, thread)
            problem, fix = "the sub-thread has no bot message", "Let a unit produce one."
            raise PhaseError(sub_thread.id, sub_thread.phase, problem, fix)
        return Response(results[-1].text)

    def _unit(self, sub_thread: Thread) -> InteractionUnit:
        unit = self.interaction_units.get(sub_thread.phase)
        if unit is None:
            unit_names = ", ".join(self.interaction_units)
            problem = f"{type(self).__name__} has no interaction unit"
            raise PhaseError(
                sub_thread.id, sub_thread.phase, problem, f"Use a phase of: {unit_names}."
            )
        return unit

    async def _repeat_round(self, task: Task, thread: Thread) -> None:
        """Begin the round of the phase again: the suggestion goes, the phase stays."""
        sub_thread = thread_of(task, thread)
        number = round_of(sub_thread)
        await self._apply_phase_update_suggestion(task, thread)
        if any(message.meta.get(ROUND) == number for message in sub_thread.messages):
            sub_thread.set_status(**{ROUND: number + 1})
            await task.host_utils.thread_repository.save_thread(thread)

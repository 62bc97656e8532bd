"""A specialist that is a pipeline: it continues where its thread was cut off."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from replan.base.errors import LimitReachedError, PhaseError
from replan.base.failures import describe
from replan.base.langgraph_inside.callbacks import is_seen
from replan.log.events.types import BaseEvent
from replan.models.chat import Chat
from replan.pipelines.host_utils import AIAdapter, Audience, HostUtils
from replan.pipelines.response import Response
from replan.pipelines.turns.building import PhaseGraph, Pipeline
from replan.pipelines.turns.main_turn import MainTurn, exclusively, turn_on
from replan.ports.run_context import Context, here, using
from replan.ports.specialist_port import show_text
from replan.ports.thread_repository import ThreadRepository
from replan.prompts.replies.shape import Shape
from replan.prompts.sections import knowledge_section, section
from replan.specialists.returned_values import shaped_result
from replan.state.pipeline.thread_rows import THREADS, questions_in, under_id
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard

_SUGGEST = "Let it return Response(text, phase_suggestion='completed'), or a next task."


@dataclass(frozen=True, kw_only=True)
class PipelineSpecialist:
    """Does a step in the phases of a pipeline, on a thread of the step."""

    card: SpecialistCard
    pipeline: Pipeline
    chat: Chat | None = None  # what its units ask
    shape: Shape | None = None
    continues_sessions: ClassVar[bool] = True
    reads_texts_alone: ClassVar[bool] = True

    @property
    def graph(self) -> PhaseGraph:
        return self.pipeline.graph

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Begin with the step, or continue where an earlier attempt of it ended."""
        place = here()
        if (repository := place.threads) is None:
            raise RuntimeError("a pipeline is at work without a repository of threads")
        step, specialist = context.plan_step.id, self.card.name
        # What its models say is heard by the callbacks of the configuration.
        show = partial(show_text, config=config, beside_models=True)
        utils = HostUtils(
            thread_repository=repository,
            ai_adapter=AIAdapter(self.chat, config, step=step, specialist=specialist),
            tell=partial(_report, step, specialist),
            audience=Audience(show=show if is_seen(config) else None),
            is_stopping=place.is_stopping,
            clock=place.clock,
            new_id=place.new_id,
            context=context,
        )
        with exclusively(repository, place.thread_id):
            await _adopt_thread(place, repository)
            agent = self.pipeline.agent
            turn = await turn_on(agent, place.thread_id, utils, run_id=place.run_id)
            goes_on = place.work is not None and place.work.goes_on
            message = None if goes_on else _message_of_step(context)
            await turn.begin_step(message, place.thread_id)
            try:
                response = await self._walk_phases(turn, config, drawn=place.work is None)
            except LimitReachedError as limit:
                return _partial_result(turn, limit)
            return self._result(turn, response, in_session=place.work is not None)

    async def _walk_phases(
        self, turn: MainTurn, config: RunnableConfig, *, drawn: bool
    ) -> Response:
        with using(turn=turn, work=None):
            # In a session's turn, nobody looks at LangGraph's stream, where each phase is a node.
            if drawn and (phase := turn.phase) is not None:
                await cast("Any", self.graph).ainvoke({"phase": phase}, config)
            return await turn.run_to_end()

    def _result(self, turn: MainTurn, response: Response, *, in_session: bool) -> SpecialistResult:
        if (failure := response.failure) is not None:
            if isinstance(failure, PhaseError):
                raise failure
            thread_id, phase, _ = turn.place
            reason = describe(failure).rstrip(".")
            raise PhaseError(thread_id, phase, reason, "", self.card.name) from failure
        # The next message of a session goes to the phase in which the pipeline rests.
        if not (turn.is_completed or in_session):
            _, phase, _ = turn.place
            text = f"{response.text}\n\n(The pipeline rests in the phase '{phase}'.)"
            error = f"No phase follows '{phase}': its handler has suggested none. {_SUGGEST}"
            return SpecialistResult(
                result=AIMessage(text), status=ExecutionStatus.PARTIAL, error=error
            )
        if self.shape is not None:
            return shaped_result(response.text, self.shape)
        return SpecialistResult(result=AIMessage(response.text))


async def _adopt_thread(place: Context, repository: ThreadRepository) -> None:
    """Begin the thread of the step as that of its session, unless it has begun.

    Work that goes on asks nothing that was answered before it was cut off.
    """
    if (work := place.work) is None:
        return
    threads: Any = work.state.get(THREADS, {})
    rows = threads.get(work.session_id, {})
    if rows:
        await repository.adopt(place.run_id, {place.thread_id: under_id(place.thread_id, rows)})
    if work.goes_on and place.asker is not None:
        place.asker.remember(questions_in(rows))


def _message_of_step(context: ExecutionContext) -> str:
    """The message of the step to the pipeline: its task and its inputs."""
    parts = [knowledge_section(context.knowledge_context)] if context.knowledge_context else []
    inputs = [section("result", text, step=step) for step, text in context.inputs.items()]
    return "\n\n".join([context.task, *parts, *inputs])


def _partial_result(turn: MainTurn, limit: LimitReachedError) -> SpecialistResult:
    """The partial result if a limit ended the work, with the phase in which it did."""
    whole, text = turn.cut_by(limit)
    return SpecialistResult(
        result=AIMessage(whole), status=ExecutionStatus.PARTIAL, cut=limit.limit, error=text
    )


def _report(step: int, specialist: str, kind: type[BaseEvent], /, **fields: Any) -> None:
    """Report an event of a phase, if anything listens."""
    if (emitter := here().emitter) is not None:
        emitter.stream(kind, step_id=step, specialist=specialist, **fields)

"""An agent that is a pipeline: a turn of a session is a turn of the pipeline's main thread."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack, cast

from langchain_core.runnables import RunnableConfig
from pydantic import JsonValue

from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.threads.memory import MemoryThreads
from replan.errors import InputError, LimitReachedError
from replan.events.types import BaseEvent, Event
from replan.failures import describe
from replan.models.chat import Chat
from replan.ports.agent import TurnOptions, UserInput
from replan.ports.ask_user import Waiting
from replan.sessions.heard import Hear, heard
from replan.sessions.request import Said, read_input
from replan.spending.account import Account
from replan.spending.meter import Meter
from replan.spending.scopes import RUN, Scope, with_free_ones
from replan.state.context import AgentContext, AgentResult, Message
from replan.state.limits import Limits, Price, RunSettings
from replan.state.questions import Question
from replan.steps.step_record import Asker
from replan.threads.ai_adapter import AIAdapter
from replan.threads.base_agent import BaseAgent
from replan.threads.host_utils import HostUtils
from replan.threads.pipeline import turn_on
from replan.threads.turn import Turn
from replan.values import restored

THREADS = "threads"
"""The key of `project_state` that has the rows of the threads of pipelines."""

_QUESTIONS = "_questions"


@dataclass(frozen=True, kw_only=True)
class PipelineAgent:
    """An agent that keeps nothing between two calls; `pipeline_agent` makes it.

    Attributes:
        agent: The class of the pipeline's main agent.
        chat: What its handlers ask; None if they ask no model.
        settings: The limits of a turn.
        prices: What models cost, by their names.
        clock: Returns the time, with a time zone.
        new_id: Returns a new unique id.
    """

    agent: type[BaseAgent]
    chat: Chat | None
    settings: RunSettings
    prices: Mapping[str, Price]
    clock: Callable[[], datetime]
    new_id: Callable[[], str]

    async def process(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AgentResult:
        """Take one turn of a session, whose context carries the pipeline's threads.

        Args:
            user_input: A text, which answers what is asked. None goes on with what was stopped or
                has failed.
            context: The session, or a dictionary that `AgentContext.from_dict` reads.
            options: `new_request=True` gives up what waits. `stop` is an `asyncio.Event` that
                stops the work after the phase. `settings` bound the turn by `max_model_calls`,
                `max_tokens`, `max_cost` and `max_seconds`, and all turns from a message to its
                end by `max_questions`; a later turn goes on.

        Returns:
            The result. Errors are results without success; only a cancellation passes through.
        """
        return await self._turn(user_input, context, options, lambda _: None)

    async def stream(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AsyncGenerator[Event | AgentResult]:
        """Take one turn as `process` does; yields its events as they happen, the result last."""
        parts = heard(lambda hear: self._turn(user_input, context, options, hear))
        async with aclosing(parts) as given:
            async for each in given:
                yield each

    async def _turn(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        options: TurnOptions,
        hear: Hear,
    ) -> AgentResult:
        try:
            is_read = isinstance(context, AgentContext)
            session = context if is_read else AgentContext.from_dict(context)
            return await self._taken(read_input(user_input), session, options, hear)
        except Exception as error:  # noqa: BLE001 - whatever happens is the result's to say
            return AgentResult(success=False, response="", error=describe(error))

    async def _taken(
        self, said: Said, session: AgentContext, options: TurnOptions, hear: Hear
    ) -> AgentResult:
        repository = MemoryThreads()
        await repository.adopt("", cast("Any", session.project_state.get(THREADS, {})))
        run_id = options.get("run_id") or self.new_id()

        def tell(kind: type[BaseEvent], /, **fields: Any) -> None:
            hear(cast("Event", kind(run_id=run_id, **fields)))

        limits = self.settings.overridden_by(options.get("settings")).limits
        meter = Meter(
            Account(MemoryJournal(), run_id),
            [Scope(RUN, limits.whole)],
            new_id=self.new_id,
            prices=with_free_ones(self.prices),
        )
        utils = HostUtils(
            thread_repository=repository,
            ai_adapter=AIAdapter(self.chat, RunnableConfig(callbacks=[*meter.handlers])),
            tell=tell,
            clock=self.clock,
            new_id=self.new_id,
        )
        turn = await turn_on(self.agent, session.session_id, utils)
        text = _text_of(said)
        questions = [restored(Question, each) for each in turn.settings.get(_QUESTIONS, ())]
        open_ones = [each for each in questions if each.is_open]
        if open_ones and text is not None and not options.get("new_request"):
            answered = open_ones[0].replace(answer=text)
            questions = [answered if each is open_ones[0] else each for each in questions]
            # Kept at once, so that nobody is asked again after a limit or a failure.
            await turn.keep(**{_QUESTIONS: _written(questions)})
            await turn.begin()
        else:
            await turn.begin(text)
            questions = questions if text is None else []
        try:
            async with meter, _in_time(limits):
                end = await self._worked(turn, questions, limits.max_questions, options.get("stop"))
        except LimitReachedError as limit:
            end = limit
        rows = cast("JsonValue", dict(await repository.rows("")))
        result = self._result(session, said, turn, end, rows)
        used = cast("JsonValue", meter.count.model_dump(mode="json"))
        return result.replace(metadata={**result.metadata, "usage": used})

    async def _worked(
        self, turn: Turn, questions: list[Question], most: int, stop: asyncio.Event | None
    ) -> Question | None:
        """Work until nothing is left to do, or a question is open; give the question."""

        def new(question: Question) -> Question:
            if len(questions) >= most:
                raise LimitReachedError("max_questions", most)
            return question.replace(asked_at=self.clock())

        asker = Asker(0, self.agent.__name__, known=questions, new=new)
        try:
            with asker:
                while turn.phase is not None and not (stop and stop.is_set()):
                    await turn.step()
        except Waiting as waiting:
            known = {each.key: each for each in (*questions, waiting.question)}
            await turn.keep(**{_QUESTIONS: _written(known.values())})
            return waiting.question
        if turn.phase is None and not turn.is_failed:
            await turn.keep(**{_QUESTIONS: []})
        return None

    def _result(
        self,
        session: AgentContext,
        said: Said,
        turn: Turn,
        end: Question | LimitReachedError | None,
        rows: JsonValue,
    ) -> AgentResult:
        at, failure = self.clock().isoformat(), turn.answer.failure
        asked = end if isinstance(end, Question) else None
        limit = end if isinstance(end, LimitReachedError) else None
        stopped = asked is None and (turn.phase is not None or limit is not None)
        response = asked.text if asked else "" if stopped or failure else turn.answer.text
        cut = ""
        if limit is not None:
            response, cut = turn.cut_by(limit)
        told = [Message(role="assistant", content=response, timestamp=at)] if response else []
        stage = "question" if asked else "stopped" if stopped or failure else "done"
        after = session.replace(
            dialogue_history=(*session.dialogue_history, *said.messages(at), *told),
            current_stage=stage,
            project_state={**session.project_state, THREADS: rows},
            session_metadata={**session.session_metadata, "last_updated": at},
        )
        _, phase, _ = turn.place
        error = None if failure is None else f"In the phase '{phase}': {describe(failure)}"
        outcome = {"question": "waiting", "done": "completed"}.get(stage, "interrupted")
        if cut or failure:
            outcome = "partial" if cut else "failed"
        return AgentResult(
            success=failure is None and not cut,
            response=response,
            context_updates=session.updates_to(after),
            metadata={"outcome": outcome, "stage": stage, "phase": phase},
            error=cut or error,
        )


@asynccontextmanager
async def _in_time(limits: Limits) -> AsyncGenerator[None]:
    """Let no turn take more seconds than it may."""
    clock = asyncio.timeout(limits.max_seconds)
    try:
        async with clock:
            yield
    except TimeoutError as error:
        if not clock.expired() or limits.max_seconds is None:
            raise
        raise LimitReachedError("max_seconds", limits.max_seconds) from error


def _written(questions: Iterable[Question]) -> list[JsonValue]:
    return [each.model_dump(mode="json") for each in questions]


def _text_of(said: Said) -> str | None:
    """What a user says as text; None goes on."""
    if said.is_empty:
        return None
    if said.answers is not None:
        return "\n".join(str(each) for each in said.answers.values())
    if isinstance(said.content, str):
        return said.content
    raise InputError("A pipeline takes text. Give a text, not content blocks.")

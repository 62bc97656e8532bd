"""An agent that is a pipeline: a turn of a session is a turn of the pipeline's main thread."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, cast

from langchain_core.runnables import RunnableConfig
from pydantic import JsonValue

from replan.errors import InputError, LimitReachedError
from replan.events.types import BaseEvent, Event, SpecialistToken
from replan.failures import describe
from replan.models.chat import Chat
from replan.ports.agent import TurnOptions
from replan.ports.ask_user import Waiting
from replan.ports.storage import Storage
from replan.ports.thread_repository import ThreadRepository
from replan.sessions.request import UserMessage
from replan.sessions.session_agent import Report, SessionAgent
from replan.sessions.session_runs import digest_of
from replan.sessions.turn_thread import (
    MARK,
    QUESTIONS,
    THREADS,
    place_of_threads,
    questions_in,
    turn_thread,
)
from replan.spending.account import Account
from replan.spending.meter import Meter
from replan.spending.scopes import RUN, Scope, with_free_ones
from replan.state.limits import Limits, Price, RunSettings
from replan.state.questions import Question
from replan.state.session.context import AgentContext, AgentResult, Message
from replan.steps.step_record import Asker
from replan.storage.memory_log import memory_log
from replan.texts.storable import well_formed
from replan.threads.ai_adapter import AIAdapter
from replan.threads.host_utils import HostUtils
from replan.threads.phase_at_work import Audience
from replan.threads.phases.agent_and_handler import BaseAgent
from replan.threads.turns.main_turn import Turn, turn_on


@dataclass(frozen=True, kw_only=True)
class PipelineAgent(SessionAgent):
    """An agent without state between two calls; `pipeline_agent` makes it.

    Contexts carry the pipeline's threads. The input of a turn is a text, which answers what is
    asked. None continues with what was stopped or has failed. Of the options, `new_request=True`
    abandons what waits. `stop` is an `asyncio.Event` that stops the work after the phase.
    `settings` bound the turn by `max_model_calls`, `max_tokens`, `max_cost` and `max_seconds`, and
    all turns from a message to its end by `max_questions`; a later turn continues.

    Texts of phases are `specialist_token` events with step 0, those of models in pieces.
    """

    agent: type[BaseAgent]  # the class of the pipeline's main agent
    chat: Chat | None  # what its handlers ask; None if they ask no model
    settings: RunSettings  # the limits of a turn
    prices: Mapping[str, Price]  # the prices of models, by their names
    clock: Callable[[], datetime]  # returns the time, with a time zone
    new_id: Callable[[], str]  # returns a new unique id
    # Where the thread of a turn is kept while the turn is taken; None keeps nothing.
    threads: ThreadRepository | None = None
    # No run of a storage reports its turns.
    has_runs: ClassVar[bool] = False

    def kept_in(self, storage: Storage) -> "PipelineAgent":
        """Return this agent with the thread of a turn in a storage, for a client.

        A turn with the `run_id` and the input of one that was killed continues it.
        """
        return replace(self, threads=storage.threads)

    async def _turn(
        self,
        message: UserMessage,
        session: AgentContext,
        options: TurnOptions,
        report: Report | None,
    ) -> AgentResult:
        run_id, text = options.get("run_id") or self.new_id(), _text_of(message)
        mark = digest_of([run_id, text])
        place = place_of_threads(options.get("labels") or {"session": session.session_id})
        own = await turn_thread(session, self.threads, place, mark)

        limits = self.settings.overridden_by(options.get("settings")).limits
        meter = Meter(
            Account(memory_log(), run_id),
            [Scope(RUN, limits.whole)],
            new_id=self.new_id,
            prices=with_free_ones(self.prices),
        )
        utils = self._utils(own.repository, meter, run_id, report)
        turn = await turn_on(self.agent, own.thread_id, utils, run_id=own.run_id)
        turn.note(**{MARK: mark})
        is_new = bool(options.get("new_request"))
        questions = await _begun(turn, text, is_new=is_new, goes_on=own.has_begun)
        try:
            async with meter, _in_time(limits):
                end = await self._worked(turn, questions, limits.max_questions, options.get("stop"))
        except LimitReachedError as limit:
            end = limit
        rows = await own.written(session)
        result = self._result(session, message, turn, end, rows)
        used = cast("JsonValue", meter.count.model_dump(mode="json"))
        return result.replace(metadata={**result.metadata, "usage": used})

    def _utils(
        self, repository: ThreadRepository, meter: Meter, run_id: str, report: Report | None
    ) -> HostUtils:
        """What the handlers get from outside: their model is metered, their texts are reported."""

        def tell(kind: type[BaseEvent], /, **fields: Any) -> None:
            if report is not None:
                report(cast("Event", kind(run_id=run_id, **fields)))

        def say(text: str) -> None:
            tell(SpecialistToken, step_id=0, specialist="", text=well_formed(text))

        async def show(text: str) -> None:
            say(text)

        return HostUtils(
            thread_repository=repository,
            ai_adapter=AIAdapter(self.chat, RunnableConfig(callbacks=[*meter.handlers])),
            tell=tell,
            audience=Audience() if report is None else Audience(show=show, on_text=say),
            clock=self.clock,
            new_id=self.new_id,
        )

    async def _worked(
        self, turn: Turn, questions: list[Question], most: int, stop: asyncio.Event | None
    ) -> Question | None:
        """Work until nothing is left to do, or a question is open; return the question."""

        def new(question: Question) -> Question:
            if len(questions) >= most:
                raise LimitReachedError("max_questions", most)
            return question.replace(asked_at=self.clock())

        asker = Asker(0, self.agent.__name__, known=questions, new=new)
        try:
            with asker.at_work():
                await turn.run_to_end(stop)
        except Waiting as waiting:
            known = {each.key: each for each in (*questions, waiting.question)}
            await turn.keep(**{QUESTIONS: _written(known.values())})
            return waiting.question
        if turn.phase is None and not turn.is_failed:
            await turn.keep(**{QUESTIONS: []})
        return None

    def _result(
        self,
        session: AgentContext,
        message: UserMessage,
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
        answered = [Message(role="assistant", content=response, timestamp=at)] if response else []
        stage = "question" if asked else "stopped" if stopped or failure else "done"
        after = session.replace(
            dialogue_history=(*session.dialogue_history, *message.messages(at), *answered),
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


async def _begun(turn: Turn, text: str | None, *, is_new: bool, goes_on: bool) -> list[Question]:
    """Begin a turn with what a user said, which may be an answer; return the questions so far."""
    questions = questions_in(turn.settings)
    open_ones = [each for each in questions if each.is_open]
    if goes_on or text is None:
        await turn.begin()
    elif open_ones and not is_new:
        answered = open_ones[0].replace(answer=text)
        questions = [answered if each is open_ones[0] else each for each in questions]
        # Stored immediately, so that no question is repeated after a limit or a failure.
        await turn.keep(**{QUESTIONS: _written(questions)})
        await turn.begin()
    else:
        questions = []
        turn.note(**{QUESTIONS: []})
        await turn.begin(text)
    return questions


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


def _text_of(message: UserMessage) -> str | None:
    """What a user says as text; None continues."""
    if message.is_empty:
        return None
    if message.answers is not None:
        return "\n".join(str(each) for each in message.answers.values())
    if isinstance(message.content, str):
        return message.content
    raise InputError("A pipeline takes text. Give a text, not content blocks.")

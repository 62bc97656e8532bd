"""An agent that is one job, without a host; the session carries the job."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from pydantic import JsonValue

from replan.errors import InputError
from replan.events.calls import Calls
from replan.events.emitter import Hooks
from replan.events.types import BaseEvent
from replan.jobs.job import Job
from replan.jobs.job_reading import unconfirmed
from replan.jobs.processor import JobProcessor, ProcessResult
from replan.jobs.views import view_of
from replan.ports.agent import Agent, TurnOptions
from replan.ports.run_context import here, use
from replan.sessions.carried_run import RUN
from replan.sessions.request import UserMessage
from replan.sessions.sealed_job import JobSeal
from replan.sessions.session_agent import Report, SessionAgent
from replan.state.session.context import AgentContext, AgentResult, Message, Stage
from replan.state.session.session import JOB


@dataclass(frozen=True)
class JobAgent(SessionAgent):
    """Takes the turns of sessions about a job; `job_agent` creates it.

    It stores nothing between two calls: the job is in `project_state["job"]`, with all its values;
    those of secret slots are sealed.

    The input of a turn is a text, content blocks, or values of slots by name. None shows what the
    job asks for. Of the options, `new_request=True` abandons the job, and begins a new one. Events
    report recorded actions, warnings, and what `others` do.
    """

    processor: JobProcessor
    clock: Callable[[], datetime]  # gives the time of messages, with its zone
    # Answers other requests of the user; then the job asks its question again.
    others: Agent | None
    seal: JobSeal  # writes jobs into contexts

    def view(self, context: AgentContext) -> dict[str, JsonValue] | None:
        """The status of a session's job, without secrets; None if the session has no job.

        Raises:
            JobError: The job cannot be used.
        """
        job = self._job_in(context)
        return None if job is None else view_of(self.processor.spec, job)

    async def _turn(
        self,
        message: UserMessage,
        session: AgentContext,
        options: TurnOptions,
        report: Report | None,
    ) -> AgentResult:
        if report is not None:
            _tell(report, options.get("run_id") or session.session_id)
        stop: asyncio.Event | None = options.get("stop")
        if stop is not None and stop.is_set():
            raise InputError("The turn was stopped before it began.")
        if options.get("new_request"):
            others = {k: v for k, v in session.project_state.items() if k != RUN}
            job, session = None, session.replace(project_state=others)
        else:
            job = self._job_in(session)
        if job is None:
            # A turn that was killed and is taken again under its name begins the same job.
            job = self.processor.new_job(job_id=options.get("run_id"))
        text = _text_of(message)
        result = await self.processor.process(job, [text] if text else [])
        beside = await self._beside(text, session, result, options, report)
        response = result.response_message
        if beside is not None:
            session = session.apply(beside.context_updates)
            response = f"{beside.response}\n\n{response}"
        after = self._after(session, message, result, response, is_beside=beside is not None)
        return self._result(result, response, session.updates_to(after), beside)

    def _job_in(self, session: AgentContext) -> Job | None:
        if RUN in session.project_state:
            raise InputError(
                "The job of this session waits in a run. Let build_agent(Team([Specialist(..., "
                "job=...)])) take the turn, or give the job up with new_request=True."
            )
        written = self.seal.opened(session)
        if written is None:
            return None
        job = self.processor.read(written)
        return job if self.seal.key is not None else unconfirmed(job)

    async def _beside(
        self,
        text: str,
        session: AgentContext,
        result: ProcessResult,
        options: TurnOptions,
        report: Report | None,
    ) -> AgentResult | None:
        """Let others answer what was asked outside the job."""
        if self.others is None or not text or result.understood or not result.need_user_input:
            return None
        asked: TurnOptions = {"new_request": True, "stop": options.get("stop")}
        if report is None:
            answered = await self.others.process(text, session, **asked)
            return answered if answered.success and answered.response else None
        answered = None
        async with aclosing(self.others.stream(text, session, **asked)) as parts:
            async for each in parts:
                if isinstance(each, AgentResult):
                    answered = each
                else:
                    report(each)
        return answered if answered and answered.success and answered.response else None

    def _after(
        self,
        session: AgentContext,
        message: UserMessage,
        result: ProcessResult,
        response: str,
        *,
        is_beside: bool,
    ) -> AgentContext:
        """The session after the turn; what was said is in it without secrets."""
        at = self.clock().isoformat()
        asked = message.messages(at) if not is_beside else ()
        messages = [self._masked(each, result.job) for each in asked]
        if is_beside:
            response = result.response_message
        if response:
            shown = self.seal.without_secrets(response, result.job)
            messages.append(Message(role="assistant", content=shown, timestamp=at))
        return session.replace(
            dialogue_history=(*session.dialogue_history, *messages),
            current_stage=_stage_of(result),
            project_state=self.seal.written(result.job, session),
            session_metadata={**session.session_metadata, "last_updated": at},
        )

    def _masked(self, message: Message, job: Job) -> Message:
        """A message without the values of secret slots."""
        content = message.content
        text = content if isinstance(content, str) else _text_of(UserMessage(content=content))
        shown = self.seal.shown_message(text, job)
        return message if shown == text else message.replace(content=shown, metadata={})

    def _result(
        self,
        result: ProcessResult,
        response: str,
        updates: dict[str, JsonValue],
        beside: AgentResult | None,
    ) -> AgentResult:
        job, spec = result.job, self.processor.spec
        view = view_of(spec, job)
        question: JsonValue = {
            "key": JOB,
            "kind": "question",
            "text": result.response_message,
            "details": view,
        }
        is_broken = job.error_code in ("action", "broken")
        others = {} if beside is None else beside.metadata
        return AgentResult(
            success=not is_broken,
            response=response,
            context_updates=updates,
            metadata={
                **others,
                "outcome": "waiting" if result.need_user_input else job.status,
                "stage": _stage_of(result),
                "questions": [question] if result.need_user_input else [],
                "approval": None,
                "degraded": is_broken,
                JOB: view,
            },
            error=job.error if is_broken else None,
        )


def _tell(report: Report, run_id: str) -> None:
    """Report calls from here on in this task to those who listen."""
    write = cast("Callable[[BaseEvent], None]", report)
    emitter = here().emitter_for(write, Hooks().of(run_id), run_id, 0)
    calls = Calls(emitter=emitter, config={}, about={"node": JOB})
    use(run_id=run_id, node=JOB, emitter=emitter, config={}, calls=calls)


def _stage_of(result: ProcessResult) -> Stage:
    return "question" if result.need_user_input else "done"


def _text_of(message: UserMessage) -> str:
    if message.answers is not None:
        lines = [
            str(each) if name == JOB else f"{name}: {each}"
            for name, each in message.answers.items()
        ]
        return "\n".join(lines)
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return "\n".join(str(each.get("text", "")) for each in message.content)

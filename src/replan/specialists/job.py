"""A specialist that is a job: it asks the user for what it needs, and acts once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from pydantic import JsonValue

from replan.base.errors import InputError
from replan.jobs.action_executor import ActionExecutor
from replan.jobs.actions import Executor
from replan.jobs.extraction.by_model import ModelExtractor, RulesThenModel
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.extraction.port import Extractor
from replan.jobs.job_reading import unconfirmed
from replan.jobs.processor import JobProcessor, ProcessResult
from replan.jobs.recorded import RecordedExecutor
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import shown_job, view_of, without_secrets
from replan.models.chat import Chat
from replan.ports.ask_user import ask
from replan.ports.run_context import here, using
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.session.session import JOB, SEALED, Seal, SessionWork, opened_note
from replan.state.team import SpecialistCard

ASKED, SAID = "asked", "said"
"""Where the note of a job has what it asks, and what was said to begin it."""


@dataclass(frozen=True, kw_only=True)
class JobSpecialist:
    """Does a step as a job.

    A step that waits is done again when the answer is there. So the job is on record with what it
    asks, and so is each action.
    """

    card: SpecialistCard
    spec: JobSpec
    api: Executor
    clock: Callable[[], datetime]
    chat: Chat | None = None
    continues_sessions: ClassVar[bool] = True
    reads_texts_alone: ClassVar[bool] = True
    kept_names: ClassVar[frozenset[str]] = frozenset({JOB})

    @property
    def takes_secrets(self) -> bool:
        """Whether its runs hold values of secret slots."""
        return any(slot.secret for slot in self.spec.slots)

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Take turns until the job is over; the step waits where a question has no answer yet."""
        work = here().work
        # A team inside an action has no session.
        with using(work=None):
            result = await self._process(context, config, work)
        return self._result(result, work)

    async def _process(
        self, context: ExecutionContext, config: RunnableConfig, work: SessionWork | None
    ) -> ProcessResult:
        record, processor = here().transcript, self._processor(config)
        seal = None if work is None else work.seal
        number, note = await record.newest_reply()
        waits: dict[str, Any] = opened_note(note, seal)
        if work is not None and seal is not None and not waits:
            # The run's request does not have the words.
            waits = dict[str, Any]({SAID: work.said})
            await record.note_reply(number, _closed(waits, seal))
        result = None
        if JOB not in waits:
            stored_job: Any = None if work is None else work.state.get(JOB)
            result = await self._begun(
                processor, context, waits.get(SAID, context.task), stored_job
            )
        elif (asker := here().asker) is not None:
            asker.skip(number - 1)
        while result is None or result.need_user_input:
            if result is not None:
                number, waits = number + 1, self._waiting(result)
                await record.replace_reply(number, _closed(waits, seal))
            job = processor.read(waits[JOB])
            with using(place=str(number)):
                # Whatever is asked for, the answer may have a secret in it.
                names = self.spec.slots_of(job.command)
                secret = any(self.spec.slot(name).secret for name in names)
                answer = ask(waits[ASKED], details=view_of(self.spec, job), secret=secret)
            # A person may have written the record of a run that nobody signed.
            result = await processor.process(unconfirmed(job), [_answer_text(answer, seal)])
        return result

    async def _begun(
        self, processor: JobProcessor, context: ExecutionContext, task: str, job: Any
    ) -> ProcessResult:
        """Take the first turn, of the job of the session or of a new one."""
        parameters = {name: v for name, v in context.parameters.items() if self.spec.knows(name)}
        command = str(context.parameters.get("command"))
        command = command if self.spec.command(command) is not None else ""
        if job is None:
            job = processor.new_job(command, parameters, job_id=context.idempotency_key or None)
        return await processor.process(job, [task])

    def _waiting(self, result: ProcessResult) -> dict[str, Any]:
        """The job that waits, and what it asks."""
        question = without_secrets(self.spec, result.job, result.response_message)
        return {JOB: result.job.to_dict(), ASKED: question}

    def _processor(self, config: RunnableConfig) -> JobProcessor:
        record = here().transcript
        extractor: Extractor = RuleExtractor()
        if self.chat is not None:
            extractor = RulesThenModel(ModelExtractor(self.chat, config))
        executor = ActionExecutor(self.api, lambda: self.clock().date())
        return JobProcessor(
            self.spec,
            extractor=extractor,
            executor=RecordedExecutor(executor, record),
            clock=self.clock,
            new_id=lambda: record.key,
        )

    def _result(self, result: ProcessResult, work: SessionWork | None) -> SpecialistResult:
        job, kept = shown_job(self.spec, result.job), dict[str, JsonValue]()
        message = without_secrets(self.spec, result.job, result.response_message)
        text = AIMessage(message) if message else None
        output: Any = job.to_dict()
        if work is not None:
            whole: Any = result.job.to_dict()
            kept = {JOB: whole if work.seal is None else work.seal.closed(whole)}
        if result.is_completed:
            return SpecialistResult(result=text, output=output, project_state=kept)
        return SpecialistResult(
            # Who talks with the job hears how it can go on.
            result=None if work is None else text,
            status=ExecutionStatus.FAILED,
            error=job.error or "the job is not completed",
            retry=False,
            output=output,
            project_state=kept,
        )


def _closed(waits: Mapping[str, Any], seal: Seal | None) -> dict[str, Any]:
    """A note about a job that waits."""
    return {**waits} if seal is None else {JOB: seal.closed({**waits})}


def _answer_text(answer: JsonValue, seal: Seal | None) -> str:
    """An answer as a message: of blocks the texts; a form becomes names and values.

    Raises:
        InputError: It is sealed for a session, and this is none of its turns.
    """
    if isinstance(answer, str) and answer.startswith(SEALED):
        if seal is None:
            raise InputError("This answer is sealed for its session. Continue the session.")
        answer = seal.opened(answer)
    if isinstance(answer, dict):
        return "\n".join(f"{name}: {each}" for name, each in answer.items())
    if isinstance(answer, list) and all(map(_is_block, answer)):
        return _texts_in(cast("list[dict[str, Any]]", answer))
    return "" if answer is None else str(answer)


def _is_block(value: JsonValue) -> bool:
    return isinstance(value, dict) and "type" in value


def _texts_in(blocks: list[dict[str, Any]]) -> str:
    """What a job reads of content blocks; the rest is told."""
    texts = [str(block.get("text", "")) for block in blocks if block["type"] == "text"]
    if others := dict.fromkeys(str(each["type"]) for each in blocks if each["type"] != "text"):
        here().warn(
            f"A job reads texts alone, so of an answer it was not given: {', '.join(others)}."
        )
    return "\n".join(texts)

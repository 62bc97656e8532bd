"""The record of one step of one specialist: its attempts, questions and tool calls."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from pydantic import JsonValue

from replan.base.errors import InputError, QuestionError
from replan.base.failures import describe
from replan.base.texts.storable import storable, storable_text
from replan.base.values import restored
from replan.log.events.emitter import Emitter
from replan.log.events.listeners import Announcement
from replan.log.events.types import (
    AttemptEnded,
    InputRequested,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistRetried,
)
from replan.log.rows import Attempt, LedgerEntry
from replan.log.run_log import ACTED, RunLog
from replan.log.transcript import ToolRun, Transcript
from replan.ports.ask_user import Waiting
from replan.ports.elsewhere import AskedElsewhere
from replan.ports.run_context import here
from replan.specialists.services import Services
from replan.specialists.steps.answer_events import report_answer
from replan.specialists.steps.board import QUESTIONS, Board
from replan.specialists.steps.on_record import (
    Keys,
    attempts_of,
    failures,
    key_of_result,
    newest_number,
)
from replan.state.knowledge import Knowledge
from replan.state.limits import OnDoubt
from replan.state.outcomes import AttemptOutcome
from replan.state.person.answers import problem_in, read_answer
from replan.state.questions import (
    Question,
    QuestionKind,
    fingerprint_of,
    question_key,
    questions_of,
)
from replan.state.results import FIRST, ExecutionContext, SpecialistResult, result_key
from replan.state.usage import TokenCount

ANSWERS = "answer/"  # the prefix of notes that hold answers; the question's key follows

KNOWLEDGE = "knowledge/"
"""The prefix of notes that hold the knowledge for a step; the step's key follows."""


@dataclass
class StepRecord:
    """The log of one step of one specialist: reads it, and writes into it."""

    context: ExecutionContext  # what the specialist sees
    specialist: str  # its name
    keys: Keys  # the keys of the attempts and of their results
    board: Board
    services: Services
    emitter: Emitter
    on_doubt: OnDoubt = "ask"  # what happens to unsafe work that was cut off, or done before
    # The earlier attempts of the step, including those of other rounds and processes.
    tried: tuple[LedgerEntry, ...] = ()
    before: SpecialistResult | None = None  # the outcome of the step when it was done before
    # Its questions in order, with the known answers.
    questions: tuple[Question, ...] = ()
    number: int = field(init=False)  # the newest attempt, counted over rounds and resumptions
    failures: int = field(init=False)  # how many attempts of exactly this work failed

    def __post_init__(self) -> None:
        self._transcript: Transcript | None = None
        self._is_informed = False  # whether its knowledge is on record
        self._count_attempts(self.tried)

    def _count_attempts(self, tried: tuple[LedgerEntry, ...]) -> None:
        self.tried = tried
        self.number = newest_number(tried)
        self.failures = failures(tried, self.keys.attempt)

    async def recall(self) -> None:
        """Read the record of earlier attempts, and the questions that they asked."""
        board = self.board
        self.questions = await self._known_questions()
        tried = attempts_of(board.ledger, self.context.plan_step.id, self.specialist)
        if tried:
            self.before = board.recorded.before(board.state, self.key)
            self._count_attempts(tried)

    @property
    def key(self) -> str:
        return result_key(self.context.plan_step.id, self.specialist)

    @property
    def names(self) -> dict[str, object]:
        step_id = self.context.plan_step.id
        return {"step_id": step_id, "specialist": self.specialist, "attempt": self.number}

    async def begin(self) -> SpecialistResult | None:
        """Record that an attempt begins; return the step's result if there is one by now."""
        self.number += 1
        self._attempt = Attempt(
            run_id=self.context.run_id,
            step_id=self.context.plan_step.id,
            specialist=self.specialist,
            number=self.number,
            key=self.keys.attempt,
            started_at=self.services.clock(),
            idempotency_key=self.context.idempotency_key,
        )
        task, key = self.context.task_description, self.context.idempotency_key
        about = {**self.names, "task": task, "idempotency_key": key}
        begins = self.emitter.announce(SpecialistInvoked, **about)
        return await self.services.log.started(self._attempt, self.keys.result, begins)

    async def ended(
        self, outcome: AttemptOutcome, error: str = "", announced: Announcement | None = None
    ) -> None:
        """Record how the newest attempt ended, without a final result."""
        about = {"outcome": outcome, "error": error}
        announced = announced or self.emitter.announce(AttemptEnded, **self.names, **about)
        now = self.services.clock()
        await self.services.log.ended(self._attempt, outcome, now, error, announced)

    async def failed(self, error: str) -> None:
        """Record that the newest attempt failed, and that another one follows."""
        self.failures += 1
        again = self.emitter.announce(SpecialistRetried, **self.names, error=error)
        await self.ended("failed", error, again)
        if self._transcript is not None:
            await self._transcript.restart()

    async def cut_off(self, error: Exception) -> LedgerEntry:
        """Record that an attempt was cut off, so that its end is unknown."""
        await self.ended("cancelled", describe(error))
        fields = {name: getattr(self._attempt, name) for name in Attempt.model_fields}
        return LedgerEntry(**fields, outcome="cancelled", error=describe(error))

    async def finished(
        self, result: SpecialistResult, of: LedgerEntry | None = None
    ) -> SpecialistResult:
        """Record the final result, as the outcome of the newest attempt or of an earlier one.

        Returns:
            The result that counts: another process may have recorded one before.
        """
        if of is not None:
            self._attempt = Attempt(**{name: getattr(of, name) for name in Attempt.model_fields})
        log, run_id = self.services.log, self.context.run_id
        # Recorded before others see it: LangGraph writes a node's update in the background.
        if self._transcript is not None and self._transcript.has_acted:
            await log.note(run_id, ACTED + self.key, value=True)
        key = key_of_result(self.keys, result)
        done = self.emitter.announce(SpecialistCompleted, **self.names, result=result)
        counts = await log.finished(self._attempt, result, self.services.clock(), key, done)
        if self._is_informed:
            await log.strike(run_id, self._knowledge)
        if self._transcript is not None:
            # A failed step may be reopened: its tool calls are then not repeated.
            failed = result.is_failed
            await (self._transcript.restart() if failed else self._transcript.close())
        return counts

    def transcript(self) -> Transcript:
        """The record of the tool calls of the newest attempt."""
        if self._transcript is None:
            key, run_id = self.context.idempotency_key, self.context.run_id
            self._transcript = Transcript(self.services.log, run_id, key, self.on_doubt)
        self._transcript.attempt = self.number
        return self._transcript

    async def calls_in_doubt(self) -> tuple[ToolRun, ...]:
        """The calls of unsafe tools whose end is unknown."""
        return () if self._transcript is None else await self._transcript.calls_in_doubt()

    @property
    def thread_id(self) -> str:
        """The thread of a pipeline that does the step, in its generation."""
        run_id, step_id = self.context.run_id, self.context.plan_step.id
        generation = self.board.state.get("generations", {}).get(step_id, FIRST)
        return f"{run_id}/{step_id}.{generation.settled}/{self.specialist}"

    async def known_knowledge(self) -> Knowledge | None:
        """The knowledge that an earlier attempt got; None if nothing is on record."""
        notes = await self.services.log.notes(self.context.run_id, self._knowledge)
        self._is_informed = bool(notes)
        return next((restored(Knowledge, note) for note in notes.values()), None)

    async def note_knowledge(self, knowledge: Knowledge) -> None:
        """Record the knowledge, so that a step that asks a person is not searched for twice."""
        note = knowledge.model_dump(mode="json")
        await self.services.log.note(self.context.run_id, self._knowledge, note)
        self._is_informed = True

    async def note_warnings(self, texts: Sequence[str]) -> None:
        """Record the warnings of an attempt: if it is cut off, it returns nothing to the state."""
        note = f"{self._warned}{self.number}"
        await self.services.log.note(self.context.run_id, note, [*texts])

    async def recall_warnings(self) -> None:
        """Take over warnings of earlier attempts that the state lacks."""
        if not self.tried:
            return
        noted = await self.services.log.notes(self.context.run_id, self._warned)
        reported = {*self.board.state.get("warnings", []), *self.emitter.warnings}
        texts = [text for note in noted.values() for text in cast("list[str]", note)]
        self.emitter.warnings.extend(text for text in texts if text not in reported)

    @property
    def _warned(self) -> str:
        return f"warned/{self.key}/"

    @property
    def _knowledge(self) -> str:
        return f"{KNOWLEDGE}{self.context.idempotency_key}/"

    def asker(self) -> "Asker":
        step_id = self.context.plan_step.id
        return Asker(step_id, self.specialist, known=self.questions, new=self._admit)

    async def note_asked(self, asker: "Asker", attempt: int, used: TokenCount) -> list[Question]:
        """Record the questions of an attempt, report new ones, and return them for the state."""
        log, run_id = self.services.log, self.context.run_id
        questions = [question.replace(round=self.context.round) for question in asker.asked]
        for question in questions:
            note: dict[str, JsonValue] = question.model_dump(mode="json")
            about = {**self.names, "attempt": attempt}
            asks = self.emitter.announce(InputRequested, **about, question=question)
            await log.note(run_id, QUESTIONS + question.key, note, asks)
        return [questions[0].replace(usage=used), *questions[1:]]

    def _admit(self, question: Question) -> Question:
        most = self.board.settings.limits.max_questions
        if next(self.board.questions) > most:
            raise QuestionError(
                f"The limit max_questions={most} is reached: the run asks no more questions. "
                "Raise the limit, or ask less."
            )
        return question.replace(asked_at=self.services.clock())

    async def _known_questions(self) -> tuple[Question, ...]:
        log, run_id = self.services.log, self.context.run_id
        stated, noted = self.board.state.get("questions"), self.board.noted
        if not (stated or noted):
            return ()
        own_questions = questions_of(stated or {}, self.context.plan_step.id, self.specialist)
        questions = {question.key: question for question in own_questions}
        for key, value in noted.items():
            if key.startswith(f"{QUESTIONS}{self.key}/"):
                question: Question = restored(Question, value)
                questions.setdefault(question.key, question)
        if any(question.is_open for question in questions.values()):
            answered = await _with_answers(questions, log, run_id)
            for key, question in answered.items():
                if questions[key].is_open and question.answer is not None:
                    await report_answer(question, question.answer, self.emitter, log)
            questions = answered
        return tuple(sorted(questions.values(), key=lambda question: question.ordinal))

    async def is_noted(self, note: str) -> bool:
        return note in await self.services.log.notes(self.context.run_id, note)


async def _with_answers(
    questions: Mapping[str, Question], log: RunLog, run_id: str
) -> dict[str, Question]:
    noted = await log.notes(run_id, ANSWERS)
    return {
        key: question.replace(answer=noted[ANSWERS + key])
        if question.is_open and ANSWERS + key in noted
        else question
        for key, question in questions.items()
    }


class Asker:
    """The questions of one attempt, and which are open; code inside the attempt can ask."""

    def __init__(
        self,
        step_id: int,
        specialist: str,
        *,
        known: Iterable[Question] = (),
        new: Callable[[Question], Question],
    ) -> None:
        # `known` are the questions that the step asked before, in their order, with their answers;
        # `new` adds a new question, or raises if no more are allowed.
        self.asked: list[Question] = []  # the questions that this attempt waits for
        self.listed: list[AskedElsewhere] = []  # all that it asked, answered or not
        around = here().asker
        # In a graph that a step runs, the path begins with that step.
        self.path = f"{around.path}/{step_id}/{specialist}" if around else f"{step_id}/{specialist}"
        self._step_id = step_id
        self._specialist = specialist
        self._known = list(known)
        self._admit = new
        self._taken: set[str] = set()
        self._skipped = 0
        self._is_over = False
        # Tools that are called at the same time ask from several threads.
        self._guard = threading.Lock()

    def close(self) -> None:
        """End it: code that outlives the attempt asks nothing more."""
        with self._guard:
            self._is_over = True

    def skip(self, number: int) -> None:
        """Count questions that earlier attempts asked, and this one does not ask again."""
        self._skipped = number

    def remember(self, questions: Iterable[Question]) -> None:
        with self._guard:
            keys = {question.key for question in self._known}
            self._known += [question for question in questions if question.key not in keys]

    def ask(
        self, text: str, kind: QuestionKind, details: JsonValue, *, secret: bool = False
    ) -> JsonValue:
        text, details = storable_text(text), storable(details)
        if not text.strip():
            raise QuestionError("The question is empty. Ask with a text.")
        with self._guard:
            if self._is_over:
                raise QuestionError("The step that asks is over. Ask before its work ends.")
            place = here().place
            self.listed.append(
                AskedElsewhere(text=text, kind=kind, details=details, secret=secret, place=place)
            )
            question = self._question(text, kind, details, secret=secret)
            if question.answer is not None:
                self._taken.add(question.key)
                return question.answer
            if question not in self.asked:
                self.asked.append(question)
        raise Waiting(question)

    def _question(
        self, text: str, kind: QuestionKind, details: JsonValue, *, secret: bool
    ) -> Question:
        """Find the question among the known ones not yet asked in this attempt, or add it."""
        place = here().place
        wanted = _identity(kind, text, details, place)
        for question in self._known:
            identity = _identity(question.kind, question.text, question.details, question.place)
            if question.key not in self._taken and identity == wanted:
                return question
        early = self._answered_before(kind)
        used = {question.ordinal for question in self._known}
        ordinal = next(number for number in count(1) if number not in used)
        key = question_key(self._step_id, self._specialist, ordinal)
        question = Question(
            key=key,
            fingerprint=fingerprint_of(key, kind, text, details),
            step_id=self._step_id,
            specialist=self._specialist,
            text=text,
            kind=kind,
            details=details,
            secret=secret,
            place=place,
        )
        if early is not None:
            try:
                return early.replace(answer=read_answer(question, early.answer))
            except InputError as error:
                question = question.replace(problem=f"{error}")
        question = self._admit(question)
        self._known.append(question)
        return question

    def _answered_before(self, kind: QuestionKind) -> Question | None:
        """The answer that was handed in before its question: it is found by its position."""
        if kind != "question":
            # It may not be what the person would have approved.
            return None
        position = self._skipped + len(self._taken) + 1
        return next(
            (
                question
                for question in self._known
                if not question.text and question.ordinal == position
            ),
            None,
        )


def _identity(
    kind: QuestionKind, text: str, details: JsonValue, place: str
) -> tuple[QuestionKind, str, JsonValue, str]:
    # A later version may describe the answer in another way.
    text = problem_in(text) if kind == "unknown_outcome" else text
    return kind, text, None if kind == "question" else details, place

"""How a specialist asks a person: it gets an answer that exists, or the step waits.

A question is state: it is known by its step and its words, not by the moment in which it is asked.
So a step that is done again up to its question gets the answer, wherever the answer was kept.
"""

import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar, Token
from itertools import count

from langgraph.errors import GraphBubbleUp
from pydantic import JsonValue

from replan.errors import QuestionError
from replan.state.questions import Question, QuestionKind, fingerprint_of, question_key
from replan.texts.storable import storable, storable_text


class Waiting(GraphBubbleUp):
    """Unwinds a step that waits for a person's answer; it passes through agents and tools."""

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(question.text)


class Asker:
    """The questions of one attempt of a step, and which of them are open.

    Code that runs inside this context manager can ask.

    Attributes:
        asked: The questions that this attempt waits for.
        path: The step and the specialist; in a graph that a step runs, behind those of that step.
    """

    def __init__(
        self,
        step_id: int,
        specialist: str,
        *,
        known: Iterable[Question] = (),
        new: Callable[[Question], Question],
    ) -> None:
        """Begin an attempt.

        Args:
            step_id: The step.
            specialist: The specialist of the attempt.
            known: The questions that the step asked before, in their order, with their answers.
            new: Takes a new question in, or raises if there may be no more.
        """
        self.asked: list[Question] = []
        self.path = f"{path_of_step()}{step_id}/{specialist}"
        self._step_id = step_id
        self._specialist = specialist
        self._known = list(known)
        self._new = new
        self._taken: set[str] = set()
        self._is_over = False
        # Tools that are called at once ask from several threads.
        self._guard = threading.Lock()
        self._before: Token[Asker | None] | None = None

    def __enter__(self) -> None:
        self._before = _asker.set(self)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            _asker.reset(self._before)
        self.close()

    def ask(self, text: str, kind: QuestionKind, details: JsonValue) -> JsonValue:
        """Return the answer to a question.

        Raises:
            Waiting: The question is not answered yet.
            QuestionError: The question is empty, there were too many, or the attempt is over.
        """
        text, details = storable_text(text), storable(details)
        if not text.strip():
            raise QuestionError("The question is empty.")
        with self._guard:
            if self._is_over:
                raise QuestionError("The step that asks is over.")
            question = self._question(text, kind, details)
            if question.answer is not None:
                self._taken.add(question.key)
                return question.answer
            if question not in self.asked:
                self.asked.append(question)
        raise Waiting(question)

    def close(self) -> None:
        """Refuse further questions of code that outlives the attempt."""
        with self._guard:
            self._is_over = True

    def _question(self, text: str, kind: QuestionKind, details: JsonValue) -> Question:
        """Find the question among the known ones not yet asked in this attempt, or take it in."""
        wanted = (kind, text, None if kind == "question" else details)
        for question in self._known:
            if question.key not in self._taken and _identity(question) == wanted:
                return question
        # What was answered before it was asked may not be what a person would have let happen.
        for question in self._known if kind == "question" else ():
            # An answer that was handed in before the question was: its place tells which it is.
            if not question.text and question.ordinal == len(self._taken) + 1:
                return question
        key = question_key(self._step_id, self._specialist, self._free_ordinal())
        question = self._new(
            Question(
                key=key,
                fingerprint=fingerprint_of(key, kind, text, details),
                step_id=self._step_id,
                specialist=self._specialist,
                text=text,
                kind=kind,
                details=details,
            )
        )
        self._known.append(question)
        return question

    def _free_ordinal(self) -> int:
        used = {question.ordinal for question in self._known}
        return next(ordinal for ordinal in count(1) if ordinal not in used)


def ask_user(text: str) -> JsonValue:
    """Ask a person, from a specialist, from one of its tools, or from a graph that it runs.

    If there is an answer, it is given. Else the step stops here and waits, while other branches go
    on; when the answer is there, the step is done again from its beginning, and gets it here. A
    question is known by its words, so ask the same thing in the same words each time.

    Returns:
        The answer as it was given: text, or any JSON value.

    Raises:
        QuestionError: Nobody can be asked: this is no specialist's step, or it asked too much.
    """
    return ask(text)


def ask(text: str, *, kind: QuestionKind = "question", details: JsonValue = None) -> JsonValue:
    """Ask like `ask_user`, about anything; what is no plain question is known by its details, too.

    Raises:
        QuestionError: Nobody can be asked.
    """
    asker = _asker.get()
    if asker is None:
        raise QuestionError(
            "ask_user was called outside of a specialist's step. Call it in a specialist, in one "
            "of its tools, or in a graph that it runs; hand the context on to threads of your own."
        )
    return asker.ask(text, kind, details)


def path_of_step() -> str:
    """The step that runs this code, as the beginning of a question's key; empty outside of one."""
    asker = _asker.get()
    return "" if asker is None else f"{asker.path}/"


_asker: ContextVar[Asker | None] = ContextVar("replan_asker", default=None)


def _identity(question: Question) -> tuple[QuestionKind, str, JsonValue]:
    details = None if question.kind == "question" else question.details
    return question.kind, question.text, details

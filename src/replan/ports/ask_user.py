"""How a specialist asks a person: it gets an answer that exists, or the step waits.

A question is state: it is known by its step and its words, not by the moment in which it is asked.
So a step that is done again up to its question gets the answer, wherever the answer was kept.
"""

from contextvars import ContextVar
from typing import Protocol

from langgraph.errors import GraphBubbleUp
from pydantic import JsonValue

from replan.errors import QuestionError
from replan.state.questions import Question, QuestionKind


class Waiting(GraphBubbleUp):
    """Unwinds a step that waits for a person's answer; it passes through agents and tools."""

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(question.text)


class Asks(Protocol):
    """What finds the answers of the step that runs here."""

    path: str
    """The step and the specialist; in a graph that a step runs, after those of that step."""

    def ask(
        self, text: str, kind: QuestionKind, details: JsonValue, *, secret: bool = False
    ) -> JsonValue:
        """Return the answer to a question, or raise `Waiting` if there is none."""
        ...


asker_at_work: ContextVar[Asks | None] = ContextVar("replan_asker", default=None)
"""Who asks for the code that runs here; None outside a step."""

place_at_work: ContextVar[str] = ContextVar("replan_place_of_questions", default="")
"""The round of a pipeline's thread that asks; empty outside a pipeline."""


def ask_user(text: str) -> JsonValue:
    """Ask a person, from a specialist, from one of its tools, or from a graph that it runs.

    If there is an answer, it is returned. Otherwise the step stops here and waits, while other
    branches continue. When the answer arrives, the step runs again from its beginning, and gets the
    answer here. A question is identified by its words, so ask the same thing in the same words.

    Returns:
        The answer, unchanged: text, or any JSON value.

    Raises:
        QuestionError: Nobody can be asked: this is not a specialist's step, or it asked too much.
    """
    return ask(text)


def ask(
    text: str,
    *,
    kind: QuestionKind = "question",
    details: JsonValue = None,
    secret: bool = False,
) -> JsonValue:
    """Ask like `ask_user`, about anything; the details identify what is not a plain question, too.

    No event contains the answer to a question that is `secret`.

    Raises:
        QuestionError: Nobody can be asked.
    """
    asker = asker_at_work.get()
    if asker is None:
        raise QuestionError(
            "ask_user was called outside a specialist's step. Call it in a specialist, in one "
            "of its tools, or in a graph that it runs; pass the context to threads of your own."
        )
    return asker.ask(text, kind, details, secret=secret)


def path_of_step() -> str:
    """The step that runs this code, as the beginning of a question's key; empty outside one."""
    asker = asker_at_work.get()
    return "" if asker is None else f"{asker.path}/"

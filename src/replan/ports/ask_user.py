"""How a specialist asks a person: it gets an answer that exists, or the step waits.

A question is state: it is known by its step and its words, not by the moment in which it is asked.
So a step that is done again up to its question gets the answer, wherever the answer was kept.
"""

from collections.abc import Sequence

from langgraph.errors import GraphBubbleUp
from pydantic import JsonValue

from replan.base.errors import QuestionError
from replan.ports.run_context import here
from replan.state.questions import CHOICES, Question, QuestionKind


class Waiting(GraphBubbleUp):
    """Unwinds a step that waits for a person's answer; it passes through agents and tools."""

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__(question.text)


def ask_user(text: str, choices: Sequence[str] = ()) -> JsonValue:
    """Ask a person, from a specialist, from one of its tools, or from a graph that it runs.

    If there is an answer, it is returned. Otherwise the step stops here and waits, while other
    branches continue. When the answer arrives, the step runs again from its beginning, and gets the
    answer here. A question is identified by its words, so ask the same thing in the same words.

    Args:
        text: The question.
        choices: The answers that it takes, if it does not take any; they are shown with it. What is
            none of them, in lower or upper case, is refused, and the question stays open.

    Returns:
        The answer, unchanged: text, or any JSON value; the choice, if there are some.

    Raises:
        QuestionError: Nobody can be asked: this is not a specialist's step, or it asked too much;
            or the choices are none.
    """
    if not choices:
        return ask(text)
    if problem := _problem_of(choices):
        raise QuestionError(f"The choices {problem}. Give texts, such as ['red', 'green'].")
    shown = f"{text} (one of: {', '.join(choices)})" if text.strip() else text
    return ask(shown, details={CHOICES: [*choices]})


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
    asker = here().asker
    if asker is None:
        raise QuestionError(
            "ask_user was called outside a specialist's step. Call it in a specialist, in one "
            "of its tools, or in a graph that it runs; pass the context to threads of your own."
        )
    return asker.ask(text, kind, details, secret=secret)


def _problem_of(choices: Sequence[object]) -> str:
    texts = [choice for choice in choices if isinstance(choice, str)]
    if isinstance(choices, str) or len(texts) < len(choices):
        return "are not a list of texts"
    if not all(text.strip() == text and text for text in texts):
        return "hold an empty one, or spaces around one"
    return "" if len({text.casefold() for text in texts}) == len(texts) else "repeat one"


def path_of_step() -> str:
    """The step that runs this code, as the beginning of a question's key; empty outside one."""
    asker = here().asker
    return "" if asker is None else f"{asker.path}/"

"""A user's message, and its meaning while something waits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.base.texts.storable import DEEPEST
from replan.ports.agent import UserInput
from replan.state.person.answers import Shown, read_answers
from replan.state.questions import Question, meant_by
from replan.state.session.context import Content, Message
from replan.state.session.context_fields import ValueReader


@dataclass(frozen=True)
class UserMessage:
    """A user's message."""

    content: Content | None = None  # a text, or content blocks
    answers: Mapping[str, JsonValue] | None = None  # answers by key

    @property
    def is_empty(self) -> bool:
        """Whether the message is empty."""
        return self.content is None and self.answers is None

    def messages(self, at: str) -> tuple[Message, ...]:
        """Its text in the history; empty if nothing was said."""
        if self.answers is not None:
            texts = [a if isinstance(a, str) else json.dumps(a) for a in self.answers.values()]
            named: dict[str, JsonValue] = {"answers": dict(self.answers)}
            return (Message(role="user", content="\n".join(texts), timestamp=at, metadata=named),)
        if self.content is None:
            return ()
        return (Message(role="user", content=self.content, timestamp=at),)


def read_input(user_input: UserInput) -> UserMessage:
    """Read the input of a caller.

    Raises:
        InputError: It says nothing.
        ContextError: It is neither a text, nor content blocks, nor answers that JSON keeps.
    """
    if user_input is None:
        return UserMessage()
    reading = ValueReader(deepest=DEEPEST)
    copy: Any = reading.plain(user_input, ("user_input",))
    reading.end()
    if isinstance(copy, dict) and copy:
        return UserMessage(answers=cast("dict[str, JsonValue]", copy))
    if not (copy.strip() if isinstance(copy, str) else copy):
        raise InputError("The input is empty. Give a text, content blocks, or answers by key.")
    if not isinstance(copy, str | list):
        fix = "Give a text, a list of content blocks, or a mapping with answers by key."
        kind = type(cast("object", copy)).__name__
        reading.refuse(("user_input",), cast("object", copy), f"it is {kind}", fix)
    reading.end()
    content = reading.value(Content, cast("object", copy), ("user_input",), is_copied=True)
    reading.end()
    return UserMessage(content=content)


def answers_to(
    message: UserMessage, asks: Sequence[Question], shown: Shown
) -> dict[str, JsonValue]:
    """Read the answers to open questions; if one is invalid, none is used.

    A text answers the one question that is asked. What lets something happen, such as an approval,
    is decided by its fingerprint only: no text that a person writes into a chat, for whatever
    reason, is taken for a decision.

    Args:
        message: What the user says.
        asks: What is asked now.
        shown: What the user saw: where a turn was cut off after it had answered, the run may ask
            something else now.
    """
    if message.answers is None:
        if len(asks) > 1 or asks[0].is_decision:
            raise InputError(how_to_answer(asks))
        said = message.content
        text = said if isinstance(said, str) else list(said or ())
        return read_answers(text, asks, shown=shown)
    answers = read_answers(message.answers, asks, shown=shown)
    for name, answer in message.answers.items():
        unbound = [ask for ask in meant_by(name, asks) if ask.is_decision]
        if unbound and not (isinstance(answer, dict) and "fingerprint" in answer):
            raise InputError(how_to_answer(unbound))
    return answers


def how_to_answer(asks: Sequence[Question]) -> str:
    """Explain how answers are given that no text gives: by key, and decisions by fingerprint."""
    forms = [f"{json.dumps({ask.key: _form(ask)})}" for ask in asks]
    how = "Which of these is it? Answer by key" if len(asks) > 1 else "Answer this by its key"
    return f"{how}: {', or '.join(forms)}."


def _form(ask: Question) -> JsonValue:
    if not ask.is_decision:
        return "..."
    action = "run again" if ask.kind == "unknown_outcome" else "approve"
    return {"action": action, "fingerprint": ask.fingerprint}

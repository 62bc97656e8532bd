"""What a person says about work that must not be done twice: cut off, or done before."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from pydantic import JsonValue

from replan.base.values import fields_in
from replan.plan.model import Value
from replan.state.questions import Question

_HOW = ' Answer "it is done: RESULT"'
_OF_STEP = {
    "done": "what you write becomes its result, and the steps that wait for it go on",
    "fail": "the step counts as failed, and the steps that need it are not done",
    "run again": "the work is done again from its beginning, even what may have happened already",
}
_OF_DONE = {**_OF_STEP, "done": "its result stays, or what you write takes its place"}
_OF_CALL = {
    "done": "what you write is taken as the result of the call, and the step continues with it",
    "fail": "the model is told that the call failed, and may make it again",
    "run again": "the call is made again, even if it has taken effect already",
}
_FORMS: tuple[tuple[Literal["run again", "done", "fail"], re.Pattern[str]], ...] = (
    ("run again", re.compile(r"(?is)(?:do|run|make|try)(?: it)? again\b|again\b|retry\b|rerun\b")),
    ("done", re.compile(r"(?is)(?:(?:it is|it's|it was) )?done\b\s*[:.,]?\s*")),
    ("fail", re.compile(r"(?is)(?:it )?fail(?:ed)?\b\s*[:.,]?\s*")),
)


_WORDS = {"done": "it is done", "fail": "count it as failed", "run again": "run it again"}


class Verdict(Value):
    action: Literal["run again", "done", "fail"]
    text: str = ""  # its outcome, or why it failed

    @property
    def words(self) -> str:
        """What a person said, in a line."""
        return f"{_WORDS[self.action]}{self.text and f': {self.text}'}"


def is_in_doubt(question: Question) -> bool:
    """Whether it asks what became of work, and not whether work that was done is done again."""
    # Only work that was done is asked about with its key.
    is_done = "idempotency_key" in question.fields
    return question.kind == "unknown_outcome" and not is_done


def leads_to(details: JsonValue) -> Mapping[str, str]:
    """What each answer leads to, by its action; `details` are those of the question."""
    fields = fields_in(details)
    if "tool" in fields:
        return _OF_CALL
    # Only work that was done is asked about with its key.
    return _OF_DONE if "idempotency_key" in fields else _OF_STEP


def problem_in(text: str) -> str:
    """What a question is about, without how it is answered."""
    return text.rpartition(_HOW)[0] or text


def question_shown(question: Question) -> str:
    """What is asked, for front ends with a button for each answer."""
    return problem_in(question.text) if question.kind == "unknown_outcome" else question.text


def details_shown(question: Question) -> JsonValue:
    """The details for a person; for work in doubt, the task or the call.

    Choices stand in the question.
    """
    if question.choices:
        return None
    details = question.details
    if question.kind != "unknown_outcome" or not isinstance(details, dict):
        return details
    call = {name: details[name] for name in ("tool", "arguments") if name in details}
    return cast("JsonValue", call) or details.get("task")


def ask_what_became_of(
    what: str, attempt: int, details: JsonValue, ask: Callable[..., JsonValue], *, why: str = ""
) -> Verdict:
    """Ask a person what happened to work that was cut off, until the answer can be read."""
    cause = f" ({why})" if why else ""
    return _ask(
        f"{what} was cut off in attempt {attempt}{cause}: nobody knows whether it took effect.",
        details,
        ask,
    )


def ask_whether_again(
    what: str, attempt: int, details: JsonValue, ask: Callable[..., JsonValue]
) -> Verdict:
    """Ask a person whether work is to be done again, until the answer can be read."""
    return _ask(
        f"{what} was done in attempt {attempt}, and is to be done again: it was opened again, "
        "or its inputs have changed.",
        details,
        ask,
    )


def _ask(problem: str, details: JsonValue, ask: Callable[..., JsonValue]) -> Verdict:
    leads = leads_to(details)
    text = (
        f'{problem}{_HOW} ({leads["done"]}), "fail: REASON" ({leads["fail"]}) or '
        f'"run again" ({leads["run again"]}).'
    )
    answer = ask(text, kind="unknown_outcome", details=details)
    while (verdict := read_verdict(answer)) is None:
        again = f"The answer {answer!r} cannot be read. {text}"
        answer = ask(again, kind="unknown_outcome", details=details)
    return verdict


def read_verdict(answer: JsonValue) -> Verdict | None:
    """Read an answer: text, or a mapping with `action` and `text`; None if it is neither."""
    if isinstance(answer, Mapping):
        form = cast("Mapping[str, Any]", answer)
        verdict = read_verdict(str(form.get("action", "")))
        text = str(form.get("text", ""))
        return verdict and verdict.replace(text=text or verdict.text)
    if not isinstance(answer, str):
        return None
    text = answer.strip()
    for action, form in _FORMS:
        if match := form.match(text):
            return Verdict(action=action, text="" if action == "run again" else text[match.end() :])
    return None

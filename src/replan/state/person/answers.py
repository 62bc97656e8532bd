"""How a person's answers, decisions and verdicts are read: words, mappings, changed documents."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from pydantic import JsonValue, ValidationError

from replan.base.errors import InputError
from replan.base.secrets.masking import masked_beginning
from replan.base.texts.bounds import ANSWER
from replan.base.texts.storable import unstorable
from replan.base.values import Value, adapter, fields_in
from replan.plan.markdown.document import looks_like_plan
from replan.state.person.reviews import answers_decided, is_review
from replan.state.questions import (
    QUESTION_KEY,
    Decision,
    Question,
    how_to_answer,
    looks_like_key,
    meant_by,
)

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


_SPOKEN = {"done": "it is done", "fail": "count it as failed", "run again": "run it again"}


class Verdict(Value):
    action: Literal["run again", "done", "fail"]
    text: str = ""  # its outcome, or why it failed

    @property
    def words(self) -> str:
        """What a person said, in a line."""
        return f"{_SPOKEN[self.action]}{self.text and f': {self.text}'}"


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


_WORDS = {
    **dict.fromkeys(("approve", "approved", "accept", "yes", "y", "a", "ok", "true"), "approve"),
    **dict.fromkeys(("reject", "rejected", "decline", "no", "n", "r", "false"), "reject"),
}
_SHOWN = 80  # characters of an answer that is none
_REASON = re.compile(r"(?is)(?:reject|no)\s*[:,]\s*(?P<reason>.+)\Z")
_HOW_TO_DECIDE = (
    "This is not a decision. Answer 'approve', 'reject', or a mapping: "
    '{"action": "approve"}, {"action": "edit", ...} with what is changed, '
    '{"action": "reject", "reason": "..."}.'
)
_HOW_TO_JUDGE = 'Answer "it is done: RESULT", "fail: REASON" or "run again".'

Shown = Mapping[str, str]
"""What somebody saw last of what is asked: its fingerprints, by its keys."""

CHANGED = "This does not answer what is asked now. Read the question, then answer it."
"""The error for an answer that was not about what is shown."""


def shown_in(questions: Iterable[Question]) -> dict[str, str]:
    """What somebody sees who is shown these questions."""
    return {question.key: question.fingerprint for question in questions}


def answers_in_advance(answers: Mapping[str, JsonValue], at: datetime) -> dict[str, Question]:
    """Answers to questions that are not asked yet, by their keys."""
    answered: dict[str, Question] = {}
    for key, answer in answers.items():
        named = QUESTION_KEY.match(key)
        if named is None:
            raise InputError(
                f"'{key}' is not the key of a question. "
                "A key is step/specialist/number: '2/writer/1'."
            )
        _check_answer(key, answer)
        if _is_empty(answer):
            raise InputError(f"The answer to {key} is empty. Leave it out or write one.")
        question = Question(
            key=key,
            step_id=int(named["step"]),
            specialist=named["specialist"],
            text="",
        )
        answered[key] = question.answered(answer, at)
    return answered


def read_answers(
    reply: object, questions: Sequence[Question], *, shown: Shown | None = None
) -> dict[str, JsonValue]:
    """Read what somebody says as answers to what is asked now; if one is invalid, none is used.

    Args:
        reply: Answers by key; or the answer to the only question.
        questions: What is asked now.
        shown: What the asker saw last, where the door knows it: nothing else takes an answer.

    Raises:
        InputError: It names something that is not asked, decides about something that was not
            shown, or is no answer to its question. Nothing was answered.
    """
    named = named_answers(reply, questions, shown=shown)
    by_key = {question.key: question for question in questions}
    return {key: read_answer(by_key[key], answer) for key, answer in named.items()}


def bound_answers(
    reply: object, questions: Sequence[Question], *, shown: Shown | None = None
) -> dict[str, JsonValue]:
    """Read answers as `read_answers` does, each bound to exactly what it is about."""
    by_key = {question.key: question for question in questions}
    answers = read_answers(reply, questions, shown=shown)
    return {key: by_key[key].bound(answer) for key, answer in answers.items()}


def named_answers(
    reply: object, questions: Sequence[Question], *, shown: Shown | None = None
) -> dict[str, object]:
    """Find out which question each answer is for, without reading the answers; see `read_answers`.

    A question takes an answer by its key, the beginning of its key, or none if it alone is asked.
    A decision takes one by its whole key or its fingerprint, or if it is what the asker saw last.
    """
    if not questions:
        raise InputError("This run has no open question. Continue it without an answer.")
    if is_review(reply) and (len(questions) > 1 or questions[0].is_own):
        return _reviewed(reply, questions)
    by_name = _by_name(reply, questions)
    if by_name is None:
        question = _only_one(reply, questions)
        return {question.key: _bound_to(question, reply, "", shown)}
    answers: dict[str, object] = {}
    for name, meant in _meant(by_name, questions).items():
        inner = by_name[name]
        if _is_id(name, meant) and (is_review(inner) or _by_name(inner, meant)):
            # LangGraph's own form: what its interrupt takes, under its id.
            answers |= named_answers(inner, meant, shown=shown)
        elif len(meant) == 1 and meant[0].key not in answers:
            answers[meant[0].key] = _bound_to(meant[0], inner, name, shown)
        else:
            problem = "It is not clear which question each answer is for."
            raise InputError(f"{problem} {how_to_answer(questions)}")
    return answers


def _reviewed(review: object, questions: Sequence[Question]) -> dict[str, object]:
    """Answers in the order of what is asked, which name no question."""
    if len({question.interrupt for question in questions}) > 1:
        raise InputError(f"Several things are asked at once. {how_to_answer(questions)}")
    return answers_decided(review, questions)


def _meant(
    by_name: Mapping[str, object], questions: Sequence[Question]
) -> dict[str, list[Question]]:
    """The questions that each name means, at least one."""
    if not by_name:
        raise InputError(f"There is no answer. {how_to_answer(questions)}")
    meant = {name: meant_by(name, questions) for name in by_name}
    if unknown := [name for name, candidates in meant.items() if not candidates]:
        listed = ", ".join(f"'{name}'" for name in unknown[:5])
        raise InputError(f"No open question has the key {listed}. {how_to_answer(questions)}")
    return meant


def _is_id(name: str, meant: Sequence[Question]) -> bool:
    """Whether a name is that of an interrupt which takes answers by key."""
    return name == meant[0].interrupt and meant[0].is_own


def read_answer(question: Question, answer: object) -> JsonValue:
    """Check the answer to a question, and return it as JSON."""
    if question.is_decision:
        value = _decision_on(question, answer)
    else:
        try:
            value = adapter(JsonValue).validate_python(answer)
        except ValidationError as error:
            kind = type(answer).__name__
            problem = f"The answer to {question.key} is {kind}; give text, or any JSON value."
            raise InputError(problem) from error
        value = _chosen(question, value)
    _check_answer(question.key, value)
    if _is_empty(value):
        raise InputError(f"The answer to {question.key} is empty. Write one.")
    return value


def _chosen(question: Question, answer: JsonValue) -> JsonValue:
    """The answer; where there are choices, the one that it means."""
    if not question.choices:
        return answer
    word = answer.strip().casefold() if isinstance(answer, str) else None
    for choice in question.choices:
        if choice.casefold() == word:
            return choice
    listed, given = ", ".join(question.choices), masked_beginning(json.dumps(answer), _SHOWN)
    raise InputError(f"The answer to {question.key} must be one of: {listed} (got {given}).")


def _decision_on(question: Question, answer: object) -> JsonValue:
    if question.kind == "unknown_outcome":
        if read_verdict(cast("JsonValue", answer)) is None:
            raise InputError(f"The answer to {question.key} cannot be read. {_HOW_TO_JUDGE}")
        return cast("JsonValue", answer)
    if question.kind == "plan":
        return decided(**dict(read_decision(answer)))
    if isinstance(answer, str) and answer.lstrip().startswith("{"):
        arguments = arguments_of(answer)
        answer = arguments if "action" in arguments else {"action": "edit", "arguments": arguments}
    return decided(**dict(read_call_decision(answer)))


def decided(**decision: Any) -> JsonValue:
    """Return the answer that makes a `Decision` with these fields."""
    return Decision(**decision).model_dump(mode="json", exclude_defaults=True)


def arguments_of(text: str) -> dict[str, JsonValue]:
    """Read the arguments of a tool, written as JSON."""
    try:
        arguments: object = json.loads(text)
    except json.JSONDecodeError as error:
        arguments, problem = None, f" (line {error.lineno}, column {error.colno}: {error.msg})"
    except RecursionError:
        arguments, problem = None, " (nested too deep)"
    else:
        problem = ""
    if not isinstance(arguments, dict):
        raise InputError(f'These are not arguments{problem}. Write JSON such as {{"to": "me"}}.')
    return cast("dict[str, JsonValue]", arguments)


def _by_name(reply: object, questions: Sequence[Question]) -> dict[str, object] | None:
    """Read answers by key, as a mapping, as JSON, or as KEY=TEXT; None if no question is named."""
    if isinstance(reply, str):
        name, sign, text = reply.partition("=")
        if sign and (looks_like_key(name.strip()) or meant_by(name.strip(), questions)):
            return {name.strip(): text}
        reply = _json_object(reply)
    if not isinstance(reply, Mapping):
        return None
    names = {str(name): value for name, value in cast("Mapping[Any, Any]", reply).items()}
    if _is_bound_form(names):
        return None
    is_named = any(meant_by(name, questions) for name in names) or all(map(looks_like_key, names))
    return names if is_named else None


def _json_object(text: str) -> object:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _only_one(answer: object, questions: Sequence[Question]) -> Question:
    """The question that an answer without a key is for."""
    mark = _fingerprint_in(answer)
    marked = [question for question in questions if mark and question.fingerprint == mark]
    if len(marked or questions) == 1:
        return (marked or questions)[0]
    raise InputError(f"It is not clear which question this answers. {how_to_answer(questions)}")


def _fingerprint_in(answer: object) -> object:
    fields: Mapping[Any, Any] = {}
    if isinstance(answer, Mapping):
        fields = cast("Mapping[Any, Any]", answer)
    return fields.get("fingerprint") if _is_bound_form(fields) else None


def _is_bound_form(fields: Mapping[Any, Any]) -> bool:
    """Whether a mapping is one answer: a decision, or an answer with its fingerprint."""
    return "action" in fields or set(fields) == {"answer", "fingerprint"}


def _bound_to(question: Question, answer: object, name: str, shown: Shown | None) -> object:
    """An answer without its fingerprint, if it may be taken as one to this question."""
    if isinstance(answer, Decision):
        answer = decided(**dict(answer))
    mark = _fingerprint_in(answer) if question.fingerprint else None
    if mark is not None:
        if mark != question.fingerprint:
            raise InputError(CHANGED)
        fields = {**cast("Mapping[Any, Any]", answer)}
        del fields["fingerprint"]
        return fields if "action" in fields else fields["answer"]
    if shown is not None:
        if shown.get(question.key) != question.fingerprint:
            raise InputError(f"{CHANGED} {how_to_answer([question])}")
    elif question.is_decision and not (name and name in (question.key, question.interrupt)):
        raise InputError(
            f"A decision needs the whole key of what it is about: '{question.key}'. "
            "Look at what is asked now, then decide about that."
        )
    return cast("object", answer)


def read_decision(answer: object) -> Decision:
    """Read a decision: a word, a mapping with `action`, yes or no, or a changed plan document."""
    if isinstance(answer, Decision):
        return answer
    if isinstance(answer, bool):
        return Decision(action="approve" if answer else "reject")
    if isinstance(answer, Mapping):
        return _decision_in(cast("Mapping[Any, Any]", answer))
    if isinstance(answer, str):
        word = answer.strip().rstrip(".!").casefold()
        if word in _WORDS:
            return Decision.model_validate({"action": _WORDS[word]})
        if rejected := _REASON.match(answer.strip()):
            return Decision(action="reject", reason=rejected["reason"].strip())
        if looks_like_plan(answer):
            return Decision(action="edit", plan=answer)
    raise InputError(_HOW_TO_DECIDE)


def read_call_decision(answer: object) -> Decision:
    """Read a decision about a tool's call; see `read_decision`."""
    decision = read_decision(answer)
    if decision.action == "edit" and decision.arguments is None:
        raise InputError("There are no changed arguments. Give all of them under 'arguments'.")
    return decision


def _decision_in(fields: Mapping[Any, Any]) -> Decision:
    action = fields.get("action")
    word = action.strip().casefold() if isinstance(action, str) else None
    try:
        return Decision.model_validate({**fields, "action": _WORDS.get(word or "", word)})
    except ValidationError as error:
        raise InputError(_HOW_TO_DECIDE) from error


def _check_answer(key: str, answer: JsonValue) -> None:
    if problem := unstorable(answer):
        raise InputError(f"The answer to {key} cannot be kept. {problem}")
    size = len(adapter(JsonValue).dump_json(answer))
    if size > ANSWER:
        raise InputError(
            f"The answer to {key} has {size:,} bytes; at most {ANSWER:,} are taken. "
            "Give the name of a file instead."
        )


def _is_empty(answer: JsonValue) -> bool:
    return answer is None or (isinstance(answer, str) and not answer.strip())

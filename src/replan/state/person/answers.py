"""How a person's answers and decisions are read: words, mappings, changed documents."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from replan.errors import InputError
from replan.plan.markdown.document import looks_like_plan
from replan.state.questions import QUESTION_KEY, Decision, Question, how_to_answer, keys_meant
from replan.texts.bounds import ANSWER
from replan.texts.storable import unstorable

_WORDS = {
    **dict.fromkeys(("approve", "approved", "accept", "yes", "y", "a", "ok", "true"), "approve"),
    **dict.fromkeys(("reject", "rejected", "decline", "no", "n", "r", "false"), "reject"),
}
_REASON = re.compile(r"(?is)(?:reject|no)\s*[:,]\s*(?P<reason>.+)\Z")
_HOW_TO_DECIDE = (
    "This is not a decision. Answer 'approve', 'reject', or a mapping: "
    '{"action": "approve"}, {"action": "edit", ...} with what is changed, '
    '{"action": "reject", "reason": "..."}.'
)
_ANSWER: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def unwrapped_answer(given: object, kind: str, fingerprint: str) -> object:
    """Unwrap an answer that names its question by a fingerprint."""
    if not isinstance(given, Mapping) or "fingerprint" not in given:
        return cast("object", given)
    said = {**cast("Mapping[Any, Any]", given)}
    is_decision = kind != "question" and "action" in said
    if not is_decision and said.keys() != {"answer", "fingerprint"}:
        return said
    if said.pop("fingerprint") != fingerprint:
        raise InputError(CHANGED)
    return said if is_decision else said["answer"]


CHANGED = "This does not answer what is asked now. Read the question, then answer it."
"""The error for an answer that was not about what is shown."""


def given_answers(answers: Mapping[str, JsonValue], at: datetime) -> dict[str, Question]:
    """Answers to questions that are not asked yet, by their keys."""
    made: dict[str, Question] = {}
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
        made[key] = question.answered(answer, at)
    return made


def read_answers(given: object, asked: Sequence[Question]) -> dict[str, JsonValue]:
    """Read a person's answer: a mapping of keys to answers, or the answer to the only question."""
    by_key = {question.key: question for question in asked}
    answers = _answers_by_key(given, by_key)
    return {key: _answer_to(by_key[key], answer) for key, answer in answers.items()}


def read_decision(given: object) -> Decision:
    """Read a decision: a word, a mapping with `action`, yes or no, or a changed plan document."""
    if isinstance(given, Decision):
        return given
    if isinstance(given, bool):
        return Decision(action="approve" if given else "reject")
    if isinstance(given, Mapping):
        return _decision_in(cast("Mapping[Any, Any]", given))
    if isinstance(given, str):
        word = given.strip().rstrip(".!").casefold()
        if word in _WORDS:
            return Decision.model_validate({"action": _WORDS[word]})
        if rejected := _REASON.match(given.strip()):
            return Decision(action="reject", reason=rejected["reason"].strip())
        if looks_like_plan(given):
            return Decision(action="edit", plan=given)
    raise InputError(_HOW_TO_DECIDE)


def read_call_decision(given: object) -> Decision:
    """Read a decision about a tool's call; see `read_decision`."""
    decision = read_decision(given)
    if decision.action == "edit" and decision.arguments is None:
        raise InputError("There are no changed arguments. Give all of them under 'arguments'.")
    return decision


def _is_whole(answers: Mapping[str, object], only: Question | None) -> bool:
    if only is None:
        return False
    is_bound = set(answers) == {"answer", "fingerprint"}
    return is_bound or (only.kind != "question" and "action" in answers)


def _decision_in(given: Mapping[Any, Any]) -> Decision:
    said = given.get("action")
    word = said.strip().casefold() if isinstance(said, str) else None
    try:
        return Decision.model_validate({**given, "action": _WORDS.get(word or "", word)})
    except ValidationError as error:
        raise InputError(_HOW_TO_DECIDE) from error


def _answers_by_key(given: object, asked: Mapping[str, Question]) -> Mapping[str, object]:
    """Find out which question each answer is for."""
    only = next(iter(asked.values())) if len(asked) == 1 else None
    answers = cast("Mapping[str, object]", given) if isinstance(given, Mapping) else None
    if answers is not None and not _is_whole(answers, only):
        if not answers:
            raise InputError(f"There is no answer. {how_to_answer(asked)}")
        meant = {key: keys_meant(key, asked) for key in answers}
        unknown = [key for key, keys in meant.items() if not keys]
        if unknown:
            named = ", ".join(f"'{key}'" for key in unknown[:5])
            raise InputError(f"No open question has the key {named}. {how_to_answer(asked)}")
        given_twice = len({keys[0] for keys in meant.values()}) < len(meant)
        if given_twice or any(len(keys) > 1 for keys in meant.values()):
            raise InputError(
                f"It is not clear which question each answer is for. {how_to_answer(asked)}"
            )
        return {meant[key][0]: answer for key, answer in answers.items()}
    if only is None:
        raise InputError(f"It is not clear which question this answers. {how_to_answer(asked)}")
    return {only.key: cast("object", given)}


def _answer_to(question: Question, given: object) -> JsonValue:
    """Check the answer to a question, and return it as JSON."""
    given = unwrapped_answer(given, question.kind, question.fingerprint)
    if question.kind == "approval":
        decision = read_call_decision(given).model_dump(mode="json", exclude_defaults=True)
        _check_answer(question.key, decision)
        return decision
    try:
        answer = _ANSWER.validate_python(given)
    except ValidationError as error:
        kind = type(given).__name__
        problem = f"The answer to {question.key} is {kind}; give text, or any JSON value."
        raise InputError(problem) from error
    _check_answer(question.key, answer)
    if _is_empty(answer):
        raise InputError(f"The answer to {question.key} is empty. Write one.")
    return answer


def _check_answer(key: str, answer: JsonValue) -> None:
    if problem := unstorable(answer):
        raise InputError(f"The answer to {key} cannot be kept. {problem}")
    size = len(_ANSWER.dump_json(answer))
    if size > ANSWER:
        raise InputError(
            f"The answer to {key} has {size:,} bytes; at most {ANSWER:,} are taken. "
            "Give the name of a file instead."
        )


def _is_empty(answer: JsonValue) -> bool:
    return answer is None or (isinstance(answer, str) and not answer.strip())

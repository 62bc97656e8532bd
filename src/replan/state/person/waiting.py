"""What a run waits for, as interrupts of LangGraph show it, and which of them an answer is for."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.errors import InputError
from replan.state.questions import Approval, Question, how_to_answer, keys_meant
from replan.values import restored


def waiting_for(waiting: Mapping[str, Any] | Sequence[Any]) -> tuple[Question, ...] | Approval:
    """Return what an interrupted run waits for.

    Args:
        waiting: The state from `run`, also as a server returns it, or only the interrupts, such
            as `(await graph.aget_state(config)).interrupts`.

    Returns:
        The plan to approve, or the open questions; none if nothing waits. Answer with
        `Command(resume=...)`: a decision about the plan, or a mapping of the questions' keys to
        the answers. What a specialist asked with LangGraph's own `interrupt` is a question, too;
        its key is the interrupt's id.
    """
    if isinstance(waiting, Mapping):
        return _read_interrupts(waiting.get("__interrupt__") or ())
    return _read_interrupts(waiting)


def resumption(given: object, interrupts: Sequence[Any]) -> dict[str, Any]:
    """Return which of the interrupts of a thread gets what of an answer, by their ids."""
    ids = [_value_and_id(interrupt)[1] for interrupt in interrupts]
    answers: Mapping[Any, Any] = {}
    if isinstance(given, Mapping):
        answers = cast("Mapping[Any, Any]", given)
    if answers and all(key in ids for key in answers):
        return {**answers}
    if len(ids) == 1:
        return {ids[0]: given}
    takers = {
        key: name for name, each in zip(ids, interrupts, strict=True) for key in _keys_of(each)
    }
    meant = [keys_meant(key, takers) for key in answers]
    if not answers or len({found[0] for found in meant if len(found) == 1}) < len(answers):
        problem = "Several things are asked at once, and it is not clear what this answers."
        raise InputError(f"{problem} {how_to_answer(takers)}")
    values: dict[str, Any] = {}
    for (key,), answer in zip(meant, answers.values(), strict=True):
        if key == takers[key]:
            values[key] = answer
        else:
            values.setdefault(takers[key], {})[key] = answer
    return values


def _keys_of(interrupt: Any) -> list[str]:
    """What an answer to an interrupt may be named by: the keys of its questions, else its id."""
    asked = _read_interrupts([interrupt])
    return [_value_and_id(interrupt)[1]] if isinstance(asked, Approval) else [q.key for q in asked]


def _read_interrupts(interrupts: Iterable[Any]) -> tuple[Question, ...] | Approval:
    questions: list[Question] = []
    for interrupt in interrupts:
        value, name = _value_and_id(interrupt)
        asked = _read_shown(value)
        if isinstance(asked, Approval):
            return asked
        questions += [_foreign_question(value, name)] if asked is None else asked["questions"]
    return tuple(questions)


class QuestionsAsked(TypedDict):
    """What the interrupt of `user_input` shows."""

    questions: list[Question]  # the open questions
    problem: str  # why the last answers could not be taken; empty at first


_ASKED: TypeAdapter[Approval | QuestionsAsked] = TypeAdapter(Approval | QuestionsAsked)


def _read_shown(value: Any) -> Approval | QuestionsAsked | None:
    """Read what an interrupt shows; None if it is a foreign graph's."""
    try:
        return _ASKED.validate_python(value)
    except ValidationError:
        return _read_older(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else None


def _read_older(fields: Mapping[str, Any]) -> Approval | QuestionsAsked | None:
    """Read what another version showed: it has fields that foreign interrupts do not have."""
    with suppress(ValidationError):
        if {"approve", "version"} <= fields.keys():
            return restored(Approval, fields)
        if {"questions", "problem"} <= fields.keys():
            asked = restored(list[Question], fields["questions"])
            return QuestionsAsked(questions=asked, problem=str(fields["problem"]))
    return None


def _value_and_id(interrupt: Any) -> tuple[Any, str]:
    """The value and the id of an interrupt, as LangGraph has it or as its server writes it."""
    if isinstance(interrupt, Mapping):
        written = cast("Mapping[str, Any]", interrupt)
        return written.get("value"), str(written.get("id", ""))
    return interrupt.value, str(interrupt.id)


def _foreign_question(value: Any, name: str) -> Question:
    text = value if isinstance(value, str) else repr(value)
    return Question(key=name, step_id=0, specialist="", text=text)

"""What a run waits for, as interrupts of LangGraph show it, and which of them an answer is for."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from langgraph.types import Interrupt
from pydantic import JsonValue, TypeAdapter, ValidationError

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.errors import InputError
from replan.state.person.answers import named_answers
from replan.state.person.reviews import is_review
from replan.state.questions import Approval, Question, fingerprint_of, how_to_answer, short_key
from replan.state.results import Assignment
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


def addressed(given: object, interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """Return which interrupts of a thread get what of an answer, by their ids.

    Raises:
        InputError: It names what is not asked, or decides about what it does not name.
    """
    asks, ids = asks_of(interrupts), {each.id for each in interrupts}
    if is_review(given):
        if len(ids) > 1:
            raise InputError(f"Several things are asked at once. {how_to_answer(asks)}")
        return dict.fromkeys(ids, given)
    named: Mapping[Any, Any] = {}
    if isinstance(given, Mapping):
        named = cast("Mapping[Any, Any]", given)
    reviews = {name: each for name, each in named.items() if name in ids and is_review(each)}
    if not reviews:
        answers = named_answers(cast("object", given), asks)
        return resumption(asks, cast("Any", answers))
    others = {name: each for name, each in named.items() if name not in reviews}
    return {**reviews, **(addressed(others, interrupts) if others else {})}


def resumption(asks: Iterable[Question], answers: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return what each interrupt gets, by its id: answers that are bound to what is asked."""
    values: dict[str, Any] = {}
    for ask in asks:
        if ask.key not in answers:
            continue
        answer = answers[ask.key]
        if ask.is_keyed or ask.is_decision:
            values.setdefault(ask.interrupt, {})[ask.key] = ask.bound(answer)
        else:
            # What LangGraph's own `interrupt` returns is the answer as it is.
            values[ask.interrupt] = answer
    return values


Seats = Mapping[str, Assignment]  # the steps whose graphs ask, by the ids of their interrupts


def asks_of(interrupts: Iterable[Interrupt], seats: Seats | None = None) -> tuple[Question, ...]:
    """Read the questions of LangGraph's interrupts: the host's, and those of other graphs."""
    known = seats or {}
    return tuple(ask for each in interrupts for ask in _asks_of(each, known.get(each.id)))


def _asks_of(interrupt: Interrupt, seat: Assignment | None) -> list[Question]:
    waiting = waiting_for([interrupt])
    if isinstance(waiting, Approval):
        return [waiting.question.replace(interrupt=interrupt.id)]
    return [ask_of(question, interrupt.id, seat) for question in waiting]


def ask_of(question: Question, interrupt: str = "", seat: Assignment | None = None) -> Question:
    """A question as it is shown: with who asks, and where its answer goes."""
    # Where a graph asks by itself, the key is an interrupt's id.
    place = question.key.rpartition("/")[0] if question.is_keyed else (seat.key if seat else "")
    return question.replace(
        key=short_key(question.key),
        interrupt=interrupt,
        step_id=int(place.partition("/")[0] or 0),
        who=_steps_that_ask(place),
    )


def _steps_that_ask(place: str) -> str:
    """The step that asks; in a graph that a step runs, the path begins with that step."""
    places = place.split("/") if place else []
    steps = zip(places[::2], places[1::2], strict=True)
    return ", ".join(f"step {step} {specialist}" for step, specialist in steps)


def _read_interrupts(interrupts: Iterable[Any]) -> tuple[Question, ...] | Approval:
    questions: list[Question] = []
    for interrupt in interrupts:
        value, name = _value_and_id(interrupt)
        asked = _read_shown(value)
        if isinstance(asked, Approval):
            return asked
        if asked is None:
            questions.append(_foreign_question(value, name))
        else:
            problem = asked["problem"]
            questions += [each.replace(problem=problem) for each in asked["questions"]]
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
    mark = fingerprint_of(short_key(name), text)
    return Question(key=name, text=text, fingerprint=mark)

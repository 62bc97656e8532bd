"""What a run waits for, as interrupts of LangGraph show it, and which of them an answer is for."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from langgraph.types import Interrupt
from pydantic import JsonValue, ValidationError

from replan.base.values import restored
from replan.state.person.answers import named_answers
from replan.state.questions import Question, fingerprint_of, short_key
from replan.state.results import Assignment


def waiting_for(waiting: Mapping[str, Any] | Sequence[Any]) -> tuple[Question, ...]:
    """Return the questions that an interrupted run waits for.

    Args:
        waiting: The state from `run`, also as a server returns it, or only the interrupts, such
            as `(await graph.aget_state(config)).interrupts`.

    Returns:
        The open questions; none if nothing waits. A plan to approve is the only one, of the kind
        `plan`. Answer with `Command(resume=...)`: a decision about the plan, or a mapping of the
        questions' keys to the answers. What a specialist asked with LangGraph's own `interrupt` is
        a question, too; its key is the interrupt's id.
    """
    shown = waiting.get("__interrupt__") or () if isinstance(waiting, Mapping) else waiting
    return tuple(question for each in shown for question in _asked_by(each))


def addressed(answer: object, interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """Return which interrupts of a thread get what of an answer, by their ids.

    Raises:
        InputError: It names what is not asked, or decides about what it does not name.
    """
    asks = asks_of(interrupts)
    return resumption(asks, cast("Any", named_answers(answer, asks)))


def resumption(asks: Iterable[Question], answers: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return what each interrupt gets, by its id: answers that are bound to what is asked."""
    values: dict[str, Any] = {}
    for ask in asks:
        if ask.key not in answers:
            continue
        answer = answers[ask.key]
        if ask.is_own:
            values.setdefault(ask.interrupt, {})[ask.key] = ask.bound(answer)
        else:
            # What LangGraph's own `interrupt` returns is the answer as it is.
            values[ask.interrupt] = answer
    return values


Seats = Mapping[str, Assignment]  # the steps whose graphs ask, by the ids of their interrupts


def asks_of(interrupts: Iterable[Interrupt], seats: Seats | None = None) -> tuple[Question, ...]:
    """Read the questions of LangGraph's interrupts: the host's, and those of other graphs."""
    seat_of = seats or {}
    return tuple(
        ask_of(question, interrupt.id, seat_of.get(interrupt.id))
        for interrupt in interrupts
        for question in waiting_for([interrupt])
    )


def ask_of(question: Question, interrupt: str = "", seat: Assignment | None = None) -> Question:
    """A question as it is shown: with who asks, and where its answer goes."""
    # Where a graph asks by itself, the key is an interrupt's id.
    place = question.path or (seat.key if seat else "")
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


def _asked_by(interrupt: Any) -> Sequence[Question]:
    value, name = _value_and_id(interrupt)
    fields: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
    # A foreign graph's interrupt does not have these fields.
    if {"questions", "problem"} <= fields.keys():
        with suppress(ValidationError):
            return restored(list[Question], fields["questions"])
    return [_foreign_question(value, name)]


def _value_and_id(interrupt: Any) -> tuple[Any, str]:
    """The value and the id of an interrupt, as LangGraph has it or as its server writes it."""
    if isinstance(interrupt, Mapping):
        fields = cast("Mapping[str, Any]", interrupt)
        return fields.get("value"), str(fields.get("id", ""))
    return interrupt.value, str(interrupt.id)


def _foreign_question(value: Any, name: str) -> Question:
    text = value if isinstance(value, str) else repr(value)
    mark = fingerprint_of(short_key(name), text)
    return Question(key=name, text=text, fingerprint=mark)

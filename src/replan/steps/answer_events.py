"""Reports who answered what, once for each answer, even if a run is resumed in between.

Each event is on record before it is emitted: if a kill keeps it from the log, the process that
continues the run emits it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, cast

from pydantic import JsonValue

from replan.errors import InputError
from replan.events.emitter import Emitter
from replan.events.types import Answered, AnswerGiven
from replan.ports.ask_user import path_of_step
from replan.ports.journal import Journal
from replan.ports.run_book import RunBook
from replan.secrets.known import MASK
from replan.state.person.answers import read_decision
from replan.state.questions import Decision, Question, short_key
from replan.texts.storable import storable_text
from replan.values import restored

ANSWER_REPORTED = "answer told/"  # the prefix of notes that hold the events of a run's answers

_ACTIONS: Mapping[str, Answered] = {"approve": "approved", "edit": "edited", "reject": "rejected"}

answered_by: ContextVar[Mapping[str, str]] = ContextVar("answered_by", default=MappingProxyType({}))
"""Who answered, by the keys of the questions, if the caller of the graph knows it."""


async def report_plan_decision(
    decision: Decision, key: str, place: str, emitter: Emitter, journal: Journal
) -> None:
    """Report a decision about a plan; `place` names it in the journal."""
    action = _ACTIONS[decision.action]
    fields = {"key": key, "kind": "plan", "action": action, "text": decision.reason}
    await _tell(place, fields, emitter, journal)


async def report_answer(
    question: Question, answer: object, emitter: Emitter, journal: Journal
) -> None:
    action, text = _action_and_text(question, answer)
    text = MASK if question.secret else text
    fields = {
        "key": question.key,
        "kind": question.kind,
        "action": action,
        "text": text,
        "step_id": question.step_id,
        "specialist": question.specialist,
    }
    await _tell(question.key, fields, emitter, journal)


def _action_and_text(question: Question, answer: object) -> tuple[Answered, str]:
    if question.kind == "approval":
        try:
            decision = read_decision(answer)
        except InputError:
            return "answered", _text(answer)  # the step refuses it
        changed = decision.action == "edit" and decision.arguments
        return _ACTIONS[decision.action], _text(decision.arguments) if changed else decision.reason
    return "answered", _text(answer)


def _text(answer: object) -> str:
    # What a foreign graph is answered may be any value.
    is_text = isinstance(answer, str)
    return storable_text(answer if is_text else json.dumps(answer, ensure_ascii=False, default=str))


async def _tell(
    place: str, fields: Mapping[str, JsonValue], emitter: Emitter, journal: Journal
) -> None:
    note = ANSWER_REPORTED + place
    if note in await journal.notes(emitter.run_id, note):
        return
    by = answered_by.get().get(short_key(f"{path_of_step()}{fields['key']}"), "")
    about: dict[str, Any] = {**fields, "by": by}
    await journal.note(emitter.run_id, note, {**about, "round": emitter.round})
    emitter.stream(AnswerGiven, **about)


async def unreported_answers(run_id: str, journal: Journal, book: RunBook) -> list[AnswerGiven]:
    """Return the events of answers that are on record and missing in the log."""
    noted = await journal.notes(run_id, ANSWER_REPORTED)
    events = [
        restored(AnswerGiven, {**note, "run_id": run_id})
        for note in noted.values()
        if isinstance(note, dict)
    ]
    if not events:
        return []
    logged = [cast("Mapping[str, Any]", each.event) for each in await book.events(run_id)]
    # A plan may be decided about more than once in a round.
    told = Counter(_mark(each) for each in logged if each.get("type") == "answer_given")
    untold: list[AnswerGiven] = []
    for event in events:
        mark = _mark(event.model_dump())
        told[mark] -= 1
        if told[mark] < 0:
            untold.append(event)
    return untold


def _mark(event: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(event.get(name) for name in ("key", "action", "round"))

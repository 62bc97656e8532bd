"""Reports who answered what, once for each answer, even if a run is resumed in between.

Each event is on record before it is emitted: if a kill keeps it from the log, the process that
continues the run emits it.
"""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from pydantic import JsonValue

from replan.errors import InputError
from replan.events.emitter import Emitter
from replan.events.types import Answered, AnswerGiven
from replan.ports.ask_user import path_of_step
from replan.ports.journal import Journal
from replan.secrets.known import MASK
from replan.state.person.answers import read_decision
from replan.state.questions import Decision, Question, short_key
from replan.texts.storable import storable_text

PLAN = "plan"
ANSWER_TOLD = "answer told/"
"""The prefix of notes that hold the events of a run's answers."""

_ACTIONS: Mapping[str, Answered] = {"approve": "approved", "edit": "edited", "reject": "rejected"}

answered_by: ContextVar[Mapping[str, str]] = ContextVar("answered_by", default=MappingProxyType({}))
"""Who answered, by the keys of the questions, if the caller of the graph knows it."""


async def tell_plan_decided(
    decision: Decision, place: str, emitter: Emitter, journal: Journal
) -> None:
    """Report a decision about a plan; `place` names it in the journal."""
    action = _ACTIONS[decision.action]
    fields = {"key": PLAN, "kind": PLAN, "action": action, "text": decision.reason}
    await _tell(place, fields, emitter, journal)


async def tell_answered(
    question: Question, answer: object, emitter: Emitter, journal: Journal
) -> None:
    action, text = _said(question, answer)
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


def _said(question: Question, answer: object) -> tuple[Answered, str]:
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
    note = ANSWER_TOLD + place
    if note in await journal.notes(emitter.run_id, note):
        return
    by = answered_by.get().get(short_key(f"{path_of_step()}{fields['key']}"), "")
    about: dict[str, Any] = {**fields, "by": by}
    await journal.note(emitter.run_id, note, {**about, "round": emitter.round})
    emitter.stream(AnswerGiven, **about)

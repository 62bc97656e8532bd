"""Tells who answered what, once for each answer, also where a run is resumed in between."""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue

from replan.errors import InputError
from replan.events.emitter import Emitter
from replan.events.types import Answered, AnswerGiven
from replan.ports.ask_user import path_of_step
from replan.ports.journal import Journal
from replan.state.questions import Decision, Question, read_decision

PLAN = "plan"
_TOLD = "answer told/"
_ACTIONS: Mapping[str, Answered] = {"approve": "approved", "edit": "edited", "reject": "rejected"}

answered_by: ContextVar[Mapping[str, str]] = ContextVar("answered_by", default=MappingProxyType({}))
"""Who answered, by the keys of what was asked, where the caller of the graph knows it."""


async def tell_plan_decided(
    decision: Decision, place: str, emitter: Emitter, journal: Journal
) -> None:
    """Tell of a decision about a plan; `place` names it in the journal."""
    if await _is_new(place, emitter, journal):
        _tell(emitter, PLAN, PLAN, _ACTIONS[decision.action], decision.reason)


async def tell_answered(
    question: Question, answer: JsonValue, emitter: Emitter, journal: Journal
) -> None:
    """Tell of the answer to a question."""
    if not await _is_new(question.key, emitter, journal):
        return
    action, text = _said(question, answer)
    about = {"step_id": question.step_id, "specialist": question.specialist}
    _tell(emitter, question.key, question.kind, action, text, **about)


def _said(question: Question, answer: JsonValue) -> tuple[Answered, str]:
    if question.kind == "approval":
        try:
            decision = read_decision(answer)
        except InputError:
            return "answered", _text(answer)  # the step refuses it
        return _ACTIONS[decision.action], decision.reason
    return "answered", _text(answer)


def _text(answer: JsonValue) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _tell(
    emitter: Emitter,
    key: str,
    kind: Literal["question", "approval", "in doubt", "plan"],
    action: Answered,
    text: str,
    **about: object,
) -> None:
    by = answered_by.get().get(path_of_step() + key, "")
    emitter.stream(AnswerGiven, key=key, kind=kind, action=action, text=text, by=by, **about)


async def _is_new(place: str, emitter: Emitter, journal: Journal) -> bool:
    note = _TOLD + place
    if note in await journal.notes(emitter.run_id, note):
        return False
    await journal.note(emitter.run_id, note, value=True)
    return True

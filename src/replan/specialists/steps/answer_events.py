"""Reports who answered what, once for each answer, even if a run is resumed in between."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.base.secrets.masking import MASK
from replan.base.texts.storable import storable_text
from replan.base.values import text_or_json
from replan.log.events.emitter import Emitter
from replan.log.events.types import AnswerAction, AnswerReceived
from replan.log.run_log import RunLog
from replan.ports.ask_user import path_of_step
from replan.ports.run_context import here
from replan.state.person.answers import read_decision
from replan.state.questions import Decision, Question, fingerprint_of, short_key

ANSWER_REPORTED = "answer_reported/"  # the prefix of notes that hold the events of a run's answers

_ACTIONS: Mapping[str, AnswerAction] = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
}


async def report_plan_decision(
    decision: Decision, key: str, place: str, emitter: Emitter, log: RunLog
) -> None:
    """Report a decision about a plan; `place` names it in the log."""
    action = _ACTIONS[decision.action]
    fields = {"key": key, "kind": "plan", "action": action, "text": decision.reason}
    await _tell(place, fields, emitter, log)


async def report_answer(
    question: Question,
    answer: object,
    emitter: Emitter,
    log: RunLog,
    *,
    is_changed: bool = False,  # whether another answer was reported before
) -> None:
    action, text = _action_and_text(question, answer)
    text = MASK if question.secret else text
    fields: dict[str, JsonValue] = {
        "key": question.key,
        "kind": question.kind,
        "action": action,
        "text": text,
        "step_id": question.step_id,
        "specialist": question.specialist,
    }
    place = f"{question.key}/{fingerprint_of(fields)}" if is_changed else question.key
    await _tell(place, fields, emitter, log)


def _action_and_text(question: Question, answer: object) -> tuple[AnswerAction, str]:
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
    return storable_text(text_or_json(answer))


async def _tell(place: str, fields: Mapping[str, JsonValue], emitter: Emitter, log: RunLog) -> None:
    by = here().answered_by.get(short_key(f"{path_of_step()}{fields['key']}"), "")
    about: dict[str, Any] = {**fields, "by": by}
    announced = emitter.announce(AnswerReceived, **about)
    note: JsonValue = {**about, "round": emitter.round}
    await log.note(emitter.run_id, ANSWER_REPORTED + place, note, announced)

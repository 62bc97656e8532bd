"""What of a run travels, as JSON: its state, notes and questions, read before anything runs."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast, get_type_hints

from langchain_core.messages import AIMessage, AnyMessage
from pydantic import JsonValue

from replan.base.values import adapter, restored_strictly
from replan.jobs.actions import Outcome
from replan.jobs.job import Job
from replan.jobs.recorded import ACTION
from replan.log.run_log import TOLD, RunRows
from replan.log.transcript import BEGUN, CALL, ENDED, REPLY, ToolEnd, ToolRun
from replan.specialists.steps.board import QUESTIONS
from replan.specialists.steps.on_record import KEPT
from replan.specialists.steps.step_record import KNOWLEDGE
from replan.state.channels import Checked
from replan.state.enhanced import EnhancedState
from replan.state.knowledge import Knowledge
from replan.state.questions import Question, is_key_of
from replan.state.results import SpecialistResult, result_as_json
from replan.state.session.context_fields import Path, ValueReader
from replan.state.session.session import JOB

_KINDS: dict[str, Any] = {
    QUESTIONS: Question,
    KNOWLEDGE: Knowledge,
    KEPT: SpecialistResult,
    REPLY: AIMessage,
}


def check_notes(rows: RunRows, path: Path, reading: ValueReader) -> None:
    """Read the notes as their users will; mistakes are collected."""
    for place, (key, note) in enumerate(rows.notes):
        where = (*path, place, 1)
        if key.startswith(REPLY) and isinstance(note, dict) and JOB in note:
            # A job that waits; what is sealed is checked when it is opened.
            if not isinstance(note[JOB], str):
                reading.value(Job, note[JOB], (*where, JOB), is_copied=True)
            continue
        kind = _kind_of(key, note)
        value = kind and reading.value(kind, note, where, restored_strictly, is_copied=True)
        if key.startswith(QUESTIONS) and value is not None:
            _check_question(key.removeprefix(QUESTIONS), value, where, reading)


def check_questions(questions: Mapping[str, Question], path: Path, reading: ValueReader) -> None:
    """Report each question that is not asked under its key as a mistake."""
    for key, question in questions.items():
        _check_question(key, question, (*path, key), reading)


def _check_question(key: str, question: Question, path: Path, reading: ValueReader) -> None:
    if not is_key_of(key, question):
        problem = f"it is not the question of the key {key!r}"
        reading.refuse((*path, "key"), question.key, problem, "Send the run as it was.")


def _kind_of(key: str, note: JsonValue) -> Any:
    if key.startswith(CALL):
        return _kind_of_call(key)
    if key.startswith(TOLD):
        # What a graph asked; of a warning there is a mark only.
        return Question if isinstance(note, dict) else None
    return cast("Any", next((kind for each, kind in _KINDS.items() if key.startswith(each)), None))


def _kind_of_call(key: str) -> Any:
    if key.endswith(BEGUN):
        return ToolRun
    if not key.endswith(ENDED):
        return None
    place = key.removeprefix(CALL).partition("/")[2]
    return Outcome if place.startswith(ACTION) else ToolEnd


HISTORIES = frozenset({"thinking_history", "execution_history", "unreadable_replies"})
"""Keys of the state that outlive a run, and that no later node of it reads."""

_RESULTS = frozenset({"current_specialist_results", "carried_results"})
_LONG = frozenset({"current_plan", "plan_history"})
ON_RECORD = "on_record"
"""Where a state names a result that its rows have."""


def state_as_json(
    state: Mapping[str, Any], recorded: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Write a state."""
    keys = {_text(result): key for key, result in recorded.items()}
    return {name: _dump(name, value, keys) for name, value in state.items()}


def state_in(
    written: Mapping[str, Any], recorded: Mapping[str, JsonValue], path: Path, reading: ValueReader
) -> dict[str, Any]:
    """Read a state from a copy; mistakes are collected by the reading."""
    state = dict[str, Any]()
    for name, kind in _kinds().items():
        if name in written:
            where, value = (*path, name), written[name]
            if name in _RESULTS and isinstance(value, dict):
                value = _with_recorded(cast("dict[str, Any]", value), recorded, where, reading)
            state[name] = reading.value(kind, value, where, restored_strictly, is_copied=True)
    return state


def _dump(name: str, value: Any, keys: Mapping[str, str]) -> JsonValue:
    if name not in _RESULTS:
        return adapter(_kinds()[name]).dump_python(
            value, mode="json", exclude_defaults=name in _LONG
        )
    results = cast("dict[str, SpecialistResult]", value)
    written = {key: result_as_json(result, is_short=True) for key, result in results.items()}
    return {key: _or_reference(value, keys) for key, value in written.items()}


def _or_reference(result: dict[str, JsonValue], keys: Mapping[str, str]) -> JsonValue:
    key = keys.get(_text(result))
    return result if key is None else {ON_RECORD: key}


def _with_recorded(
    results: Mapping[str, Any], recorded: Mapping[str, JsonValue], path: Path, reading: ValueReader
) -> dict[str, Any]:
    """Put the results on record where the state has their keys."""
    found = dict(results)
    for name, result in results.items():
        if not isinstance(result, dict) or [*cast("dict[str, Any]", result)] != [ON_RECORD]:
            continue
        key = cast("dict[str, Any]", result)[ON_RECORD]
        if isinstance(key, str) and key in recorded:
            found[name] = recorded[key]
        else:
            del found[name]
            problem, fix = "no result on record has this key", "Send the run as it was."
            reading.refuse((*path, name), key, problem, fix)
    return found


def _text(result: JsonValue) -> str:
    return json.dumps(result, sort_keys=True)


@cache
def _kinds() -> dict[str, Any]:
    """The types of the keys of a state that travel."""
    hints = get_type_hints(EnhancedState) | {"messages": list[AnyMessage]}
    return {key: kind for key, kind in hints.items() if key not in HISTORIES}


@cache
def plain_keys() -> frozenset[str]:
    """The keys that are replaced by a value; all others reduce it into the existing value."""
    hints = get_type_hints(EnhancedState, include_extras=True)
    marks = {key: getattr(kind, "__metadata__", ()) for key, kind in hints.items()}
    return frozenset(key for key, mark in marks.items() if Checked in mark)

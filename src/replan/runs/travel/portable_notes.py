"""The notes and questions of a run that travels: they are read before anything runs."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage
from pydantic import JsonValue

from replan.base.values import restored_strictly
from replan.jobs.actions import Outcome
from replan.jobs.job import Job
from replan.jobs.recorded import ACTION
from replan.log.run_log import TOLD, RunRows
from replan.log.transcript import BEGUN, CALL, ENDED, REPLY, ToolEnd, ToolRun
from replan.specialists.steps.board import QUESTIONS
from replan.specialists.steps.carried_results import KEPT
from replan.specialists.steps.step_record import KNOWLEDGE
from replan.state.knowledge import Knowledge
from replan.state.questions import Question, is_key_of
from replan.state.results import SpecialistResult
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

"""The thread of a pipeline between the turns of a session, as its context carries it."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import JsonValue

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.base.errors import InputError
from replan.base.values import restored
from replan.pipelines.phases.suggestions import SUGGESTION
from replan.pipelines.task import Task
from replan.pipelines.turns.main_turn import TASKS
from replan.ports.thread_repository import ThreadRepository
from replan.runs.travel.portable import PortableRun
from replan.sessions.session_work import KeptWork
from replan.state.enhanced import EnhancedState
from replan.state.pipeline.thread_rows import (
    QUESTIONS,
    THREADS,
    Rows,
    questions_in,
    thread_from,
    under_id,
    with_questions,
)
from replan.state.questions import Question
from replan.state.session.context import AgentContext
from replan.state.session.context_fields import ValueReader


class _Status(TypedDict, total=False):
    phase: str
    error: str
    round: int


class _Suggestion(TypedDict):
    phase: str


_SETTINGS: Mapping[str, Any] = {
    "brief_status": _Status,
    SUGGESTION: _Suggestion | None,
    TASKS: list[Task],
    QUESTIONS: list[Question],
}
"""The settings of a thread that are not its handlers'."""


class ThreadWork(KeptWork):
    """The thread of a pipeline between the turns of a session."""

    def before(self, session: AgentContext, run: PortableRun | None) -> Mapping[str, JsonValue]:
        del run
        rows = thread_of_session(session)
        return {THREADS: {session.session_id: {**rows}}} if rows else {}

    def is_unfinished(self, session: AgentContext) -> bool:
        return has_work_left(carried_threads(session).get(session.session_id))

    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> Mapping[str, JsonValue]:
        # A step that was done again began on another one; a run may have done nothing on any.
        done = [*(await threads.rows(run.get("run_id", ""))).values()]
        carried = carried_threads(session)
        if not done:
            return session.project_state
        rows: Rows = under_id(session.session_id, done[-1])
        if has_work_left(rows):
            before = cast("Rows", carried.get(session.session_id) or {})
            known = {question.key: question for question in questions_in(before)}
            rows = with_questions(rows, {**known, **run.get("questions", {})}.values())
        return {**session.project_state, THREADS: {**carried, session.session_id: {**rows}}}


def thread_of_session(session: AgentContext) -> Rows:
    """Read the thread of a session, and check it before anything uses it; empty if it has none.

    Raises:
        InputError: What is there are no threads.
        ContextError: The thread cannot be used; names every bad field.
        ThreadError: A row is missing or not valid.
    """
    written = carried_threads(session).get(session.session_id)
    if written is None:
        return {}
    reading, path = ValueReader(), ("project_state", THREADS, session.session_id)
    rows: Rows = reading.value(dict[str, JsonValue], written, path) or {}
    for place, row in rows.items():
        settings = row.get("settings") if isinstance(row, dict) else None
        for name, kind in _SETTINGS.items() if isinstance(settings, dict) else ():
            if name in cast("dict[str, JsonValue]", settings):
                where = (*path, place, "settings", name)
                reading.value(kind, cast("Any", settings)[name], where, restored, is_copied=True)
    reading.end()
    if rows:
        thread_from(rows)
    return rows


def has_work_left(rows: object) -> bool:
    """Whether there are tasks of a thread that are not done yet."""
    header = cast("dict[str, Any]", rows).get("") if isinstance(rows, dict) else None
    settings = cast("dict[str, Any]", header).get("settings") if isinstance(header, dict) else None
    return isinstance(settings, dict) and bool(cast("dict[str, Any]", settings).get(TASKS))


def carried_threads(session: AgentContext) -> dict[str, JsonValue]:
    """The threads that a context carries, by session."""
    carried = session.project_state.get(THREADS, {})
    if not isinstance(carried, dict):
        raise InputError("project_state['threads'] has no threads. Give it back as it was.")
    return carried

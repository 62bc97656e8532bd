"""The thread of a pipeline while a turn is taken: in a storage, a killed turn continues it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.errors import InputError
from replan.ports.thread_repository import ThreadRepository
from replan.sessions.session_runs import digest_of
from replan.state.pipeline.thread_rows import Rows, thread_from
from replan.state.pipeline.threads import Thread
from replan.state.questions import Question
from replan.state.session.context import AgentContext
from replan.state.session.context_fields import ValueReader
from replan.storage.memory_threads import MemoryThreads
from replan.threads.phases.suggestions import SUGGESTION
from replan.threads.task import Task
from replan.threads.turns.main_turn import TASKS
from replan.values import restored

THREADS = "threads"
"""The key of `project_state` that has the rows of the threads of pipelines."""

QUESTIONS = "_questions"
"""Where the settings of a thread have the questions of a session's pipeline."""

MARK = "_turn"
"""Where the settings of a thread name the turn that has begun on it."""


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


@dataclass(frozen=True, kw_only=True)
class TurnThread:
    """The place of a session's thread while a turn is taken."""

    repository: ThreadRepository  # where it is kept
    thread_id: str  # its id there
    run_id: str = ""  # what it goes with there
    has_begun: bool = False  # whether this very turn has begun on it, and was killed

    async def written(self, session: AgentContext) -> JsonValue:
        """The threads of the session as its context carries them after the turn."""
        rows = (await self.repository.rows(self.run_id)).get(self.thread_id, {})
        own = cast("JsonValue", _with_id(session.session_id, rows))
        return {**_carried_threads(session), session.session_id: own}


async def turn_thread(
    session: AgentContext, kept: ThreadRepository | None, place: str, mark: str
) -> TurnThread:
    """Find the thread of a turn that was killed, or create it from the session.

    Args:
        session: The session before the turn.
        kept: Where threads are kept; None keeps nothing.
        place: What the threads of this session are kept under.
        mark: Identifies the turn within the session.
    """
    own = TurnThread(repository=MemoryThreads(), thread_id=session.session_id)
    if kept is not None:
        own = TurnThread(repository=kept, thread_id=place, run_id=place)
        settings = await kept.get_thread_settings(place)
        if settings.get(MARK) == mark:
            return TurnThread(repository=kept, thread_id=place, run_id=place, has_begun=True)
        await kept.forget(place)
    rows = _carried_threads(session).get(session.session_id)
    if rows is not None:
        adopted = _with_id(own.thread_id, _checked_rows(rows, session.session_id))
        await own.repository.adopt(own.run_id, {own.thread_id: adopted})
    return own


async def message_of_killed_turn(
    session: AgentContext, kept: ThreadRepository, place: str
) -> str | None:
    """Return what a user said in a turn that was killed: empty if nothing; None if none was."""
    thread = await kept.get_thread(place)
    carried = cast("Rows", _carried_threads(session).get(session.session_id) or {})
    before = thread_from(carried) if carried else Thread(place)
    if thread is None or thread.settings.get(MARK) == before.settings.get(MARK):
        return None
    waited = [each.key for each in questions_in(before.settings) if each.is_open]
    given = [each for each in questions_in(thread.settings) if each.key in waited]
    if answers := [str(each.answer) for each in given if not each.is_open]:
        return answers[-1]
    texts = [each.text for each in thread.messages[len(before.messages) :] if each.sender == "user"]
    return texts[-1] if texts else ""


def questions_in(settings: Mapping[str, Any]) -> list[Question]:
    """Read the questions of the user's last message, in their order."""
    return [restored(Question, each) for each in settings.get(QUESTIONS, ())]


def place_of_threads(labels: Mapping[str, str]) -> str:
    """The key of a session's threads in a storage, derived from that of its runs."""
    return f"session/{digest_of(sorted(labels.items()))}"


def _carried_threads(session: AgentContext) -> dict[str, JsonValue]:
    carried = session.project_state.get(THREADS, {})
    if not isinstance(carried, dict):
        raise InputError("project_state['threads'] has no threads. Give it back as it was.")
    return carried


def _checked_rows(written: JsonValue, session_id: str) -> Rows:
    """Check the rows of a thread from outside, before anything uses it.

    Raises:
        ContextError: They cannot be used; names every bad field.
        ThreadError: A row is missing or not valid.
    """
    reading, path = ValueReader(), ("project_state", THREADS, session_id)
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


def _with_id(thread_id: str, rows: Rows) -> dict[str, JsonValue]:
    """Rows of a main thread under another id."""
    header = cast("dict[str, Any]", rows.get("") or {})
    return {**rows, "": {**header, "id": thread_id}} if rows else {}

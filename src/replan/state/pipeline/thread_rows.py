"""A thread as rows of JSON, by path, for repositories and clients.

The row of a main thread has the path "", that of a sub-thread its own; a message has a row of its
own, and so a new message of a long thread is one new row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from replan.base.values import restored
from replan.errors import ThreadError
from replan.failures import reason_of
from replan.state.pipeline.threads import MARK_OF_THREAD, Thread, ThreadMessage, problem_of
from replan.state.questions import Question

Rows = Mapping[str, JsonValue]
"""The rows of a thread, by path."""

THREADS = "threads"
"""The key of a session's `project_state` that has the rows of its threads, by session."""


QUESTIONS = "_questions"
"""Where the settings of a thread that was cut off have the answers to the questions of its work."""


def questions_in(rows: Rows) -> list[Question]:
    """The answered questions of a thread that was cut off."""
    header = cast("dict[str, Any]", rows.get("") or {})
    return [restored(Question, each) for each in header.get("settings", {}).get(QUESTIONS, ())]


def with_questions(rows: Rows, questions: Iterable[Question]) -> Rows:
    """A thread that was cut off, with the answers to the questions of its work."""
    header = cast("dict[str, Any]", rows[""])
    kept = [
        question.model_dump(mode="json")
        for question in questions
        if not (question.is_open or question.secret)
    ]
    settings = {**header["settings"], QUESTIONS: kept}
    return {**rows, "": cast("JsonValue", {**header, "settings": settings})}


def under_id(thread_id: str, rows: Rows) -> dict[str, JsonValue]:
    """Rows of a main thread under another id."""
    header = cast("dict[str, Any]", rows.get("") or {})
    return {**rows, "": {**header, "id": thread_id}} if rows else {}


@dataclass(frozen=True)
class _Saved:
    """The stored part of a thread, of which only changes are written again."""

    path: str
    count: int
    settings: JsonValue
    subs: Mapping[str, Thread]


class Saved:
    """What a repository wrote of the threads that it handed out or stored."""

    def __init__(self) -> None:
        self._saved: WeakKeyDictionary[Thread, _Saved] = WeakKeyDictionary()

    def knows(self, thread: Thread) -> bool:
        return thread in self._saved

    def changes(self, thread: Thread) -> "Changes":
        """Return what is to be written of a main thread, and take it for written."""
        changes = Changes(self)
        self._collect(thread, "", changes)
        return changes

    def take(self, thread: Thread, path: str = "") -> None:
        """Treat a thread as stored."""
        thread.unsaved.clear()
        for below, sub_thread in thread.sub_threads():
            self.take(sub_thread, _joined(path, below))
        self._saved[thread] = _saved(thread, path)

    def _collect(self, thread: Thread, path: str, changes: "Changes") -> None:
        """Note what differs from what was written of a thread, and of those in it."""
        before = self._saved.get(thread)
        if before is None or before.path != path:
            before = _Saved(path, 0, None, {})
            thread.unsaved.update(range(len(thread.messages)))
        now = _saved(thread, path)
        if before.settings != now.settings:
            changes.rows[path] = header(thread)
        for index in sorted(thread.unsaved):
            if index < now.count:
                place = _joined(path, f"messages.{index}")
                changes.rows[place] = message_row(thread.messages[index])
        changes.gone += [
            _joined(path, f"messages.{index}") for index in range(now.count, before.count)
        ]
        changes.gone += [
            _joined(path, below)
            for below, sub_thread in before.subs.items()
            if now.subs.get(below) is not sub_thread
        ]
        changes.took.append((thread, self._saved.get(thread), set(thread.unsaved)))
        thread.unsaved.clear()
        self._saved[thread] = now
        for below, sub_thread in now.subs.items():
            self._collect(sub_thread, _joined(path, below), changes)

    def undo(self, took: Sequence[tuple[Thread, _Saved | None, set[int]]]) -> None:
        for thread, before, unsaved in took:
            thread.unsaved |= unsaved
            if before is None:
                self._saved.pop(thread, None)
            else:
                self._saved[thread] = before


@dataclass
class Changes:
    """The changes to write: rows to remove with all below them, then rows to add."""

    saved: Saved
    rows: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    gone: list[str] = field(default_factory=list[str])
    took: list[tuple[Thread, _Saved | None, set[int]]] = field(default_factory=list[Any])

    def undo(self) -> None:
        """Nothing of it was written."""
        self.saved.undo(self.took)


def rows_of(thread: Thread) -> dict[str, JsonValue]:
    """Return all rows of a main thread."""
    return dict(_rows(thread, ""))


def thread_from(rows: Rows, *, run_id: str = "") -> Thread:
    """Make a main thread of its rows.

    Raises:
        ThreadError: A row is missing, or cannot be read.
    """
    thread = _read(rows, "")
    thread.run_id = run_id
    return thread


def header(thread: Thread) -> JsonValue:
    """Write the row of a thread itself, without its messages."""
    return {"id": thread.id, "settings": _as_json(thread.settings, thread.id, "settings")}


def message_row(message: ThreadMessage) -> JsonValue:
    """Write a message without its sub-threads."""
    row = {
        "id": message.id,
        "sender": message.sender,
        "text": message.text,
        "timestamp": message.timestamp.isoformat(),
        "meta": _as_json(message.meta, message.id, "meta"),
    }
    return {**row, "is_virtual": True} if message.is_virtual else row


def is_below(path: str, above: str) -> bool:
    """Whether a row belongs to what is at a path."""
    return path == above or path.startswith(f"{above}.")


def _saved(thread: Thread, path: str) -> _Saved:
    settings = _as_json(thread.settings, thread.id, "settings")
    return _Saved(path, len(thread.messages), settings, dict(thread.sub_threads()))


def _rows(thread: Thread, path: str) -> Iterator[tuple[str, JsonValue]]:
    yield path, header(thread)
    for index, message in enumerate(thread.messages):
        yield _joined(path, f"messages.{index}"), message_row(message)
    for below, sub_thread in thread.sub_threads():
        yield from _rows(sub_thread, _joined(path, below))


def _read(rows: Rows, path: str) -> Thread:
    row = rows.get(path)
    thread_fields: dict[str, Any] = cast("Any", row) if isinstance(row, dict) else {}
    if not (
        isinstance(thread_fields.get("id"), str)
        and isinstance(thread_fields.get("settings"), dict | None)
    ):
        raise ThreadError(path, "its row cannot be read", "Restore it from a copy.")
    thread = Thread(thread_fields["id"], settings=thread_fields.get("settings"))
    while (row := rows.get(place := _joined(path, f"messages.{len(thread.messages)}"))) is not None:
        fields: dict[str, Any] = cast("Any", row) if isinstance(row, dict) else {}
        meta = _restored(fields.get("meta", {}), rows, f"{place}.meta")
        try:
            thread.add(restored(ThreadMessage, {**fields, "meta": meta}))
        except (ValueError, TypeError) as error:
            problem = f"its row '{place}' cannot be read: {reason_of(error)}"
            raise ThreadError(thread.id, problem, "Restore it from a copy.") from error
    return thread


def _restored(value: Any, rows: Rows, path: str) -> Any:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        if entries.keys() == {MARK_OF_THREAD}:
            return _read(rows, path)
        return {key: _restored(entry, rows, f"{path}.{key}") for key, entry in entries.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_restored(item, rows, f"{path}.{number}") for number, item in enumerate(items)]
    return value


def _as_json(value: Any, where: str, place: str) -> Any:
    if isinstance(value, Thread):
        return {MARK_OF_THREAD: True}
    if problem := problem_of(value, place):
        raise ThreadError(where, problem, "Keep JSON there, under other names.")
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: _as_json(entry, where, f"{place}.{key}") for key, entry in entries.items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return [_as_json(item, where, f"{place}.{number}") for number, item in enumerate(items)]
    return value


def _joined(path: str, below: str) -> str:
    return f"{path}.{below}" if path else below

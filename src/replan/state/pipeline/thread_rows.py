"""A thread as rows of JSON, by path, for repositories and clients.

The row of a main thread has the path "", that of a sub-thread its own; a message has a row of its
own, and so a new message of a long thread is one new row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from replan.base.errors import ThreadError
from replan.base.failures import reason_of
from replan.base.values import fields_in, restored
from replan.state.pipeline.threads import MARK_OF_THREAD, Thread, ThreadMessage, problem_of
from replan.state.questions import Question

Rows = Mapping[str, JsonValue]
"""The rows of a thread, by path."""

Part = tuple[JsonValue, Sequence[ThreadMessage]]
"""What the rows of a thread without its sub-threads are made of: its own row, and messages."""

Parts = Mapping[str, Part]
"""What the rows of a main thread are made of, by the paths of it and its sub-threads."""

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
class Changes:
    """The changes to write: the paths of rows to remove, then rows to add."""

    rows: Mapping[str, JsonValue]
    gone: Sequence[str]
    parts: Parts  # what all rows are made of after it


class Saved:
    """What a repository wrote of the threads that it handed out or stored."""

    def __init__(self) -> None:
        self._parts: WeakKeyDictionary[Thread, Parts] = WeakKeyDictionary()

    def take(self, thread: Thread, changes: Changes | None = None) -> None:
        """Treat a main thread as stored: as it is, or as some changes made it."""
        self._parts[thread] = dict(_parts(thread, "")) if changes is None else changes.parts

    def changes(self, thread: Thread) -> Changes:
        """Return what is to be written of a main thread."""
        before, now = self._parts.get(thread, {}), dict(_parts(thread, ""))
        rows = (_rows(path, part, before.get(path, _NOTHING)) for path, part in now.items())
        gone = (_gone(path, part, now.get(path)) for path, part in before.items())
        return Changes(dict(chain.from_iterable(rows)), [*chain.from_iterable(gone)], now)


def rows_of(thread: Thread) -> dict[str, JsonValue]:
    """Return all rows of a main thread."""
    return {place: row for part in _parts(thread, "") for place, row in _rows(*part)}


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


def _parts(thread: Thread, path: str) -> Iterator[tuple[str, Part]]:
    yield path, (header(thread), thread.messages[:])
    for below, sub_thread in thread.sub_threads():
        yield from _parts(sub_thread, _joined(path, below))


_NOTHING: Part = (None, ())


def _rows(path: str, part: Part, before: Part = _NOTHING) -> Iterator[tuple[str, JsonValue]]:
    """The rows of a thread that differ from those before, without its sub-threads."""
    (own, messages), (old, earlier) = part, before
    if own != old:
        yield path, own
    for index, message in enumerate(messages):
        # Who changes a message puts another one in its place.
        if index >= len(earlier) or message is not earlier[index]:
            yield _joined(path, f"messages.{index}"), message_row(message)


def _gone(path: str, before: Part, now: Part | None) -> Iterator[str]:
    """The paths of the rows that a thread has no longer."""
    if now is None:
        yield path
    for index in range(len(now[1]) if now else 0, len(before[1])):
        yield _joined(path, f"messages.{index}")


def _read(rows: Rows, path: str) -> Thread:
    row = rows.get(path)
    thread_fields = fields_in(row)
    if not (
        isinstance(thread_fields.get("id"), str)
        and isinstance(thread_fields.get("settings"), dict | None)
    ):
        raise ThreadError(path, "its row cannot be read", "Restore it from a copy.")
    thread = Thread(thread_fields["id"], settings=thread_fields.get("settings"))
    while (row := rows.get(place := _joined(path, f"messages.{len(thread.messages)}"))) is not None:
        fields = fields_in(row)
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

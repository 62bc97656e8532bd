"""Threads of pipelines: conversations whose messages can hold their own, and the paths to these.

A thread is changed in place, by its repository and by the components of a pipeline; it is never a
part of the graph's state. A message is a frozen value: who changes one puts another in its place,
so that a repository knows what it has to write.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

from pydantic import Field, PlainSerializer, PlainValidator

from replan.base.errors import SubThreadPathError, ThreadError
from replan.base.texts.storable import DEEPEST, storable_text
from replan.base.values import Value

COMPLETED = "completed"
"""The phase in which a thread is done."""

INITIAL = "initial_phase"
"""The phase in which a thread begins, where its agent names no other."""

_SHOWN = 40

SUB_THREAD = "_thread"
"""The default key of the sub-thread in a message's meta."""

HISTORY = "_thread_history"
"""Where a message's meta keeps the sub-threads that a retry put others in place of."""


MARK_OF_THREAD = "$thread"
"""What is in the row of a message where the message holds a sub-thread."""


def problem_of(value: Any, place: str) -> str:
    """Explain why a value other than a list or a mapping is not JSON; empty if it is."""
    if isinstance(value, Mapping) and MARK_OF_THREAD in value:
        return f"{place} has the name '{MARK_OF_THREAD}', which is taken"
    if isinstance(value, float) and not isfinite(value):
        return f"{place} is {value}, which is not JSON"
    if value is None or isinstance(value, str | int | float | bool | Mapping | list | tuple):
        return ""
    return f"{place} is of type {type(value).__name__}; give JSON"


def status_in(settings: Mapping[str, Any], thread_id: str = "") -> Mapping[str, Any]:
    """Return the `brief_status` of a thread's settings; empty if there is none yet.

    Raises:
        ThreadError: It is not a mapping.
    """
    status: Any = settings.get("brief_status", {})
    if isinstance(status, Mapping):
        return cast("Mapping[str, Any]", status)
    problem = f"its brief_status is of type {type(status).__name__}, not a mapping with a phase"
    raise ThreadError(thread_id, problem, "Leave it to Replan, which keeps the phase there.")


def frozen_meta(value: Any, place: str = "meta") -> Any:
    """Make the content of a message immutable: JSON, and threads.

    Raises:
        ValueError: It is something else; names its place.
    """
    if isinstance(value, Thread):
        return value
    if problem := problem_of(value, place):
        raise ValueError(problem)
    if place.count(".") > DEEPEST:
        raise ValueError(f"{place[:_SHOWN]}... is nested deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return MappingProxyType(
            {key: frozen_meta(entry, f"{place}.{key}") for key, entry in entries.items()}
        )
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return tuple(frozen_meta(item, f"{place}.{number}") for number, item in enumerate(items))
    return storable_text(value) if isinstance(value, str) else value


def _meta(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("it is not a mapping")  # noqa: TRY004 - pydantic takes it for a mistake
    return frozen_meta(cast("Mapping[str, Any]", value))


Meta = Annotated[Mapping[str, Any], PlainValidator(_meta), PlainSerializer(dict)]
"""JSON by names, and sub-threads."""


class ThreadMessage(Value):
    """A message of a thread.

    Attributes:
        id: Unique in the thread and its sub-threads.
        sender: `bot` or `user`.
        text: What it says.
        timestamp: When it was written, with a time zone.
        is_virtual: Whether no model sees it.
        meta: What is known about it: JSON, and the sub-threads that it holds, mostly at `_thread`.
    """

    id: str = Field(min_length=1)
    sender: Literal["bot", "user"]
    text: str
    timestamp: datetime
    is_virtual: bool = False
    meta: Meta = Field(default_factory=lambda: _meta({}))

    def sub_threads(self) -> Iterator[tuple[str, "Thread"]]:
        """Yield its sub-threads, with their paths inside the message."""
        return _threads_in(self.meta, "meta")


def _threads_in(value: Any, path: str) -> Iterator[tuple[str, "Thread"]]:
    if isinstance(value, Thread):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _threads_in(item, f"{path}.{key}")
    elif isinstance(value, tuple):
        for number, item in enumerate(cast("tuple[Any, ...]", value)):
            yield from _threads_in(item, f"{path}.{number}")


class Messages(Sequence[ThreadMessage]):
    """The messages of a thread, to be read: `Thread` changes them."""

    def __init__(self, messages: list[ThreadMessage]) -> None:
        self._messages = messages

    def __getitem__(self, index: Any) -> Any:
        return cast("Any", self._messages)[index]

    def __len__(self) -> int:
        return len(self._messages)


class Thread:
    """A conversation as a list of messages, and its status.

    Attributes:
        id: Unique: of a main thread everywhere, of a sub-thread inside its main thread.
        settings: JSON: `brief_status` with the `phase`, and what else its agent keeps.
        run_id: The run that a main thread goes with; empty if it belongs to none.
        revision: How often it was stored, which reveals outdated copies.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the field's name
        messages: Iterable[ThreadMessage] = (),
        settings: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
    ) -> None:
        self.id = id
        self.settings: dict[str, Any] = dict(settings or {})
        self.run_id = run_id
        self.revision = 0
        self._messages: list[ThreadMessage] = []
        self._places: dict[str, int] = {}
        self._holders: dict[int, tuple[tuple[str, Thread], ...]] = {}
        for message in messages:
            self.add(message)

    @property
    def messages(self) -> Messages:
        """Its messages, the oldest first."""
        return Messages(self._messages)

    @property
    def status(self) -> Mapping[str, Any]:
        """Its `brief_status`: the phase, and other details of its status."""
        return status_in(self.settings, self.id)

    @property
    def phase(self) -> str:
        """Its phase; empty if no agent has begun it."""
        return str(self.status.get("phase", ""))

    @property
    def error(self) -> str:
        """Why its last work failed; empty if it did not."""
        return str(self.status.get("error", ""))

    def set_status(self, **changes: Any) -> None:
        """Change fields of its `brief_status`; None removes one."""
        status = {**self.status, **changes}
        kept = {name: value for name, value in status.items() if value is not None}
        self.settings["brief_status"] = kept

    def place_of(self, message_id: str) -> int | None:
        """Return the index of a message; None if it is not here."""
        return self._places.get(message_id)

    def add(self, message: ThreadMessage) -> ThreadMessage:
        """Append a message.

        Raises:
            ThreadError: There is a message of this id, or a sub-thread has no name in a path.
        """
        if message.id in self._places:
            raise self._error(f"it has a message '{message.id}' already", "Give each its own id.")
        held = self._held(message)
        self._messages.append(message)
        self._put(len(self._messages) - 1, message, held)
        return message

    def replace(self, message: ThreadMessage) -> ThreadMessage:
        """Put a message in place of that with its id.

        Raises:
            ThreadError: There is none.
        """
        place = self._places.get(message.id)
        if place is None:
            raise self._error(f"it has no message '{message.id}'", "Use the id of one of its own.")
        held = self._held(message)
        self._messages[place] = message
        self._put(place, message, held)
        return message

    def remove(self, message_id: str) -> None:
        """Remove a message.

        Raises:
            ThreadError: There is none, or a sub-thread runs here: paths go by indices.
        """
        place = self._places.get(message_id)
        if place is None:
            raise self._error(f"it has no message '{message_id}'", "Use the id of one of its own.")
        for path, sub_thread in self.sub_threads():
            if sub_thread.phase != COMPLETED and HISTORY not in path.split("."):
                raise self._error(
                    f"the message '{message_id}' cannot be removed while the sub-thread {path} "
                    f"runs: it is in the phase '{sub_thread.phase}'",
                    "Let it come to its end first.",
                )
        kept = [message for message in self._messages if message.id != message_id]
        self._messages.clear()
        self._places.clear()
        self._holders.clear()
        for index, message in enumerate(kept):
            self._messages.append(message)
            self._put(index, message, self._held(message))

    def sub_threads(self) -> Iterator[tuple[str, "Thread"]]:
        """Yield the sub-threads of its messages, one level deep, with their paths."""
        for index, held in self._holders.items():
            for path, sub_thread in held:
                yield f"messages.{index}.{path}", sub_thread

    def _held(self, message: ThreadMessage) -> tuple[tuple[str, "Thread"], ...]:
        """Return the sub-threads of a message, before it is put here: each has a path."""
        held = tuple(message.sub_threads())
        for path, _ in held:
            if "messages" in path.split("."):
                raise self._error(
                    f"there is a sub-thread at {path}",
                    "Hold it under another name than 'messages'.",
                )
        return held

    def _put(
        self, index: int, message: ThreadMessage, held: tuple[tuple[str, "Thread"], ...]
    ) -> None:
        self._places[message.id] = index
        if held:
            self._holders[index] = held
        else:
            self._holders.pop(index, None)

    def _error(self, problem: str, fix: str) -> ThreadError:
        return ThreadError(self.id, problem, fix)


SubThreadPath = str | Mapping[str, Any]
"""A text such as `messages.3.meta._thread`, or a mapping with `message_index`, `meta_path` (by
default `meta._thread`) and, for a deeper level, the path of the `parent`."""

_FIELDS = {"message_index", "meta_path", "parent"}

_log = logging.getLogger(__name__)


def path_text(path: object) -> str:
    """Write a path of either form as text.

    Raises:
        SubThreadPathError: It is not a path; names the part that is wrong.
    """
    if isinstance(path, Mapping):
        return _written(cast("Mapping[str, Any]", path))
    if not isinstance(path, str):
        raise SubThreadPathError("", str(path), str(path), "it is neither a text nor a mapping")
    parts = path.split(".")
    if parts[0] != "messages":
        raise SubThreadPathError("", path, parts[0], "a path begins with 'messages'")
    for before, part in pairwise([*parts, ""]):
        if before == "messages" and not _is_index(part):
            raise SubThreadPathError("", path, part, "the index of a message is expected here")
        if not before:
            raise SubThreadPathError("", path, before, "a part of the path is empty")
    if _is_index(parts[-1]) and parts[-2] == "messages":
        raise SubThreadPathError("", path, parts[-1], "it leads to a message, not into its meta")
    return path


def chained(parent: SubThreadPath | None, index: int, meta_path: str = f"meta.{SUB_THREAD}") -> str:
    """Return the path of a sub-thread of a message of the main thread, or of a parent's."""
    own_path = f"messages.{index}.{meta_path}"
    return f"{path_text(parent)}.{own_path}" if parent else own_path


def get_sub_thread_by_path(thread: Thread, path: SubThreadPath | None) -> Thread | None:
    """Return the sub-thread at a path; None, with a line in the log, if there is none."""
    try:
        return require_sub_thread(thread, path)
    except SubThreadPathError as error:
        about = {"thread_id": thread.id, "path": error.path, "part": error.part}
        _log.warning("a path leads to no sub-thread", extra=about)
        return None


def require_sub_thread(thread: Thread, path: SubThreadPath | None) -> Thread:
    """Return the sub-thread at a path.

    Args:
        thread: The main thread.
        path: The path from the main thread, in either form.

    Raises:
        SubThreadPathError: There is none; names the part of the path that fails.
    """
    try:
        text = path_text(path)
    except SubThreadPathError as error:
        raise SubThreadPathError(thread.id, error.path, error.part, error.reason) from error
    level: Any = thread
    done: list[str] = []
    for part in text.split("."):
        done.append(part)
        problem, level = _step(level, part)
        if problem:
            raise SubThreadPathError(thread.id, text, ".".join(done), problem)
    if not isinstance(level, Thread):
        raise SubThreadPathError(thread.id, text, text, "what is there is not a thread")
    return level


def _step(holder: Any, part: str) -> tuple[str, Any]:
    """Follow one step of a path; return its target, or why it cannot be followed."""
    if isinstance(holder, Thread):
        return ("", holder.messages) if part == "messages" else ("a thread has 'messages'", None)
    if isinstance(holder, ThreadMessage):
        return ("", holder.meta) if part == "meta" else ("a message holds threads in 'meta'", None)
    if isinstance(holder, Mapping):
        entries = cast("Mapping[str, Any]", holder)
        return ("", entries[part]) if part in entries else ("there is no such entry", None)
    if hasattr(holder, "__len__") and not isinstance(holder, str):
        if not _is_index(part) or int(part) >= len(holder):
            return f"there are {len(holder)}, counted from 0", None
        return "", holder[int(part)]
    return "nothing can be below it", None


def _written(path: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key}={value!r}" for key, value in path.items())
    for key in path:
        if key not in _FIELDS:
            raise SubThreadPathError("", shown, key, "there is no such field of a path")
    index = path.get("message_index")
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise SubThreadPathError("", shown, "message_index", "it is not the index of a message")
    meta_path = path.get("meta_path") or f"meta.{SUB_THREAD}"
    if not isinstance(meta_path, str):
        raise SubThreadPathError("", shown, "meta_path", "it is not text")
    return path_text(chained(path.get("parent"), index, meta_path))


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < len("1000000000000")

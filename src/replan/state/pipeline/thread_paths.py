"""Paths to sub-threads: `messages.3.meta._thread`, one such part for each level."""

import logging
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from replan.base.errors import SubThreadPathError
from replan.state.pipeline.threads import SUB_THREAD, Thread, ThreadMessage

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

"""Finding and changing messages of a thread."""

from collections.abc import Iterator, Mapping
from typing import Any

from replan.base.errors import ThreadError
from replan.base.failures import reason_of
from replan.base.texts.storable import storable_text
from replan.pipelines.host_utils import HostUtils
from replan.pipelines.response import MessageUpdate
from replan.state.pipeline.threads import Thread, ThreadMessage


def message_in(thread: Thread, message_id: str) -> ThreadMessage:
    """Find a message of a thread, or of a sub-thread of it.

    Raises:
        ThreadError: There is none.
    """
    return _holder_and_message(thread, message_id)[1]


def _holder_and_message(thread: Thread, message_id: str) -> tuple[Thread, ThreadMessage]:
    for holder in _levels(thread):
        if (place := holder.place_of(message_id)) is not None:
            return holder, holder.messages[place]
    problem = f"neither it nor a sub-thread of it has a message '{message_id}'"
    raise ThreadError(thread.id, problem, "Use the id of a message that is there.")


def _levels(thread: Thread) -> Iterator[Thread]:
    """Yield a thread, and its sub-threads at any depth."""
    yield thread
    for _, sub_thread in thread.sub_threads():
        yield from _levels(sub_thread)


def change_message(
    thread: Thread,
    message_id: str,
    *,
    meta: dict[str, Any] | None = None,
    **changes: Any,
) -> ThreadMessage:
    """Change fields of a message in place, and add entries to its meta."""
    holder, message = _holder_and_message(thread, message_id)
    if meta is not None:
        changes["meta"] = {**message.meta, **meta}
    try:
        return holder.replace(message.replace(**changes))
    except ValueError as error:
        problem = f"its message '{message_id}' cannot be changed like this: {reason_of(error)}"
        raise ThreadError(thread.id, problem, "Give fields of a ThreadMessage.") from error


def update_message(
    thread: Thread, update: MessageUpdate, text: str, meta: Mapping[str, Any]
) -> ThreadMessage:
    """Update a message from a response, whose text counts only if it is not empty."""
    new = text if update.text is None else storable_text(update.text)
    changes = {"text": new} if new.strip() else {}
    return change_message(thread, update.message_id, meta={**update.meta, **meta}, **changes)


def add_message(
    thread: Thread, utils: HostUtils, kind: str, text: str, meta: Mapping[str, Any] | None = None
) -> ThreadMessage:
    """Add a new message of a kind with which its id begins: user, bot, sub_user or sub_bot."""
    return thread.add(
        ThreadMessage(
            id=f"{kind}_{utils.new_id()}",
            sender="user" if kind.endswith("user") else "bot",
            text=text,
            timestamp=utils.clock(),
            meta=dict(meta or {}),
        )
    )


def newest_bot_message(thread: Thread) -> ThreadMessage | None:
    """Find the newest message of the bot; None if there is none."""
    return next((message for message in reversed(thread.messages) if message.sender == "bot"), None)

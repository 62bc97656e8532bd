"""Channels that check what is written and what is restored, and store only what is new.

LangGraph checks nothing that a node returns, and a server's checkpointer gives plain dicts back. A
checked channel turns dicts into our values once, where they enter, and refuses what does not fit:
a wrong write is an error at the node or at the edit, never a thread that cannot be read again. What
is restored may have been written by another version, so there unknown fields are left out.
"""

import reprlib
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Self, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langgraph.channels import LastValue
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite
from pydantic import ValidationError

from replan.base.failures import reason_of
from replan.base.langgraph_inside.langgraph_channels import (
    NOTHING,
    Delta,
    overwriting,
    with_text,
)
from replan.base.values import adapter, restored

_MESSAGE_IDS = uuid.UUID("5b2f2c1e-53f6-4b8c-9d0d-0c4b9a6c7f11")


def checked(key: str, kind: Any, value: Any) -> Any:
    """Return the value in the form of its kind; plain dicts become values."""
    try:
        return adapter(kind).validate_python(value)
    except ValidationError as error:
        raise _refused(key, reason_of(error)) from error
    # LangChain's messages fail on other values before pydantic can refuse them.
    except (AttributeError, TypeError) as error:
        raise _refused(key, f"It wants {kind}, not {reprlib.repr(value)}.") from error


def stored(key: str, kind: Any, value: Any) -> Any:
    """Return what a checkpoint holds, of this or another version, in the form of its kind."""
    try:
        return restored(kind, value)
    except ValidationError as error:
        raise _refused(key, reason_of(error)) from error


def _refused(key: str, problem: str) -> InvalidUpdateError:
    return InvalidUpdateError(f"State key '{key}' cannot take this value. {problem}")


class Checked(LastValue[Any]):
    """The last value written, checked against the type of the key."""

    __slots__ = ("text",)

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's name
        """What a form offers to write, with its text where the channel has one."""
        return with_text(self.typ, self)

    def update(self, values: Sequence[Any]) -> bool:
        """Take the only value of a super-step; LangGraph also calls this without writes."""
        if not values:
            return False
        return super().update([checked(self.key, self.typ, value) for value in values])

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Restore, turning plain dicts into values again."""
        twin = super().from_checkpoint(checkpoint)
        if twin.is_available():
            twin.value = stored(self.key, self.typ, twin.value)
        return twin


class CheckedDelta(Delta):
    """A value that grows by reduction, checked against the type of the key."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Reduce the checked writes of a super-step into the value."""
        if not values:
            # Most channels have none, in each super-step.
            self.idle += 1
            return False
        if not self.is_available():
            self.value = _empty(self.kind)
        return super().update(values)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Restore from a snapshot, or start empty for the writes that follow."""
        twin = self.empty_twin()
        if checkpoint is NOTHING:
            twin.value = _empty(self.kind)
        else:
            twin.value = stored(self.key, self.kind, self.in_snapshot(checkpoint))
        return twin

    def written(self, value: Any, *, is_stored: bool = False) -> Any:
        """Take one write, which is in one form or another a value of the key's type."""
        whole, take = overwriting(value), stored if is_stored else checked
        if whole is None:
            return take(self.key, self.kind, value)
        made = _empty(self.kind) if whole.value is None else whole.value
        # The parent would call the type of the key to make an empty value; none is a plain write.
        return None if made is None else Overwrite(take(self.key, self.kind, made))


def _empty(kind: Any) -> Any:
    origin: Any = getattr(kind, "__origin__", kind)
    makes: dict[Any, Callable[[], Any]] = {list: list, dict: dict}
    return makes[origin]() if origin in makes else None


def merged(state: dict[str, Any], writes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Reduce by key: a later write of a key replaces an earlier one."""
    result = dict(state)
    for write in writes:
        result.update(write)
    return result


def appended(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*state, *(item for write in writes for item in write)]


def latest(state: Any, writes: Sequence[Any]) -> Any:
    """Reduce to the last write: a value that is stored once per change, not once per super-step."""
    return writes[-1] if writes else state


def conversation(state: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """Reduce messages like LangGraph's `add_messages`, with ids that a replay repeats."""
    for write in writes:
        incoming: list[Any] = cast("list[Any]", write) if isinstance(write, list) else [write]
        if not incoming:
            continue
        try:
            ids = {message.id for message in state}
            named = [_with_id(raw, len(state) + at, ids) for at, raw in enumerate(incoming)]
            # Of several messages with one id, the last counts.
            state = list({message.id: message for message in _add_messages(state, named)}.values())
        except (ValueError, NotImplementedError, TypeError) as error:
            raise InvalidUpdateError(f"State key 'messages': {reason_of(error)}") from error
    return state


class Conversation(Delta):
    """The messages of a thread; a message that replaces all others is converted, too."""

    __slots__ = ()

    def written(self, value: Any, *, is_stored: bool = False) -> Any:
        """Take messages; the reducer converts all but those that take the place of all others."""
        whole = overwriting(value)
        return value if whole is None else Overwrite(conversation([], [whole.value or []]))


def _add_messages(left: list[AnyMessage], right: list[Any]) -> list[AnyMessage]:
    return cast("list[AnyMessage]", add_messages(cast("Any", left), right))


def _with_id(raw: Any, position: int, taken_ids: set[str | None]) -> AnyMessage:
    """Convert one written message; one without an id gets that of its place in the thread."""
    message_id = cast("Any", raw).get("id") if isinstance(raw, dict) else getattr(raw, "id", None)
    if message_id is not None and isinstance(raw, BaseMessage):
        return cast("AnyMessage", raw)
    copied = cast("Any", raw.model_copy() if isinstance(raw, BaseMessage) else raw)
    message = (
        _add_messages([], [copied])[0] if message_id is None else convert_to_messages([copied])[0]
    )
    if message_id is not None:
        return cast("AnyMessage", message)
    name = f"{position}:{message.type}:{message.text}"
    new_id = str(uuid.uuid5(_MESSAGE_IDS, name))
    while new_id in taken_ids:
        new_id = str(uuid.uuid5(_MESSAGE_IDS, new_id))
    taken_ids.add(new_id)
    return cast("AnyMessage", message.model_copy(update={"id": new_id}))

"""LangGraph's delta channel, which is beta, with a rhythm of snapshots of our own."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self, cast

from langgraph.channels import DeltaChannel, LastValue
from langgraph.types import Overwrite
from pydantic import Field

SNAPSHOT_AFTER = 10
"""Writes of a channel until its first snapshot; a larger value has fewer snapshots."""

LONGEST_IDLE = 500
"""Super-steps without a write until a snapshot, so that the value is found quickly."""

NOTHING: object = LastValue[Any](object).value
"""The value that LangGraph stores in a channel that was never written."""


# A snapshot after every so many writes would make a growing value grow with its square. So the
# writes between two snapshots grow with the value: all snapshots together are at most twice as
# large as the last one, and a restore replays at most half of the writes. A restore also looks
# through every checkpoint since the last snapshot, so a channel that rests gets one, too.
# Measured with a thread of 200 runs in SQLite: whole values make the file 22 times as large and
# double the CPU time; LangGraph's own rhythm, a snapshot after 100 writes, makes the same file and
# takes a fifth more CPU time.
class Delta(DeltaChannel[Any]):
    """A value of which a checkpoint stores the new writes, and sometimes a snapshot."""

    __slots__ = ("idle", "kind", "least", "text")

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: Any = None,
        *,
        snapshot_frequency: int = SNAPSHOT_AFTER,
    ) -> None:
        self.idle = 0
        super().__init__(reducer, typ, snapshot_frequency=snapshot_frequency)
        # The parent keeps `dict` of `dict[str, X]`, which is too little for a check.
        self.kind = typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's name
        """What a form offers to write, with its text where the channel has one."""
        return with_text(super().UpdateType, self)

    @property
    def snapshot_frequency(self) -> int:
        """Writes between two snapshots; 0 asks for one now."""
        is_due = self.idle > 0 and self.idle % LONGEST_IDLE == 0
        return 0 if is_due else max(self.least, self.size() // 2)

    @snapshot_frequency.setter
    def snapshot_frequency(self, least: int) -> None:
        # The parent sets what a channel was made with.
        self.least = least

    def update(self, values: Sequence[Any]) -> bool:
        """Take the writes of a super-step; LangGraph also calls this without writes."""
        self.idle = 0 if values else self.idle + 1
        return bool(values) and super().update([self.written(value) for value in values])

    def replay_writes(self, writes: Sequence[tuple[str, str, Any]]) -> None:
        """Apply stored writes, which a server may return as plain dicts."""
        super().replay_writes(
            [(task, key, self.written(value, is_stored=True)) for task, key, value in writes]
        )

    def written(self, value: Any, *, is_stored: bool = False) -> Any:
        """Apply one write, unchanged unless a subclass checks it."""
        return value

    def size(self) -> int:
        """How many parts the value has, which a snapshot writes all."""
        held = self.value if self.is_available() else None
        return len(cast("list[Any]", held)) if isinstance(held, list | dict) else 0

    def copy(self) -> Self:
        """Copy; the value may be shared, since no reducer changes it in its place."""
        twin = self.empty_twin()
        twin.value = self.value
        return twin

    def in_snapshot(self, checkpoint: Any) -> Any:
        """The value in a snapshot, in whatever form LangGraph wrote it."""
        return DeltaChannel[Any](self.reducer, list).from_checkpoint(checkpoint).value

    def empty_twin(self) -> Self:
        """A channel like this one without a value."""
        # For each fork, a copy of each channel: making it again takes eight times as long.
        twin = object.__new__(type(self))
        twin.key, twin.typ, twin.reducer = self.key, self.typ, self.reducer  # pyright: ignore[reportUnknownMemberType]
        twin.kind, twin.least, twin.idle = self.kind, self.least, 0
        return twin


def with_text(kind: Any, channel: object) -> Any:
    """A type for forms: LangGraph's server makes its forms from the types of channels."""
    text = getattr(channel, "text", "")
    return Annotated[kind, Field(description=text)] if text else kind


def overwriting(value: Any) -> Overwrite | None:
    """The new value of a write that replaces the value, in its two forms; else None."""
    if isinstance(value, Overwrite):
        return value
    form = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return Overwrite(form["__overwrite__"]) if "__overwrite__" in form else None

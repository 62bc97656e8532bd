"""The channel that takes the input of a run: what it refuses is never stored.

LangGraph stores an input before the first node sees it. So an input that a node refuses would stay
on its thread, and be refused again with every later one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

from langgraph.channels import EphemeralValue

from replan.state.enhanced import GraphInput

Check = Callable[[Any], None]
"""Raises an error for an input that no run can begin from."""


class Entrance(EphemeralValue[Any]):
    """The newest input, checked; what it leaves out takes the place of what an earlier one said."""

    __slots__ = ("check",)

    def __init__(self, check: Check) -> None:
        super().__init__(GraphInput)
        self.check = check

    def copy(self) -> Self:
        """Copy, with the check."""
        twin = type(self)(self.check)
        twin.key, twin.value = self.key, self.value
        return twin

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Restore what was checked when it came."""
        restored: EphemeralValue[Any] = EphemeralValue[Any](GraphInput).from_checkpoint(checkpoint)
        twin = type(self)(self.check)
        twin.key, twin.value = self.key, restored.value
        return twin

    def update(self, values: Sequence[Any]) -> bool:
        """Take an input."""
        for value in values:
            self.check(value)
        return super().update([_whole(value) for value in values])


def _whole(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {"plan": None, "answers": None, **cast("Mapping[str, Any]", given)}

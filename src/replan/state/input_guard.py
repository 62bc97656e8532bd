"""The channel for the input of a run: refused input is never stored.

LangGraph stores an input before the first node sees it. So an input that a node refuses would stay
on its thread, and be refused again with every later one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Self, cast

from langgraph.channels import EphemeralValue
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from replan.plan.model import TaskPlan
from replan.state.enhanced import GraphInput
from replan.state.tightening import CAN_BE_OPENED

Check = Callable[[Any], None]
"""Raises an error for a value from outside that cannot be used."""

PlanCheck = Callable[[str, TaskPlan | None], None]
"""Raises an error for a client's document that loosens more than the team, or the plan before."""

_LEFT_OUT = dict.fromkeys(GraphInput.__annotations__.keys() - {"messages"})


class CheckedInput(dict[str, Any]):
    """The input of a run that was checked before the run was put on record."""


class InputGuard(EphemeralValue[Any]):
    """The newest checked input; fields that it leaves out are reset, too."""

    __slots__ = (
        "_check_plan",
        "check",
        "clock",
        "editable",
        "services",
        "shapes",
        "tracing",
        "unseen",
    )

    def __init__(  # noqa: PLR0913 - all that a graph's input needs
        self,
        check: Check,
        *,
        check_plan: PlanCheck,
        clock: Callable[[], datetime],
        editable: Collection[str] | None = None,
        shapes: Mapping[str, Any] | None = None,
        services: Any = None,
        tracing: Any = None,
        unseen: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(GraphInput)
        self.check = check  # of the input of a run
        self._check_plan = check_plan
        self.clock = clock
        self.editable = editable
        self.shapes = shapes or {}
        self.services = services  # the live things of the graph, for what is done outside runs
        self.tracing = tracing
        self.unseen = unseen  # gives the graph for runs between whose super-steps nobody looks

    def check_edit(self, values: Any, as_node: str | None = None) -> None:
        """Refuse an edit of the state that is not a client's to make."""
        if self.editable is None:
            return
        if as_node == "plan_approval":
            raise InvalidUpdateError(
                "A client may not act as 'plan_approval'. Decide with Command(resume=...)."
            )
        edits = cast("dict[str, Any]", dict(values or ()))
        refused = sorted(key for key in edits if key not in self.editable)
        if refused:
            names = ", ".join(f"'{key}'" for key in refused)
            opened = ", ".join(f"'{key}'" for key in refused if key in CAN_BE_OPENED)
            fix = f" Its team can open it: client_overrides=[{opened}]." if opened else ""
            raise InvalidUpdateError(f"A client may not edit {names} of the state.{fix}")

    def check_plan(self, text: str, before: TaskPlan | None) -> None:
        """Refuse a client's document of a plan that loosens what the team, or the plan before, has.

        Raises:
            PlanDocumentError: Names every option of a step that is looser.
        """
        if self.editable is not None:
            self._check_plan(text, before)

    def check_command(self, command: Command[Any]) -> None:
        self.check_edit(command.update)
        if self.editable is not None and command.goto:
            raise InvalidUpdateError("A client may not say where a run continues (goto).")

    def copy(self) -> Self:
        return copy(self)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Restore input, which was checked when it came."""
        twin = self.copy()
        twin.value = checkpoint
        return twin

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.taken(value) for value in values])

    def taken(self, value: Any) -> Any:
        """Return an input with all fields; raise if it cannot be used."""
        if not isinstance(value, CheckedInput):
            self.check(value)
        if not isinstance(value, Mapping):
            return value
        return {**_LEFT_OUT, **cast("Mapping[str, Any]", value)}

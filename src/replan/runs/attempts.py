"""What the attempts of a run's steps did, put together from what is kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from replan.runs.run_event import RunEvent

if TYPE_CHECKING:
    from replan.ports.journal import LedgerEntry

_BEGUN = {"model_called": "model_answered", "tool_invoked": "tool_completed"}


@dataclass(frozen=True, kw_only=True)
class AttemptView:
    """One attempt of a step at a specialist."""

    entry: LedgerEntry  # its row in the journal
    # The calls of models and tools that it made, each as its last event: one that is not over, or
    # was killed, is still `model_called` or `tool_invoked`.
    calls: tuple[RunEvent, ...] = field(default=())

    @property
    def seconds(self) -> float | None:
        """How long it took; None if it has no end."""
        entry = self.entry
        return entry.ended_at and (entry.ended_at - entry.started_at).total_seconds()

    @property
    def cost(self) -> float | None:
        """What its model calls were charged; None where one of them has no price."""
        costs: list[Any] = [
            each.details.get("cost") for each in self.calls if each.type == "model_answered"
        ]
        return None if None in costs else sum(costs)


def attempts_of(
    ledger: Sequence[LedgerEntry], events: Iterable[RunEvent], step: int | None = None
) -> list[AttemptView]:
    """Give the attempts of a run, in the order in which they began."""
    calls = dict[tuple[Any, ...], dict[Any, RunEvent]]()
    for event in events:
        if event.type in _BEGUN or event.type in _BEGUN.values():
            said = event.details
            attempt = said.get("step_id"), said.get("specialist"), said.get("attempt")
            # The end of a call takes the place of its beginning.
            calls.setdefault(attempt, {})[said.get("call")] = event
    own = [entry for entry in ledger if step in (None, entry.step_id)]
    return [
        AttemptView(entry=each, calls=tuple(calls.get(_key(each), {}).values())) for each in own
    ]


def _key(entry: LedgerEntry) -> tuple[Any, ...]:
    return entry.step_id, entry.specialist, entry.number

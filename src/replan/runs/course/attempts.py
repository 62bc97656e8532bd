"""What the attempts of a run's steps did, assembled from what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from replan.runs.log.run_event import RunEvent

if TYPE_CHECKING:
    from replan.log.attempt_rows import LedgerEntry
    from replan.runs.course.whole_run import WholeRun

_BEGUN = {"model_invoked": "model_completed", "tool_invoked": "tool_completed"}


@dataclass(frozen=True, kw_only=True)
class AttemptView:
    entry: LedgerEntry  # its row in the log
    # The calls of models and tools that it made, each as its last event: one that is not over, or
    # was killed, is still `model_invoked` or `tool_invoked`.
    calls: tuple[RunEvent, ...] = field(default=())
    running_at: datetime | None = None  # now, where a process works on it
    is_asked_about: bool = False  # whether a person is asked, or was, what it did
    went_on: bool = False  # whether another one came after it

    @property
    def seconds(self) -> float | None:
        """How long it took, or has taken until now; None if its end is unknown."""
        ended = self.entry.ended_at or self.running_at
        return ended and (ended - self.entry.started_at).total_seconds()

    @property
    def outcome(self) -> str:
        """How it ended; `running` where it continues."""
        return "running" if self.running_at else self.entry.outcome

    @property
    def told(self) -> str:
        """How it ended, in words: an attempt that asks is followed by another after the answer."""
        if self.outcome == "waiting":
            return "asked, then went on" if self.went_on else "waits for a person"
        is_cut_off = self.outcome in ("unknown_outcome", "cancelled") and not self.is_asked_about
        return "cut off" if is_cut_off else self.outcome.replace("_", " ")

    @property
    def cost(self) -> float | None:
        """What its model calls were charged; None where one of them has no price."""
        costs: list[Any] = [
            each.details.get("cost") for each in self.calls if each.type == "model_completed"
        ]
        return None if None in costs else sum(costs)


def attempts_of(run: WholeRun, step: int | None = None) -> list[AttemptView]:
    """Return the attempts of a run, in the order in which they began."""
    calls = dict[tuple[Any, ...], dict[Any, RunEvent]]()
    for event in run.events:
        if event.type in _BEGUN or event.type in _BEGUN.values():
            said = event.details
            attempt = said.get("step_id"), said.get("specialist"), said.get("attempt")
            # The end of a call takes the place of its beginning.
            calls.setdefault(attempt, {})[said.get("call")] = event
    own = [entry for entry in run.ledger if step in (None, entry.step_id)]
    newest = {(each.step_id, each.specialist): each.number for each in own}
    doubts = {
        (each.details.get("step_id"), each.details.get("specialist"))
        for each in run.events
        if each.type == "input_requested" and each.details.get("kind") == "unknown_outcome"
    }
    return [
        AttemptView(
            entry=each,
            calls=tuple(calls.get((each.step_id, each.specialist, each.number), {}).values()),
            running_at=run.last_seen_at if _is_running(each, run) else None,
            is_asked_about=(each.step_id, each.specialist) in doubts,
            went_on=each.number < newest[each.step_id, each.specialist],
        )
        for each in own
    ]


def _is_running(entry: LedgerEntry, run: WholeRun) -> bool:
    """Whether the process that works on the run began it; one before it may have been killed."""
    since = [e.at for e in run.events if e.type == "run_resumed" and e.at is not None][-1:]
    is_open = run.outcome == "running" and entry.ended_at is None
    return is_open and all(entry.started_at >= each for each in since)

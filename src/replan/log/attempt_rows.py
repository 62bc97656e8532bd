"""Attempts of steps: how they begin and end."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from replan.errors import StorageError
from replan.plan.model import Value
from replan.values import restored


class Attempt(Value):
    """One attempt of one step at one specialist."""

    run_id: str
    step_id: int
    specialist: str
    number: int  # the attempt, counted from 1 over all rounds and resumptions of the run
    key: str  # what the attempt is of: the work with its inputs, in its generation, run in one way
    started_at: datetime  # when it began
    idempotency_key: str = ""  # what the services that it calls are handed


def begun_already(where: str, attempt: Attempt) -> StorageError:
    """The error if another process began the same attempt."""
    return StorageError(
        where,
        f"Attempt {attempt.number} of step {attempt.step_id} at @{attempt.specialist} was begun by "
        f"another run of the name '{attempt.run_id}'.",
        "Let one run of a name work at a time, on one thread.",
    )


AttemptOutcome = Literal["done", "failed", "cancelled", "waiting", "unknown_outcome"]
"""How an attempt ended; an attempt without a recorded end is in doubt."""

UNKNOWN_ENDS: tuple[AttemptOutcome, ...] = ("unknown_outcome", "cancelled")
"""Outcomes that do not show what was done; any other one is final."""


class LedgerEntry(Attempt):
    """An attempt, and its outcome."""

    ended_at: datetime | None = None  # when it ended; none for one that is in doubt
    outcome: AttemptOutcome = "unknown_outcome"  # how it ended
    error: str = ""  # why it failed


def ledger_of(begun: Iterable[object], ends: Iterable[object]) -> list[LedgerEntry]:
    """The attempts of a run, in the order in which they began, from the values of their rows."""
    entries = [restored(LedgerEntry, value) for value in begun]
    found = {(each.key, each.number): each for each in entries}
    for value in ends:
        end = restored(LedgerEntry, value)
        known = found.setdefault((end.key, end.number), end)
        if known.outcome in UNKNOWN_ENDS:
            found[end.key, end.number] = end.replace(started_at=known.started_at)
    return [*found.values()]

"""What the ledger says of the tries that a step has behind it."""

from collections.abc import Sequence

from replan.ports.journal import UNKNOWN_ENDS, LedgerEntry


def tries_of(
    ledger: Sequence[LedgerEntry], step_id: int, specialist: str
) -> tuple[LedgerEntry, ...]:
    """The tries of a step at a specialist, the newest last."""
    own = (entry for entry in ledger if (entry.step_id, entry.specialist) == (step_id, specialist))
    return tuple(sorted(own, key=lambda entry: entry.number))


def newest_number(tried: Sequence[LedgerEntry]) -> int:
    """The number of the newest try; 0 before the first."""
    return max((entry.number for entry in tried), default=0)


def failures(tried: Sequence[LedgerEntry], key: str) -> int:
    """How many tries of the very same work failed."""
    return sum(entry.outcome == "failed" and entry.key == key for entry in tried)


def done_before(tried: Sequence[LedgerEntry]) -> LedgerEntry | None:
    """The newest try that had its effect; of work that is to be done again, if there is one."""
    return next((entry for entry in reversed(tried) if entry.outcome == "done"), None)


def left_in_doubt(tried: Sequence[LedgerEntry]) -> LedgerEntry | None:
    """The newest try, if nobody knows what it did: the process ended, or it was cancelled."""
    newest = tried[-1] if tried else None
    return newest if newest is not None and newest.outcome in UNKNOWN_ENDS else None

"""A journal in memory: it lives as long as the process, and forgets the oldest runs."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from replan.ports.account import TIMES
from replan.ports.journal import (
    UNKNOWN_ENDS,
    Attempt,
    AttemptOutcome,
    Bound,
    LedgerEntry,
    Refused,
    Reservation,
    Spending,
)
from replan.ports.spending import first_refusal
from replan.state.results import SpecialistResult


@dataclass
class _Scope:
    settled: Spending = field(default_factory=Spending)
    reserved: dict[str, Spending] = field(default_factory=dict[str, Spending])

    @property
    def charged(self) -> Spending:
        return sum(self.reserved.values(), self.settled)


@dataclass
class _Run:
    scopes: dict[str, _Scope] = field(default_factory=dict[str, _Scope])
    attempts: dict[tuple[str, int], LedgerEntry] = field(
        default_factory=dict[tuple[str, int], LedgerEntry]
    )
    results: dict[str, SpecialistResult] = field(default_factory=dict[str, SpecialistResult])
    notes: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class MemoryJournal:
    """The rows of the newest runs, for graphs without a database."""

    def __init__(self, *, max_runs: int = 1_000) -> None:
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._max_runs = max_runs

    async def reserve(self, reservation: Reservation, bounds: Sequence[Bound]) -> Refused | None:
        """Charge every scope of the bounds with the amount, or none of them."""
        scopes = self._run(reservation.run_id).scopes
        if any(reservation.id in scope.reserved for scope in scopes.values()):
            return None
        for bound in bounds:
            scope = scopes.get(bound.scope, _Scope())
            refused = first_refusal(bound, reservation.amount, scope.charged, scope.settled)
            if refused is not None:
                return refused
        for bound in bounds:
            scopes.setdefault(bound.scope, _Scope()).reserved[reservation.id] = reservation.amount
        return None

    async def settle(self, reservation: Reservation, used: Spending) -> None:
        """Put what was used into the place of what was reserved."""
        for scope in self._run(reservation.run_id).scopes.values():
            if scope.reserved.pop(reservation.id, None) is not None:
                scope.settled += used

    async def spent(self, run_id: str) -> Mapping[str, Spending]:
        """What each scope has spent, reservations that are not settled in full."""
        run = self._runs.get(run_id) or _Run()
        return {name: scope.charged for name, scope in run.scopes.items()}

    async def started(self, attempt: Attempt) -> None:
        """Record that a try begins."""
        attempts = self._run(attempt.run_id).attempts
        attempts.setdefault((attempt.key, attempt.number), LedgerEntry(**dict(attempt)))

    async def ended(
        self, attempt: Attempt, outcome: AttemptOutcome, at: datetime, error: str = ""
    ) -> None:
        """Record how a try ended that brought no final result."""
        self._end(attempt, outcome, at, error)

    async def finished(self, attempt: Attempt, result: SpecialistResult, at: datetime) -> None:
        """Record the final result of a step at a specialist, and its try's end."""
        self._end(attempt, "failed" if result.is_failed else "done", at, result.error)
        self._run(attempt.run_id).results.setdefault(attempt.key, result)

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        """The recorded final results of a run, by idempotency key."""
        return dict((self._runs.get(run_id) or _Run()).results)

    async def ledger(self, run_id: str) -> Sequence[LedgerEntry]:
        """Every try of a run, in the order in which they began."""
        return list((self._runs.get(run_id) or _Run()).attempts.values())

    async def note(self, run_id: str, key: str, value: JsonValue) -> JsonValue:
        """Record a value under a key; the first word counts, and is given back."""
        return self._run(run_id).notes.setdefault(key, value)

    async def notes(self, run_id: str, prefix: str = "") -> Mapping[str, JsonValue]:
        """The recorded values whose keys begin so."""
        notes = (self._runs.get(run_id) or _Run()).notes
        return {key: value for key, value in notes.items() if key.startswith(prefix)}

    async def strike(self, run_id: str, prefix: str) -> None:
        """Take back the values whose keys begin so."""
        notes = self._run(run_id).notes
        for key in [key for key in notes if key.startswith(prefix)]:
            del notes[key]

    async def closed(self, run_id: str) -> None:
        """Forget all of a run that is over but its ledger, and what it spent: it may be raised."""
        if run_id in self._runs:
            run = self._runs[run_id]
            times = {key: value for key, value in run.notes.items() if key.startswith(TIMES)}
            self._runs[run_id] = _Run(scopes=run.scopes, attempts=run.attempts, notes=times)

    def forget(self, run_id: str) -> None:
        """Forget all of a run."""
        self._runs.pop(run_id, None)

    def _end(self, attempt: Attempt, outcome: AttemptOutcome, at: datetime, error: str) -> None:
        attempts = self._run(attempt.run_id).attempts
        begun = attempts.get((attempt.key, attempt.number), LedgerEntry(**dict(attempt)))
        if begun.outcome in UNKNOWN_ENDS:
            attempts[attempt.key, attempt.number] = begun.replace(
                ended_at=at, outcome=outcome, error=error
            )

    def _run(self, run_id: str) -> _Run:
        run = self._runs.setdefault(run_id, _Run())
        self._runs.move_to_end(run_id)
        while len(self._runs) > self._max_runs:
            self._runs.popitem(last=False)
        return run

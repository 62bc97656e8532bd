"""A journal in memory: it lives as long as the process, and keeps little of runs that are over."""

import logging
import pickle
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from pydantic import JsonValue

from replan.errors import StorageError
from replan.ports.journal import (
    ACTED,
    BEGAN,
    TOLD,
    UNKNOWN_ENDS,
    Attempt,
    AttemptOutcome,
    Bound,
    Charged,
    LedgerEntry,
    Refused,
    Reservation,
    RunRows,
    Spending,
    begun_already,
)
from replan.spending.deadline import TIMES
from replan.spending.scopes import first_refusal
from replan.state.results import SpecialistResult

logger = logging.getLogger(__name__)

_KEPT = (ACTED, BEGAN, TIMES, TOLD)
_NOTHING = Spending()


@dataclass
class _Scope:
    settled: Spending = _NOTHING
    reserved: dict[str, Spending] = field(default_factory=dict[str, Spending])

    @property
    def charged(self) -> Spending:
        amounts = [self.settled, *self.reserved.values()]
        return Spending(
            calls=sum(each.calls for each in amounts),
            tokens=sum(each.tokens for each in amounts),
            cost=sum(each.cost for each in amounts),
        )


@dataclass(slots=True)
class _AttemptRow:
    attempt: Attempt
    ended_at: datetime | None = None
    outcome: AttemptOutcome = "in doubt"
    error: str = ""

    def end(self, outcome: AttemptOutcome, at: datetime, error: str) -> None:
        if self.outcome in UNKNOWN_ENDS:
            self.outcome, self.ended_at, self.error = outcome, at, error

    @property
    def entry(self) -> LedgerEntry:
        fields = {name: getattr(self.attempt, name) for name in Attempt.model_fields}
        return LedgerEntry(**fields, ended_at=self.ended_at, outcome=self.outcome, error=self.error)


@dataclass
class _RowsOfRun:
    scopes: dict[str, _Scope] = field(default_factory=dict[str, _Scope])
    attempts: dict[tuple[str, int], _AttemptRow] = field(
        default_factory=dict[tuple[str, int], _AttemptRow]
    )
    results: dict[str, SpecialistResult] = field(default_factory=dict[str, SpecialistResult])
    notes: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class MemoryJournal:
    """The rows of the runs of this process, for graphs without a database.

    Of a run that is over, what it spent and its ledger stay for a while, since its limits may be
    raised and its name must not be used again: the newest, in `max_closed` bytes.

    A run that is not over keeps all its rows, however long it waits for a person: they say what
    must not be done twice. There is room for `max_open` of them, so that runs that nobody will go
    on with cannot fill the memory. Beyond it the one that was used longest ago gives way, with a
    warning in the log; continuing it later is an error, not a second run of its work.
    """

    def __init__(self, *, max_open: int = 10_000, max_closed: int = 4_000_000) -> None:
        self._open: OrderedDict[str, _RowsOfRun] = OrderedDict()
        self._closed: OrderedDict[str, bytes] = OrderedDict()
        self._given_up: set[str] = set()
        self._max_open = max_open
        self._max_closed = max_closed
        self._closed_size = 0

    async def reserve(self, reservation: Reservation, bounds: Sequence[Bound]) -> Refused | None:
        scopes = self._rows_to_change(reservation.run_id).scopes
        if any(reservation.id in scope.reserved for scope in scopes.values()):
            return None
        for bound in bounds:
            charged = scopes.get(bound.scope, _Scope()).charged
            refused = first_refusal(bound, reservation.amount, charged)
            if refused is not None:
                return refused
        for bound in bounds:
            scopes.setdefault(bound.scope, _Scope()).reserved[reservation.id] = reservation.amount
        return None

    async def settle(self, reservation: Reservation, used: Spending) -> None:
        run = self._rows_to_read(reservation.run_id)
        for scope in run.scopes.values():
            if scope.reserved.pop(reservation.id, None) is not None:
                scope.settled += used
        if reservation.run_id in self._closed:
            # A call that was abandoned may answer when its run is over, which stays over.
            self._put_away(reservation.run_id, run)

    async def spent(self, run_id: str) -> Mapping[str, Spending]:
        return {name: scope.charged for name, scope in self._rows_to_read(run_id).scopes.items()}

    async def charged(self, run_id: str) -> Mapping[str, Charged]:
        scopes = self._rows_to_read(run_id).scopes.items()
        return {name: Charged(spent=each.charged, reserved=each.reserved) for name, each in scopes}

    async def started(self, attempt: Attempt, key: str = "") -> SpecialistResult | None:
        run = self._rows_to_change(attempt.run_id)
        known = run.results.get(key or attempt.key) or run.results.get(attempt.key)
        if known is not None:
            return known
        begun = self._attempt_row(attempt).attempt
        if (begun.started_at, begun.step_id) != (attempt.started_at, attempt.step_id):
            raise begun_already("in memory", attempt)
        return None

    async def ended(
        self, attempt: Attempt, outcome: AttemptOutcome, at: datetime, error: str = ""
    ) -> None:
        self._attempt_row(attempt).end(outcome, at, error)

    async def finished(
        self, attempt: Attempt, result: SpecialistResult, at: datetime, key: str = ""
    ) -> None:
        self._attempt_row(attempt).end("failed" if result.is_failed else "done", at, result.error)
        self._rows_to_change(attempt.run_id).results.setdefault(key or attempt.key, result)

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        return dict(self._rows_to_read(run_id).results)

    async def ledger(self, run_id: str) -> Sequence[LedgerEntry]:
        return [begun.entry for begun in self._rows_to_read(run_id).attempts.values()]

    async def note(self, run_id: str, key: str, value: JsonValue) -> JsonValue:
        return self._rows_to_change(run_id).notes.setdefault(key, value)

    async def notes(self, run_id: str, prefix: str = "") -> Mapping[str, JsonValue]:
        notes = self._rows_to_read(run_id).notes
        return {key: value for key, value in notes.items() if key.startswith(prefix)}

    async def strike(self, run_id: str, prefix: str) -> None:
        notes = self._rows_to_read(run_id).notes
        for key in [key for key in notes if key.startswith(prefix)]:
            del notes[key]

    async def adopt(self, run_id: str, rows: RunRows) -> None:
        if run_id in self._closed or self._rows_to_read(run_id) != _RowsOfRun():
            return
        run = self._rows_to_change(run_id)
        run.scopes.update({scope: _Scope(settled=each) for scope, each in rows.spent.items()})
        for each in rows.attempts:
            attempt = each.replace(run_id=run_id)
            begun = _AttemptRow(attempt, each.ended_at, each.outcome, each.error)
            run.attempts[attempt.key, attempt.number] = begun
        run.results.update(rows.results)
        run.notes.update(rows.notes)

    async def closed(self, run_id: str) -> None:
        """Forget all of a run that is over but its ledger, and what it spent: it may be raised."""
        run = self._open.pop(run_id, None)
        if run is not None:
            notes = {key: value for key, value in run.notes.items() if key.startswith(_KEPT)}
            self._put_away(
                run_id, _RowsOfRun(scopes=run.scopes, attempts=run.attempts, notes=notes)
            )

    def forget(self, run_id: str) -> None:
        self._open.pop(run_id, None)
        self._closed_size -= len(self._closed.pop(run_id, b""))
        self._given_up.discard(run_id)

    def _attempt_row(self, attempt: Attempt) -> _AttemptRow:
        attempts = self._rows_to_change(attempt.run_id).attempts
        return attempts.setdefault((attempt.key, attempt.number), _AttemptRow(attempt))

    def _rows_to_read(self, run_id: str) -> _RowsOfRun:
        """The rows of a run to be read; none if it is not known."""
        if run_id in self._given_up:
            raise StorageError(
                "in memory",
                f"Too many unfinished runs were begun after {run_id}, so the record of its steps "
                "was dropped.",
                "Begin a new run under another name; with `open_storage` no run is dropped.",
            )
        if run_id in self._closed:
            return cast(_RowsOfRun, pickle.loads(self._closed[run_id]))  # noqa: S301 - our own bytes
        return self._open.get(run_id) or _RowsOfRun()

    def _rows_to_change(self, run_id: str) -> _RowsOfRun:
        run = self._open.setdefault(run_id, self._rows_to_read(run_id))
        self._closed_size -= len(self._closed.pop(run_id, b""))
        self._open.move_to_end(run_id)
        while len(self._open) > self._max_open:
            given_up, _ = self._open.popitem(last=False)
            self._given_up.add(given_up)
            logger.warning("forgot a run that is not over", extra={"run_id": given_up})
        return run

    def _put_away(self, run_id: str, run: _RowsOfRun) -> None:
        rows = pickle.dumps(run)
        self._closed_size += len(rows) - len(self._closed.pop(run_id, b""))
        self._closed[run_id] = rows
        while self._closed_size > self._max_closed:
            self._closed_size -= len(self._closed.popitem(last=False)[1])

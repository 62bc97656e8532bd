"""The journal: what must be known about a run even if a node never returns.

LangGraph writes what a node returns, when it returns. What a kill in the middle of a step must not
take away is here first: what was spent, which attempts were begun, their outcome, and every
value that may be computed or asked for only once.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from pydantic import Field, JsonValue, SerializationInfo, field_serializer

from replan.errors import StorageError
from replan.plan.model import Value
from replan.state.results import SpecialistResult, result_as_json

BEGAN = "began"  # the key of the note with the checkpoint at which the run began
TOLD = "told/"  # the prefix of notes that say which warnings an event has reported
ACTED = "acted/"  # the prefix of the notes about tools that did something that must not be repeated
DOUBTED = "doubted/"  # the prefix of notes about attempts in doubt that failed without a question


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


AttemptOutcome = Literal["done", "failed", "cancelled", "waiting", "in doubt"]
"""How an attempt ended; an attempt without a recorded end is in doubt."""

UNKNOWN_ENDS: tuple[AttemptOutcome, ...] = ("in doubt", "cancelled")
"""Outcomes that do not show what was done; any other one is final."""


class LedgerEntry(Attempt):
    """An attempt, and its outcome."""

    ended_at: datetime | None = None  # when it ended; none for one that is in doubt
    outcome: AttemptOutcome = "in doubt"  # how it ended
    error: str = ""  # why it failed


class Spending(Value):
    """An amount of the quantities that limits bound."""

    calls: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)  # tokens in and out
    cost: float = Field(default=0.0, ge=0)  # money, in the currency of the configured prices

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )


class Bound(Value):
    """The bounds of one scope of a run; None means unbounded."""

    scope: str  # `run`, `specialist/<name>` or `step/<id>`
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


class Reservation(Value):
    """What one model call may spend at most, charged before it is made."""

    id: str  # unique; made by who reserves
    run_id: str
    amount: Spending  # charged in full until the call is settled, and forever if it never is


class Charged(Value):
    """What is charged to a scope of a run."""

    spent: Spending = Spending()  # all of it, reservations in full
    # What of it is reserved, by the ids of the reservations.
    reserved: dict[str, Spending] = Field(default_factory=dict[str, Spending])


class Refused(Value):
    """Why a reservation was not made."""

    scope: str  # the scope of the bound that has no room
    # Which amount has no room: `calls`, `tokens` or `cost`.
    kind: Literal["calls", "tokens", "cost"]


class RunRows(Value):
    """All rows of a run, which is at rest."""

    # What each scope has spent, including reservations that are never settled.
    spent: dict[str, Spending] = Field(default_factory=dict)
    attempts: tuple[LedgerEntry, ...] = ()  # the attempts, in the order in which they began
    # The recorded final results, by the keys that they answer for.
    results: dict[str, SpecialistResult] = Field(default_factory=dict)
    # The recorded values with their keys, in the order in which they came.
    notes: tuple[tuple[str, JsonValue], ...] = ()

    @field_serializer("results", when_used="json")
    def _as_json(
        self, results: dict[str, SpecialistResult], info: SerializationInfo
    ) -> dict[str, JsonValue]:
        is_short = info.exclude_defaults
        return {key: result_as_json(each, is_short=is_short) for key, each in results.items()}


class Journal(Protocol):
    """Rows that are stored durably before the effect that they announce, or with their value.

    Every method that writes returns only when the row is safe, or raises; a write that fails ends
    the run loudly. All rows of a run go with the run.
    """

    async def reserve(self, reservation: Reservation, bounds: Sequence[Bound]) -> Refused | None:
        """Charge every scope of the bounds with the amount, or none of them; atomic."""
        ...

    async def settle(self, reservation: Reservation, used: Spending) -> None:
        """Replace the reservation by the amount used; a repetition is harmless."""
        ...

    async def spent(self, run_id: str) -> Mapping[str, Spending]:
        """What each scope has spent, reservations that are not settled in full."""
        ...

    async def charged(self, run_id: str) -> Mapping[str, Charged]:
        """What each scope has spent, and the reservations in it, all as of one moment."""
        ...

    async def started(self, attempt: Attempt, key: str = "") -> SpecialistResult | None:
        """Record that an attempt begins, before its first effect, unless its result is on record.

        The same again is harmless: its receipt may have been lost.

        Args:
            attempt: The attempt.
            key: The key of its result, in addition to the key of the attempt.

        Returns:
            The result that another process recorded in the meantime: then there is nothing to do.

        Raises:
            StorageError: Somebody else began the attempt.
        """
        ...

    async def ended(
        self, attempt: Attempt, outcome: AttemptOutcome, at: datetime, error: str = ""
    ) -> None:
        """Record the end of an attempt without a final result; a final end stays."""
        ...

    async def finished(
        self, attempt: Attempt, result: SpecialistResult, at: datetime, key: str = ""
    ) -> None:
        """Record the final result of a step at a specialist, and its attempt's end, in one write.

        Other steps build on the result only after this; the first result of a key stays.

        Args:
            attempt: The newest attempt.
            result: The outcome of the step.
            at: When it ended.
            key: What the result answers for; empty: what the attempt is of.
        """
        ...

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        """The recorded final results of a run, by the keys that they answer for."""
        ...

    async def ledger(self, run_id: str) -> Sequence[LedgerEntry]:
        """Every attempt of a run, in the order in which they began."""
        ...

    async def note(self, run_id: str, key: str, value: JsonValue) -> JsonValue:
        """Record a value under a key; the first value counts, and is returned.

        Answers of a person, replies in a tool loop, calls of a tool are here.
        """
        ...

    async def notes(self, run_id: str, prefix: str = "") -> Mapping[str, JsonValue]:
        """The recorded values whose keys have this prefix, in the order of their recording."""
        ...

    async def strike(self, run_id: str, prefix: str) -> None:
        """Remove the values whose keys have this prefix."""
        ...

    async def adopt(self, run_id: str, rows: RunRows) -> None:
        """Copy all rows of a run from another journal; a run that has rows here keeps those.

        The same again is harmless: its receipt may have been lost.
        """
        ...

    async def closed(self, run_id: str) -> None:
        """The run is over and its state is stored; a journal that stores nothing may forget it."""
        ...


async def rows_of(journal: Journal, run_id: str) -> RunRows:
    """Read everything that is on record of a run at rest, so that another journal can adopt it."""
    return RunRows(
        spent=dict(await journal.spent(run_id)),
        attempts=tuple(await journal.ledger(run_id)),
        results=dict(await journal.results(run_id)),
        notes=tuple((await journal.notes(run_id)).items()),
    )

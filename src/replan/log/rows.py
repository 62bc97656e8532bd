"""The rows of a log, and what keeps them."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field, JsonValue

from replan.base.errors import StorageError
from replan.base.values import Value
from replan.log.amounts import NOTHING, Spending
from replan.log.events.listeners import Announcement
from replan.state.outcomes import AttemptOutcome

T = TypeVar("T")

Totals = tuple[Spending, Spending]
"""What of a scope is settled, and what is reserved."""


# What keys of rows begin with; those of values that are appended by name have none of these.
ATTEMPT, END, RESULT = "attempt/", "end/", "result/"
RESERVED, SETTLED, REQUEST, TAKEN = "reserved/", "settled/", "request/", "taken/"
EVENT, SUPERSEDED, REPORT, FORKED = "event/", "superseded/", "report/", "forked/"


class KeptText(NamedTuple):
    """A long text of an event, such as a prompt."""

    ref: str  # what it is found by: its digest, so that it is kept once in a run
    text: str
    at: datetime  # when it was kept


def reference_to(text: str) -> str:
    """What a long text is found by: its digest."""
    # Half characters are not replaced, so that texts that differ in them have two.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


class LoggedEvent(Value):
    """A stored event of a run."""

    seq: int  # its number: from 1, without a gap, given where it was appended
    event: JsonValue  # what happened; its `type` and `at` say what and when


RequestKind = Literal["stop", "answer", "edit", "message"]

STEERS: tuple[RequestKind, ...] = ("edit", "message")
"""The requests that steer a run while it is at work: an edit of its plan, and words to its host."""


class Request(Value):
    """A request to a run, whichever process works on it."""

    run_id: str
    name: str  # what distinguishes it from all other requests
    kind: RequestKind  # to stop, or to take answers, an edited plan or a message
    at: datetime  # when it was made
    by: str = ""  # who made it
    # Answers by the keys of what is asked.
    answers: dict[str, JsonValue] = Field(default_factory=dict)
    # The digest of the answers as they came; empty where one may be a secret, and in reports.
    said: str = Field(default="", exclude_if=lambda said: not said)
    text: str = ""  # the edited document of the plan, or the message
    version: int = 0  # the version of the plan that the edit was made from


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


UNKNOWN_ENDS: tuple[AttemptOutcome, ...] = ("unknown_outcome", "cancelled")
"""Outcomes that do not show what was done; any other one is final."""


class LedgerEntry(Attempt):
    """An attempt, and its outcome."""

    ended_at: datetime | None = None  # when it ended; none for one that is in doubt
    outcome: AttemptOutcome = "unknown_outcome"  # how it ended
    error: str = ""  # why it failed


class Fork(Value):
    """That a run continues from an older state of its own."""

    at: datetime  # when it went back
    state_at: datetime | None  # when it was in that state; None: before anything was on record
    step_id: int | None  # the step that had ended last then; None: no step had
    is_rollback: bool  # whether what came later was removed, and not left behind


class Reported(NamedTuple):
    """The rows of a run that its report shows, all as of one moment."""

    events: Sequence[LoggedEvent]
    requests: Sequence[Request]  # all that was ever asked of it, in their order
    spent: Mapping[str, Spending]  # what each scope has spent, open reservations in full
    reserved: Spending  # the open reservations of the run
    forks: Sequence[Fork]  # in their order
    attempts: Sequence[LedgerEntry]  # in the order in which they began


class NewRow(NamedTuple):
    """A row that is to be appended."""

    key: str  # what it is found by; the first row of a key counts
    kind: str
    # What only the run's own doors show, or what writes it: rows in memory are mostly never read.
    value: JsonValue | Callable[[], JsonValue] = None
    event: JsonValue = None  # what others see of it

    @property
    def written(self) -> JsonValue:
        return self.value() if callable(self.value) else self.value


class LogRow(NamedTuple):
    """A row of the log of a run.

    Attributes:
        number: Its number among all rows of the run, from 1.
        key: What it is found by, or was until it was superseded.
        kind: What happened.
        counts: Whether it is not superseded.
        at: When it was written.
        seq: Its number among the rows that others may see; None for one that they may not.
        event: What others see of it.
        value: What only the run's own doors show.
    """

    number: int
    key: str
    kind: str
    counts: bool
    at: datetime
    seq: int | None
    event: JsonValue
    value: JsonValue


class EventBatch(Protocol):
    """The events of a run that are written with a row, in front of it."""

    def write(self, rows: "Rows", work: "Callable[[Rows, Append], T]") -> T:
        """Append those that wait, then do work; what it appends has the event of the batch."""
        ...


class EventQueue(Protocol):
    """The events of a run that this process works on, in their order."""

    @property
    def is_here(self) -> bool:
        """Whether what runs here is the work on the run, in its event loop."""
        ...

    @property
    def has_events(self) -> bool:
        """Whether events are not on record yet."""
        ...

    def before(self, announced: Announcement | None) -> AbstractAsyncContextManager[EventBatch]:
        """What is written inside comes behind the events so far; on leaving, all are published."""
        ...


class Rows(Protocol):
    """The rows of one run, inside a transaction."""

    def append(self, row: NewRow, seq: int | None = None) -> bool:
        """Append a row, if its key is new; an event with its number among those."""
        ...

    def has(self, key: str) -> bool:
        """Whether there is a row of a key that counts."""
        ...

    def value(self, key: str) -> Any:
        """The value of the row of a key, which is there."""
        ...

    def below(self, prefix: str) -> Sequence[tuple[str, Any]]:
        """The keys with a prefix and the values of their rows, in their order."""
        ...

    def supersede(self, first: str, last: str) -> int:
        """Let rows from a key to before another one count no longer; returns how many."""
        ...

    def newest_event(self) -> int:
        """The number of the newest event; 0 without one."""
        ...

    def events(self, after: int) -> Sequence[LoggedEvent]:
        """The events with larger numbers, in their order."""
        ...

    def recent_events(self, kinds: Sequence[str], among: int) -> Sequence[LoggedEvent]:
        """The events of some kinds among so many of the newest rows, in their order."""
        ...

    def every(self, after: int) -> Sequence[LogRow]:
        """All rows with larger numbers, in their order."""
        ...

    def totals(self) -> Mapping[str, Totals]:
        """What each scope has spent."""
        ...

    def charge(self, scope: str, totals: Totals) -> None:
        """Set what a scope has spent."""
        ...

    def keep_text(self, ref: str, text: str, at: datetime) -> None:
        """Keep a long text of an event, unless it is there."""
        ...

    def text(self, ref: str) -> str | None:
        """A long text; None if it is not kept, or no longer."""
        ...


_BEHIND_ALL = "~"  # no key begins with it or with what comes behind it


def span(prefix: str) -> tuple[str, str]:
    """The first key with a prefix, and the first one behind all with it."""
    return (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else ("", _BEHIND_ALL)


def spent_in(rows: Rows) -> Mapping[str, Spending]:
    """What each scope has spent, open reservations in full."""
    return {scope: settled + reserved for scope, (settled, reserved) in rows.totals().items()}


def reserved_in(rows: Rows) -> Spending:
    """What is reserved for calls of a run that have no end."""
    _, reserved = rows.totals().get("run", (NOTHING, NOTHING))
    return reserved


def forks_in(rows: Rows) -> Sequence[Fork]:
    """The forks and rollbacks of a run, in their order; only if it has one, all rows are read."""
    if not rows.below(FORKED):
        return ()
    forks = list[Fork]()
    every = rows.every(0)
    for row in every:
        if row.key.startswith(FORKED):
            value: Any = row.value
            before = [each for each in every if each.number <= value["row"]]
            results: list[Any] = [each.value for each in before if each.key.startswith(RESULT)]
            fork = Fork(
                at=row.at,
                state_at=before[-1].at if before else None,
                step_id=results[-1]["step_id"] if results else None,
                # One who goes on from there is named by what it wrote.
                is_rollback=row.key == f"{FORKED}{value['checkpoint']}",
            )
            forks.append(fork)
    return forks


def requests_in(rows: Rows, run_id: str) -> Sequence[Request]:
    """All that was ever asked of a run, in the order in which it was."""
    return in_order(Request(run_id=run_id, **value) for _, value in rows.below(REQUEST))


def in_order(requests: Iterable[Request]) -> Sequence[Request]:
    """Requests in the order in which they were made."""
    return sorted(requests, key=lambda request: (request.at, request.name))


Append = Callable[[Rows, NewRow], bool]
"""Appends a row with an event, if its key is new."""


class LogStore(Protocol):
    """Where the rows of runs are.

    Attributes:
        outlives_process: Whether rows are there as long as the checkpoints of their runs.
    """

    outlives_process: bool

    @property
    def where(self) -> str:
        """The storage, for people."""
        ...

    @property
    def take(self) -> int:
        """The number of the take of a thread as whose owner this code works; 0 without one."""
        ...

    async def write(self, run_id: str, work: Callable[[Rows], T]) -> T:
        """Run a transaction that appends to the log of a run; one at a time, perhaps twice."""
        ...

    async def read(self, run_ids: Collection[str], work: Callable[[Rows], T]) -> dict[str, T]:
        """Read logs of runs, all as of one moment."""
        ...

    async def forget_texts(self, before: datetime) -> None:
        """Remove the texts of the events of all runs that were kept before a time."""
        ...

    async def closed(self, run_id: str) -> None:
        """The run is over and its state is stored; who keeps nothing may forget it."""
        ...

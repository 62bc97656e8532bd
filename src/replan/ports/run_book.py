"""The list of runs: which there were, their status, and what it takes to continue one."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, Self

from pydantic import Field, JsonValue

from replan.base.values import Value
from replan.state.limits import RunSettings
from replan.state.outcomes import RunOutcome

RunOrder = Literal["began", "took", "tokens", "cost", "outcome"]
"""The orders of runs: the newest, longest or most expensive first, or those that need a person."""


BY_NEED: tuple[RunOutcome, ...] = (
    "waiting",
    "interrupted",
    "running",
    "failed",
    "partial",
    "rejected",
    "completed",
    "answered",
)
"""The outcomes in the order of `outcome`."""


class TeamIdentity(Value):
    """Which team works on a run.

    Attributes:
        name: Its name.
        digest: The first 16 hexadecimal digits of a SHA-256: of its file, else of what is declared.
        source: Its file, `default` for the team that is used where none is named, or `python`.
        currency: The currency of its prices; empty where it names none.
        unsafe: The specialists whose work may have effects that must not happen twice.
    """

    name: str
    digest: str
    source: str
    currency: str = ""
    unsafe: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, content: str, source: str, currency: str = "") -> Self:
        """Make the identity of what a team is made from."""
        return cls(name=name, digest=digest_of(content), source=source, currency=currency)


DEFAULT, PYTHON = "default", "python"
"""The sources of a team that no path names."""


def digest_of(content: str) -> str:
    """What a content is known by."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


class RunRecord(Value):
    """One run."""

    run_id: str
    thread_id: str  # the LangGraph thread whose checkpoints hold its state
    title: str = ""  # what it is about, for people
    order: JsonValue = None  # what is needed to build the same graph again; no secrets
    settings: RunSettings | None = None  # those of its start, until it has a state
    team: TeamIdentity | None = None  # who worked on it last; None if no team is known
    # Its status. A process that is killed cannot say so: its run reads `running`.
    outcome: RunOutcome = "running"
    started_at: datetime  # when it began
    updated_at: datetime  # the time of its last sign of life
    # What it is found by, such as its user; given where it begins, and never encrypted.
    labels: dict[str, str] = Field(default_factory=dict)

    @property
    def team_name(self) -> str:
        """The name of its team; empty if none is known."""
        return "" if self.team is None else self.team.name

    @property
    def reported(self) -> dict[str, Any]:
        """What a report of the run has of it."""
        return {
            "run_id": self.run_id,
            "title": self.title,
            "team": self.team_name,
            "team_source": self.team.source if self.team else "",
            "unsafe": self.team.unsafe if self.team else (),
            "currency": self.currency,
            "outcome": self.outcome,
            "started_at": self.started_at,
            "last_seen_at": self.updated_at,
            "labels": self.labels,
        }

    @property
    def currency(self) -> str:
        """The currency of its costs; empty if none is known."""
        return "" if self.team is None else self.team.currency


class RunBook(Protocol):
    """Rows about runs; the checkpoints and the log hold what the runs did."""

    async def begin(self, record: RunRecord) -> None:
        """Enter a run; an existing one keeps its order, settings, title and beginning."""
        ...

    async def update(self, run_id: str, outcome: RunOutcome, at: datetime) -> None:
        """Set the status of a run; an unknown run is ignored."""
        ...

    async def get(self, run_id: str) -> RunRecord | None:
        """The run with exactly this id."""
        ...

    async def find(self, prefix: str) -> Sequence[RunRecord]:
        """The runs whose ids have this prefix, the newest first."""
        ...

    async def recent(
        self,
        limit: int,
        labels: Mapping[str, str] | None = None,
        *,
        behind: RunRecord | None = None,
        outcomes: Collection[RunOutcome] = (),
        order: RunOrder = "began",
    ) -> Sequence[RunRecord]:
        """The first runs in an order, by default the newest; those that have these labels.

        With `behind`, those that come after this run in that order. With `outcomes`, those whose
        records are so, and those that went back to an older state. Of equal runs, the newest come
        first. One whose record says `running` took the time until now.
        """
        ...

    async def count_unfinished(self, label: str) -> Mapping[tuple[str, RunOutcome], int]:
        """How many runs are not over, by their value of a label ("" without it) and outcome."""
        ...

    async def remove(self, run_id: str) -> None:
        """Remove a run with its log, and its thread if no other run is on it.

        Raises:
            ThreadBusyError: A run works on the thread.
        """
        ...

"""The book of runs: which there were, how they stand, and what it takes to go on with one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from pydantic import JsonValue

from replan.plan.model import Value
from replan.state.results import Outcome

RunOutcome = Literal["running", "waiting", "interrupted"] | Outcome
"""How a run stands: still going, waiting for a person, stopped in the middle, or how it ended."""


class RunRecord(Value):
    """One run.

    Attributes:
        run_id: The run.
        thread_id: The LangGraph thread whose checkpoints hold its state.
        title: What it is about, for people.
        order: What is needed to build the same graph again; no secrets.
        outcome: How it stands. A process that is killed cannot say so: its run reads `running`.
        started_at: When it began.
        updated_at: When it was last heard of.
    """

    run_id: str
    thread_id: str
    title: str = ""
    order: JsonValue = None
    outcome: RunOutcome = "running"
    started_at: datetime
    updated_at: datetime


class RunBook(Protocol):
    """Rows about runs, beside the checkpoints and the journal that hold what the runs did."""

    async def begin(self, record: RunRecord) -> None:
        """Enter a run; one that is there keeps its order, title and beginning."""
        ...

    async def update(self, run_id: str, outcome: RunOutcome, at: datetime) -> None:
        """Say how a run stands; a run that is not there stays so."""
        ...

    async def get(self, run_id: str) -> RunRecord | None:
        """The run with exactly this id."""
        ...

    async def find(self, prefix: str) -> Sequence[RunRecord]:
        """The runs whose ids begin so, the newest first: one if the prefix is enough to name it."""
        ...

    async def recent(self, limit: int) -> Sequence[RunRecord]:
        """The runs that began last, the newest first."""
        ...

    async def remove(self, run_id: str) -> None:
        """Remove a run with its journal and events, and its thread if no other run is on it.

        Raises:
                    ThreadBusyError: A run works on the thread.
        """
        ...

    async def add_events(self, run_id: str, events: Sequence[JsonValue]) -> None:
        """Append events of a run, in this order."""
        ...

    async def events(self, run_id: str) -> Sequence[JsonValue]:
        """The events of a run, in the order in which they were added."""
        ...

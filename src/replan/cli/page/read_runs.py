"""Runs as the pages show them: read again only when something has happened."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from replan.assembly.graphs import viewer
from replan.base.errors import InputError
from replan.cli.user_files.order_signature import is_signed
from replan.cli.user_files.storage_location import find_run
from replan.log.events.types import Event
from replan.ports.run_book import RunRecord
from replan.runs.calling.compiled import Graph
from replan.runs.reports import WholeReport, read_report, with_texts
from replan.runs.team_on_record import team_name, who_continues
from replan.server.callers.identity import Identity
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams
from replan.views.run.evidence import replies_before

RECORDED = "Until then you can look, answer and reject; what you say counts once it is resumed."
"""What can be done where nothing works on a run."""

_KEPT = 8
_SETTLES = timedelta(seconds=1)
"""An event may be on record before the state that it reports."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A run that was read."""

    run: WholeReport
    at: datetime  # when the reading began
    doer: str = ""  # what continues it here: `team`, `terminal`, or `record` if nothing does
    lacks: str = ""  # why nothing here can work on it, and what to do; empty if something can

    @property
    def seq(self) -> int:
        """The number of its newest event."""
        return (self.run.events[-1].seq or 0) if self.run.events else 0

    @property
    def settled(self) -> int:
        """The number of its newest event that all else of the reading is surely not older than."""
        latest = self.at - _SETTLES
        old = (e.seq for e in reversed(self.run.events) if e.at is not None and e.at <= latest)
        return next(old, 0) or 0

    @property
    def is_at_work(self) -> bool:
        """Whether something may still happen by itself."""
        return self.run.outcome == "running"


Mark = tuple[str, datetime, bool, int]


@dataclass(frozen=True)
class Readings:
    """The newest readings, by run: several tabs and browsers follow the same one."""

    served: ServedTeams
    lacks: Callable[[RunRecord], str] = lambda _: ""  # what the team of a terminal's run lacks
    kept: OrderedDict[str, tuple[Mark, Reading]] = field(
        default_factory=OrderedDict[str, tuple[Mark, Reading]]
    )

    async def of(self, record: RunRecord) -> Reading:
        """Read a run."""
        storage, now = self.served.storage, self.served.clock()
        is_held = await storage.works_on(record)
        asked = len(await storage.log.requests([record.run_id]))
        mark = record.outcome, record.updated_at, is_held, asked
        before = self.kept.get(record.run_id)
        if before and before[0] == mark and before[1].settled == before[1].seq:
            reading = before[1]
            if not await storage.log.events(record.run_id, reading.seq):
                if not is_held:
                    return reading
                # Only the clock continued.
                run = reading.run.model_copy(update={"last_seen_at": now})
                return replace(reading, run=run)
        first_events = before[1].run.events if before else ()
        run = await read_report(graph_for(self.served, record), storage, record, now, first_events)
        run = await with_texts(run, storage, tuple(replies_before(run)))
        reading = self._continued(Reading(run=run, at=now), record)
        self.kept[record.run_id] = mark, reading
        while len(self.kept) > _KEPT:
            self.kept.popitem(last=False)
        return reading

    def _continued(self, reading: Reading, record: RunRecord) -> Reading:
        """What was read, with what continues it here."""
        is_own_order = is_signed(record.order, record.run_id)
        found = who_continues(
            record, self.served.runtimes, is_operator=True, is_signed=is_own_order
        )
        if found.by_options:
            return replace(reading, doer="terminal", lacks=self.lacks(record))
        if found.team:
            return replace(reading, doer="team", lacks=self.served.lacking.get(found.team, ""))
        return replace(reading, doer="record", lacks=f"{found.missing} {RECORDED}")


def graph_for(served: ServedTeams, record: RunRecord) -> Graph:
    """What reads the state of a run: its own graph if its team is served, else one for all."""
    runtime = served.runtimes.get(team_name(record))
    return viewer(served.storage) if runtime is None else runtime.graph


async def find_record(served: ServedTeams, name: str, who: Identity) -> RunRecord:
    """A run that the caller may see: a caller without a tenant sees all runs of the storage.

    Raises:
        RefusedError: There is none.
    """
    if who.tenant:
        return await served.record_of(name, who)
    try:
        record = await find_run(served.storage.runs, name)
    except InputError as error:
        raise RefusedError(404, "unknown_run", str(error)) from None
    # One that the caller may not see looks as if it were not there.
    return record if served.may_look(record, who) else await served.record_of(name, who)


def event_numbered(run: WholeReport, seq: int) -> Event:
    """One event of a run.

    Raises:
        RefusedError: There is none of this number.
    """
    for event in run.events:
        if event.seq == seq:
            return event
    raise RefusedError(404, "unknown_event", f"The run has no event {seq}.")

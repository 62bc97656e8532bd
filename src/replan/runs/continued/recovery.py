"""Resume the runs that a crash or a shutdown left, and say which were left alone, and why."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from replan.base.errors import InputError, ThreadBusyError
from replan.base.failures import describe
from replan.log.events.types import Event, RunStopped
from replan.log.labels import SESSION, VERSION
from replan.ports.run_book import RunOutcome, RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.barred import bar_on
from replan.runs.continued.resuming import remaining_work
from replan.runs.reads import events_on_record, result_at_rest
from replan.runs.reports import config_of, snapshot_of
from replan.runs.result import RunResult, T_co
from replan.runs.run_at_work import Following, Resources, RunJob
from replan.runs.runs_at_work import RunsAtWork
from replan.runs.statuses import records_of
from replan.runs.stopping import put_an_end_to
from replan.runs.team_on_record import is_of_team
from replan.state.outcomes import NOT_OVER

LeftAloneReason = Literal[
    "waiting",
    "stopped",
    "held",
    "other_team",
    "in_queue",
    "in_session",
    "superseded",
    "failed",
    "unreadable",
    "not_begun",
    "exported",
    "cancelled",
]
"""Why a run was left alone; see `LeftAlone`."""

_TEXTS: dict[LeftAloneReason, str] = {
    "waiting": "it waits for a person; answer it",
    "stopped": "a person stopped it; resume it by its id",
    "held": "a process works on it",
    "other_team": "another team began it, or no team is on record",
    "in_queue": "a worker does it, or will",
    "in_session": "it is a turn of a session; taking the turn again continues it",
    "superseded": "a later run has begun on its thread",
    "failed": "it was resumed, and broke off",
    "unreadable": "its records cannot be read",
    "not_begun": "the runtime was closed or stopped before its turn came",
    "exported": "it was exported, and may go on elsewhere; take it back if it does not",
    "cancelled": "a client cancelled it for good",
}

_LISTED: tuple[tuple[RunOutcome, ...], ...] = (("running", "interrupted"), ("waiting",))

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LeftAlone:
    """A run that is not over, and that `Runtime.resume_interrupted` did not bring to rest.

    Attributes:
        run_id: The run.
        reason: `waiting` (it waits for a person), `stopped` (a person stopped it), `held` (a
            process works on it), `other_team` (another team began it, or none is on record),
            `in_queue` (workers do it), `in_session` (it is a turn of a session), `superseded` (a
            later run has begun on its thread), `failed` (it was resumed, and broke off),
            `unreadable` (its records cannot be read), `not_begun` (the runtime was closed or
            stopped before its turn came), `exported` (it may go on elsewhere) or `cancelled` (a
            client cancelled it for good).
        error: The error of a run that `failed` or is `unreadable`.
    """

    run_id: str
    reason: LeftAloneReason
    error: Exception | None = None

    @property
    def text(self) -> str:
        """The reason in words, with the error if there is one."""
        told = _TEXTS[self.reason]
        return f"{told}: {describe(self.error)}" if self.error else told


End = LeftAlone | RunResult[Any] | None
"""What became of a run that was not over; None if another process has brought it to its end."""


@dataclass(frozen=True, kw_only=True)
class Recovery(Generic[T_co]):
    """What `Runtime.resume_interrupted` did.

    Attributes:
        resumed: The results of the runs that were resumed. The outcome of each says whether it is
            over, `waiting` for a person or `interrupted` again.
        left_alone: The other runs that are not over, each with the reason.
        has_more: Whether there are more runs than `limit` let it look at.
    """

    resumed: tuple[RunResult[T_co], ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    has_more: bool = False


@dataclass(frozen=True, kw_only=True)
class RecoveryWanted:
    """What a caller wants of a recovery; see `Runtime.resume_interrupted`."""

    at_once: int
    limit: int
    by: str = ""
    config: RunnableConfig | None = None
    following: Following = field(default_factory=Following)

    def __post_init__(self) -> None:
        for name in ("at_once", "limit"):
            if (value := getattr(self, name)) < 1:
                raise InputError(f"{name}={value} resumes nothing. Give 1 or more.")


class Recoverer(Generic[T_co]):
    """One look at the runs that are not over, by one runtime."""

    def __init__(
        self, wanted: RecoveryWanted, resources: Resources, runs_at_work: RunsAtWork
    ) -> None:
        """Prepare; `recovery` does it."""
        self._wanted = wanted
        self._resources = resources
        self._runs_at_work = runs_at_work
        self._storage = cast("Storage", resources.storage)
        # Whoever stops one run must not stop the others.
        self._stops: list[asyncio.Event] = []

    async def recovery(self) -> Recovery[T_co]:
        run_ids = await self._listed()
        slots = asyncio.Semaphore(self._wanted.at_once)
        ends = (self._end_of(run_id, slots) for run_id in run_ids[: self._wanted.limit])
        stopping = asyncio.ensure_future(self._stop_all())
        try:
            known = await asyncio.gather(*ends)
        finally:
            await put_an_end_to(stopping)
        return Recovery(
            resumed=tuple(end for end in known if isinstance(end, RunResult)),
            left_alone=tuple(end for end in known if isinstance(end, LeftAlone)),
            has_more=len(run_ids) > self._wanted.limit,
        )

    async def _stop_all(self) -> None:
        """Stop the runs once the caller says so."""
        stop = self._wanted.following.get("stop")
        if stop is not None:
            await stop.wait()
            for each in self._stops:
                each.set()

    async def _listed(self) -> Sequence[str]:
        """The runs that are not over, the newest first; one more than the limit.

        Those that wait come last: many may wait for a long time, and few of them have an answer.
        """
        run_ids = dict[str, None]()
        for statuses in _LISTED:
            async with aclosing(records_of(self._resources.runs, statuses=statuses)) as records:
                async for record in records:
                    if len(run_ids) > self._wanted.limit:
                        break
                    # Another process may bring one to rest meanwhile, which then waits.
                    run_ids[record.run_id] = None
        return [*run_ids]

    async def _end_of(self, run_id: str, slots: asyncio.Semaphore) -> End:
        async with slots:
            end = await self._recover_run(run_id)
        if isinstance(end, LeftAlone):
            logger.info("run left alone", extra={"run_id": run_id, "reason": end.reason})
        return end

    async def _recover_run(self, run_id: str) -> End:
        """Resume a run, or say why not; None if it is over by now."""
        try:
            job = await self._job_of(run_id)
            return await self._work_on(job) if isinstance(job, RunJob) else job
        except Exception as error:  # noqa: BLE001 - one run that cannot be read stops no other
            return LeftAlone(run_id=run_id, reason="unreadable", error=error)

    async def _work_on(self, job: RunJob) -> End:
        run_id = job.run_id
        if self._is_ended():
            return LeftAlone(run_id=run_id, reason="not_begun")
        if run_id in self._runs_at_work:
            return LeftAlone(run_id=run_id, reason="held")
        stop = asyncio.Event()
        self._stops.append(stop)
        job = replace(job, following={**job.following, "stop": stop})
        try:
            # Who is cancelled leaves the run to the runtime, which stops it when it is closed.
            return await asyncio.shield(self._runs_at_work.begin(job))
        except ThreadBusyError:
            return await self._of_faster(run_id)
        except Exception as error:  # noqa: BLE001 - one run that breaks off stops no other
            return LeftAlone(run_id=run_id, reason="failed", error=error)

    def _is_ended(self) -> bool:
        stop = self._wanted.following.get("stop")
        return self._runs_at_work.is_closed or bool(stop and stop.is_set())

    async def _job_of(self, run_id: str) -> RunJob | End:
        record = await self._unfinished(run_id)
        if record is None:
            return None
        reason = await self._reason(record)
        if reason is not None:
            return LeftAlone(run_id=run_id, reason=reason)
        job = RunJob(
            record=record,
            config=self._wanted.config,
            following=self._wanted.following,
            goes_on=True,
            by=self._wanted.by,
            unless=lambda: self._is_past(record),
        )
        left = await remaining_work(job, self._resources)
        return left or await self._at_rest(record)

    async def _unfinished(self, run_id: str) -> RunRecord | None:
        record = await self._resources.runs.get(run_id)
        return record if record and record.outcome in NOT_OVER else None

    async def _reason(self, record: RunRecord) -> LeftAloneReason | None:
        """Why a run is left alone as its records are; None if it can be resumed."""
        if whose := self._of_others(record):
            return whose
        if record.run_id in self._runs_at_work or await self._storage.holds.is_held(
            record.thread_id
        ):
            return "held"
        if (bar := await bar_on(self._storage.log, record.run_id)) is not None:
            return bar
        if record.outcome == "waiting" and not await self._is_answered(record):
            return "waiting"
        if await self._is_stopped(record):
            return "stopped"
        return "superseded" if await self._is_superseded(record) else None

    def _of_others(self, record: RunRecord) -> LeftAloneReason | None:
        if VERSION in record.labels:
            return "in_queue"
        if SESSION in record.labels:
            return "in_session"
        return (
            None
            if is_of_team(record, self._resources.graph, self._resources.team)
            else "other_team"
        )

    async def _is_answered(self, record: RunRecord) -> bool:
        """Whether a process was killed between the answer of a person and the run."""
        requests = await self._resources.log.requests([record.run_id])
        return any(request.kind == "answer" for request in requests)

    async def _is_stopped(self, record: RunRecord) -> bool:
        """Whether a person stopped the run, and nobody resumed it since.

        A stop of a person is a row, whoever handles it. A shutdown, a signal or a crash has none.
        """
        requests = await self._resources.log.requests([record.run_id], taken=True)
        stops = [request.at for request in requests if request.kind == "stop"]
        if not stops:
            return False
        if record.outcome == "running":
            return max(stops) >= record.updated_at
        ends = ("run_started", "run_resumed", "run_stopped")
        events = await events_on_record(record.run_id, self._resources)
        marks = [event for event in events if event.type in ends]
        begun = [event.at for event in marks if event.type != "run_stopped" and event.at]
        # The clocks of who stopped it and of who did it may differ.
        return _is_stop_of_person(marks) or not begun or max(stops) >= begun[-1]

    async def _is_superseded(self, record: RunRecord) -> bool:
        """Whether another run has begun on the thread since: its state is the thread's now."""
        graph = cast("Any", self._resources.graph)
        newest: StateSnapshot = await graph.aget_state(config_of(record.thread_id))
        names = {newest.values.get("run_id"), (newest.metadata or {}).get("run_id")}
        for name in names - {None, "", record.run_id}:
            other = await self._resources.runs.get(str(name))
            if other is not None and other.started_at > record.started_at:
                return True
            if other is None and (await snapshot_of(graph, record)).values:
                return True
        return False

    async def _at_rest(self, record: RunRecord) -> End:
        """What is said of a run that nothing is left to do of: it waits, or is over."""
        result = await result_at_rest(record.run_id, self._resources)
        if result.outcome == "waiting":
            return LeftAlone(run_id=record.run_id, reason="waiting")
        # It was killed between its end and the record of it, or another process just ended it.
        try:
            async with self._storage.holds.lock(record.thread_id):
                is_past = await self._is_past(record)
                if not is_past:
                    now = self._resources.clock()
                    await self._resources.runs.update(record.run_id, result.outcome, now)
        except ThreadBusyError:
            is_past = True
        return await self._of_faster(record.run_id) if is_past else result

    async def _of_faster(self, run_id: str) -> LeftAlone | None:
        """What is said of a run for which another process was faster; None if it is over by now."""
        record = await self._unfinished(run_id)
        reason = record and (await self._reason(record) or "held")
        return LeftAlone(run_id=run_id, reason=reason) if reason else None

    async def _is_past(self, record: RunRecord) -> bool:
        """Whether somebody worked on the run, stopped it or began another since it was read."""
        now = await self._resources.runs.get(record.run_id)
        if now is None or (now.outcome, now.updated_at) != (record.outcome, record.updated_at):
            return True
        return await self._is_stopped(record) or await self._is_superseded(record)


def _is_stop_of_person(marks: Sequence[Event]) -> bool:
    return bool(marks) and isinstance(marks[-1], RunStopped) and bool(marks[-1].by)

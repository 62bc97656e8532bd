"""The teams of a server, each with its runtime, on one storage, and the owners of the runs."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, cast
from uuid import uuid4

from replan.assembly.graphs import AnyTeam
from replan.assembly.runtime import check_kept, open_runtime
from replan.base.errors import ReplanError
from replan.log.labels import SESSION, TEAM, TENANT, TOKEN, USER
from replan.log.report import RunReport
from replan.models.spending.scopes import check_prices
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import services_in
from replan.runs.run import Run
from replan.runs.service import Runtime, recording_beside
from replan.runs.team_on_record import team_name, who_continues
from replan.server.callers.allowances import Allowances, Lease
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens
from replan.server.problems import RefusedError, bad_field
from replan.server.request_body import BODY_SECONDS
from replan.specialists.services import Services
from replan.state.limits import Limits
from replan.traces.watch import Watch, watch_loop_lag


@dataclass(frozen=True, kw_only=True)
class Queueing:
    """A queue in which the runs of a server wait for workers."""

    # Opens the runtime of a team, by its name.
    opening: Callable[[str, AnyTeam, Mapping[str, Any]], AbstractAsyncContextManager[Runtime]]
    answers: Callable[[], Awaitable[object]]  # raises if the queue cannot be reached
    waiting: Callable[[], Awaitable[Mapping[str, int]]]  # how many runs wait, by their teams


MOST_STREAMS = 1_000
"""The most open streams of one token."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServedTeams:
    """The teams of a server, their runs, and the rights to them."""

    storage: Storage
    runtimes: Mapping[str, Runtime]
    tokens: Tokens
    allowances: Allowances
    clock: Callable[[], datetime]
    beat: float  # seconds between two signs of life of a silent stream
    body_seconds: float  # seconds in which the body of a request has to arrive
    grace: float = 10.0  # seconds that running steps have to end
    queue: Queueing | None = None  # where runs wait for workers; none: they are done here
    lacking: Mapping[str, str] = field(default_factory=dict[str, str])  # why some teams run nothing
    watch: Watch = field(default_factory=Watch)  # counts what happens here
    # What settles the account of a run when it rests.
    settling: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    # The turns of sessions that are being taken.
    turns: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    # The streams that are open, by the names of their tokens.
    streams: Counter[str] = field(default_factory=Counter[str])
    # What waits for runs to rest; one for each, however many follow it.
    resting: dict[str, asyncio.Task[str]] = field(default_factory=dict[str, asyncio.Task[str]])

    def team_named(self, name: str) -> str:
        """The name of a team, or of the only one if none is given."""
        if not name and len(self.runtimes) == 1:
            name = next(iter(self.runtimes))
        if name not in self.runtimes:
            there = ", ".join(self.runtimes)
            problem = "there is no such team" if name else "it names no team"
            raise bad_field("team", name, problem, f"Give one of: {there}.")
        return name

    def team_at(self, name: str, what: str = "team") -> str:
        """The team that an address, a tool or a model names.

        Raises:
            RefusedError: There is none.
        """
        if name in self.runtimes:
            return name
        code = "model_not_found" if what == "model" else "unknown_team"
        detail = f"There is no {what} '{name[:100]}' here. There are: {', '.join(self.runtimes)}."
        raise RefusedError(404, code, detail)

    def check_can_work(self, team: str) -> None:
        """Refuse work for a team that lacks something here.

        Raises:
            RefusedError: It says what, and what to do.
        """
        if why := self.lacking.get(team):
            raise RefusedError(409, "cannot_work", why)

    async def record_of(self, run_id: str, who: Identity) -> RunRecord:
        """A run that the caller may see, by its id or by the name that the caller gave it.

        Raises:
            RefusedError: There is none; runs of others look the same.
        """
        for name in (run_id, id_for(run_id, who)):
            record = await self.storage.runs.get(name)
            if record is not None and self.is_seen(record, who):
                return record
        raise RefusedError(
            404, "unknown_run", f"There is no run '{run_id[:100]}' here. GET /runs lists yours."
        )

    async def report_of(self, run_id: str, who: Identity) -> RunReport:
        """The report of a run that the caller may see.

        Raises:
            RefusedError: There is none.
        """
        record = await self.record_of(run_id, who)
        return await self.runtime_of(record).get(record.run_id)

    def is_seen(self, record: RunRecord, who: Identity) -> bool:
        """Whether the caller may see a run: one of the same tenant, and of a served team.

        A run of a session is seen by the person whose session it is; one that a terminal or another
        program began, by an operator.
        """
        labels = record.labels
        if not who_continues(record, self.runtimes, is_operator=who.is_operator).team:
            return False
        is_own = SESSION not in labels or labels.get(USER) == who.person
        return not who.tenant or (is_own and labels.get(TENANT) == who.tenant)

    def may_look(self, record: RunRecord, who: Identity) -> bool:
        """Whether the caller may look at a run, also at one of a team that is not served here."""
        if who.is_operator or self.is_seen(record, who):
            return True
        return not who.tenant and TEAM in record.labels

    def runtime_of(self, record: RunRecord | RunReport) -> Runtime:
        """The runtime that works on a run."""
        return self.runtimes[team_name(record)]

    def run_of(self, record: RunRecord | RunReport) -> Run:
        """A run that is there."""
        return Run(self.runtime_of(record), record.run_id)

    def new_id(self) -> str:
        """A new id of a run."""
        return uuid4().hex

    async def stop(self, run: RunRecord | RunReport, who: Identity, *, force: bool = False) -> None:
        """Stop a run for a caller; the run of a client that is only gone works on."""
        await self.runtime_of(run).stop(run.run_id, by=who.person, force=force)

    def stream_seat(self, who: Identity) -> AbstractContextManager[None]:
        """A place for one more stream of a token.

        Raises:
            RefusedError: It has as many as it may.
        """
        if self.streams[who.name] >= MOST_STREAMS:
            detail = (
                f"The token '{who.name}' has {MOST_STREAMS:,} streams open, and may have no more."
            )
            raise RefusedError(429, "too_many_streams", f"{detail} Close some.", retry_after=2)

        @contextmanager
        def held() -> Generator[None]:
            self.streams[who.name] += 1
            try:
                yield
            finally:
                self.streams[who.name] -= 1

        return held()

    async def wait_for_rest(self, record: RunRecord | RunReport) -> str:
        """Wait until no process works on a run, and return its outcome."""
        run_id, runtime = record.run_id, self.runtime_of(record)

        async def rested() -> str:
            return (await runtime.wait(run_id)).outcome

        if run_id not in self.resting:
            task = self.resting[run_id] = asyncio.ensure_future(rested())
            task.add_done_callback(lambda _: self.resting.pop(run_id))
        # Whoever leaves does not take it from the others.
        return await asyncio.shield(self.resting[run_id])

    def payer_of(self, record: RunRecord | RunReport, who: Identity) -> Identity:
        """Whose allowance a run counts against: that of who began it."""
        return self.tokens.named(record.labels.get(TOKEN, "")) or who

    def settle(self, run: Run, lease: Lease) -> None:
        """Release what remains of a run's lease when it rests."""

        async def settled() -> None:
            try:
                await run
            except ReplanError as error:
                # The error goes to whoever follows the run, if anyone does.
                kind = type(error).__name__
                logger.info("run broke off", extra={"run_id": run.run_id, "error": kind})
            finally:
                await self.allowances.settle(lease)

        task = asyncio.ensure_future(settled())
        self.settling.add(task)
        task.add_done_callback(self.settling.discard)

    async def settle_at_rest(self, lease: Lease) -> None:
        """Release what remains of a lease when its run rests, no matter who began it."""
        record = await self.storage.runs.get(lease.run_id)
        if record is None:
            await self.allowances.settle(lease)
        else:
            self.settle(self.run_of(record), lease)

    async def close(self) -> None:
        """Stop running work, so that it can be resumed."""
        await asyncio.gather(*(runtime.close() for runtime in self.runtimes.values()))
        for tasks in (self.turns, self.settling):
            if tasks:
                await asyncio.wait(tasks)


def _at_work(runtime: Runtime) -> int:
    return runtime.at_work


def id_for(run_id: str, who: Identity) -> str:
    """The id of a run with a given name: no other caller can take it, or see it."""
    return f"{who.tenant}.{run_id}" if who.tenant else run_id


def team_services(runtime: Runtime) -> Services:
    """The services of the team of a runtime."""
    return cast("Services", services_in(runtime.graph))


@asynccontextmanager
async def open_teams(  # noqa: PLR0913 - what its server leaves open
    teams: Mapping[str, AnyTeam],
    storage: Storage,
    tokens: Tokens,
    *,
    beat: float = 15.0,
    body_seconds: float = BODY_SECONDS,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    grace: float = 10.0,
    queue: Queueing | None = None,
    lacking: Mapping[str, str] = MappingProxyType({}),
) -> AsyncGenerator[ServedTeams]:
    """Open the runtimes of teams on a storage.

    Args:
        teams: The teams by their names.
        storage: Where their runs are kept.
        tokens: Who may call.
        beat: Seconds between two signs of life of a silent stream.
        body_seconds: Seconds in which the body of a request has to arrive.
        clock: Returns the time, with a time zone.
        grace: Seconds that running steps have to end when a run is stopped.
        queue: Where the runs wait for workers; none: they are done here.
        lacking: Why the runs of some teams can be looked at and answered, but not worked on, by the
            names of the teams.

    Raises:
        ConfigurationError: Money is bounded without a price, or a graph was built without
            storage.
    """
    async with AsyncExitStack() as stack:
        runtimes, watch = dict[str, Runtime](), Watch()
        for name, team in teams.items():
            check_kept(f"teams.{name}", team, storage)
            options: Any = {"storage": storage, "clock": clock, "new_id": lambda: uuid4().hex}
            options["on_event"] = partial(watch.on_event, name)
            opening = (queue and queue.opening(name, team, options)) or open_runtime(
                team, grace=grace, **options
            )
            runtime = runtimes[name] = await stack.enter_async_context(opening)
            if why := lacking.get(name):
                runtimes[name] = recording_beside(runtime, why)
            watch.counts_works(name, partial(_at_work, runtime))
        if tokens.bound_money:
            for runtime in runtimes.values():
                check_prices(Limits(max_cost=1), team_services(runtime))
        allowances = Allowances(storage, clock)
        streams = Counter[str]()
        watch.counts_streams(streams.total)
        await stack.enter_async_context(watch_loop_lag(watch.lagged))
        yield ServedTeams(
            storage=storage,
            runtimes=runtimes,
            tokens=tokens,
            allowances=allowances,
            clock=clock,
            beat=beat,
            body_seconds=body_seconds,
            grace=grace,
            queue=queue,
            lacking=lacking,
            watch=watch,
            streams=streams,
        )

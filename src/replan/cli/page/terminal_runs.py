"""What continues a run here that the served teams do not: its own order, or nothing but records.

A run that a terminal began says in its order which team works on it, as for `replan resume`. What
an order does is this user's own word only if this user has signed it, so others are left to the
terminal, which asks. What people say to other runs is put on record for whoever resumes them.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from replan.assembly.graphs import build_graph, viewer
from replan.assembly.runtime import open_runtime
from replan.base.errors import ReplanError, UsageError
from replan.cli.page.read_runs import RECORDED
from replan.cli.user_files.orders import order_of, read_team
from replan.models.providers.missing_models import StandIns
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph
from replan.runs.service import Runtime, recording_beside
from replan.runs.team_on_record import team_name
from replan.server.served_teams import ServedTeams
from replan.team.team_file import TeamFile

_ALL = ""  # in the place of a run: what looks at any


def graph_to_look(read: TeamFile, storage: Storage) -> tuple[Graph, str]:
    """The graph of a team on a storage, and what it lacks; with that, no run can be worked on."""
    models = StandIns(read.models)
    graph = build_graph(read.config, storage=storage, models=models)
    if not models.missing:
        return graph, ""
    why, start = " ".join(models.missing), "Then start replan ui again."
    lacks = f"The team '{read.identity.name}' cannot work here. {why} {start} {RECORDED}"
    return graph, lacks


@dataclass(frozen=True, kw_only=True)
class Terminals:
    """The runtimes of runs that no served team continues, by the run.

    Attributes:
        storage: Where the runs are kept.
        environment: What team files read their keys from.
        grace: Seconds that running steps have to end.
        is_over: Set once all of them are to close.
        runtimes: The runtimes, each once it is open.
        tasks: What holds them open: servers of tools are closed by the task that opened them.
        lacking: What the teams of runs lack that a terminal began.
    """

    storage: Storage
    environment: Mapping[str, str]
    grace: float
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    runtimes: dict[str, asyncio.Future[Runtime]] = field(
        default_factory=dict[str, asyncio.Future[Runtime]]
    )
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    lacking: dict[str, str] = field(default_factory=dict[str, str])

    def lacks(self, record: RunRecord) -> str:
        """What the team of a run lacks to work on it; empty if nothing."""
        if record.run_id not in self.lacking:
            try:
                read = read_team(order_of(record), self.environment)
                why = graph_to_look(read, self.storage)[1]
            except UsageError as error:
                why = f"The team of this run cannot be built: {error}"
            self.lacking[record.run_id] = why
        return self.lacking[record.run_id]

    async def teams_for(self, served: ServedTeams, record: RunRecord) -> ServedTeams:
        """The served teams with the one that works on a run whose options this user has signed.

        Raises:
            InputError: Its team cannot be built.
        """

        def graph() -> Graph:
            return graph_to_look(read_team(order_of(record), self.environment), self.storage)[0]

        runtime = await self._open(record.run_id, graph)
        return _with_team(served, record, runtime, self.lacks(record))

    async def recording_for(self, served: ServedTeams, record: RunRecord, why: str) -> ServedTeams:
        """The served teams with one that only records what people say to a run."""
        runtime = await self._open(_ALL, lambda: viewer(self.storage))
        return _with_team(served, record, runtime, why)

    async def _open(self, run_id: str, graph_of: Callable[[], Graph]) -> Runtime:
        if run_id not in self.runtimes:
            graph = graph_of()
            opened = self.runtimes[run_id] = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(self._hold_open(run_id, graph, opened))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return await self.runtimes[run_id]

    async def _hold_open(self, run_id: str, graph: Graph, opened: asyncio.Future[Runtime]) -> None:
        """Hold a runtime open until all close."""
        try:
            async with open_runtime(graph, storage=self.storage, grace=self.grace) as runtime:
                opened.set_result(runtime)
                await self.is_over.wait()
        except ReplanError as error:
            if opened.done():
                raise
            # The error goes to whoever asks; it is opened again for the next one.
            del self.runtimes[run_id]
            opened.set_exception(error)

    async def close(self) -> None:
        """Stop running work, so that it can be resumed."""
        self.is_over.set()
        await asyncio.gather(*self.tasks)


def _with_team(served: ServedTeams, record: RunRecord, runtime: Runtime, why: str) -> ServedTeams:
    name = team_name(record)
    runtime_of_run = recording_beside(runtime, why) if why else runtime
    return replace(served, runtimes={name: runtime_of_run}, lacking={name: why} if why else {})

"""Runs that a terminal began: continued by the team of their own order, as `replan resume` does.

Such a run says in its order which team works on it. What an order does is this user's own word only
if this user has signed it, so others are left to the terminal, which asks.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from replan.calling.compiled import Graph
from replan.errors import ReplanError
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.service import Runtime
from replan.runs.team_on_record import team_name
from replan.runtime import open_runtime
from replan.server.served_teams import ServedTeams
from replan.user_files.orders import order_of, prepare


@dataclass(frozen=True, kw_only=True)
class Terminals:
    """The runtimes of runs that a terminal began, by the run.

    Attributes:
        storage: Where the runs are kept.
        environment: What team files read their keys from.
        grace: Seconds that running steps have to end.
        is_over: Set once all of them are to close.
        runtimes: The runtimes, each once it is open.
        tasks: What holds them open: servers of tools are closed by the task that opened them.
    """

    storage: Storage
    environment: Mapping[str, str]
    grace: float
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    runtimes: dict[str, asyncio.Future[Runtime]] = field(
        default_factory=dict[str, asyncio.Future[Runtime]]
    )
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def teams_for(self, served: ServedTeams, record: RunRecord) -> ServedTeams:
        """The served teams with the one that works on a run whose options this user has signed.

        Raises:
            InputError: Its team cannot be built.
        """
        if record.run_id not in self.runtimes:
            order = order_of(record)
            graph = prepare(order, self.environment, storage=self.storage).graph
            opened = self.runtimes[record.run_id] = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(self._hold_open(record.run_id, graph, opened))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return replace(served, runtimes={team_name(record): await self.runtimes[record.run_id]})

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

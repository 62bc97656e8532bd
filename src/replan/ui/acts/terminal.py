"""Runs that a terminal began: gone on with by the team of their own order, as `replan resume` does.

Such a run says in its order which team works on it. What an order does is this user's own word only
if it is signed by him, so others are left to the terminal, which asks.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from replan.cli.kept.orders import order_from, prepared
from replan.cli.kept.signature import is_signed
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.service import Runtime
from replan.runtime import open_runtime
from replan.server.callers.identity import Allowance, Identity
from replan.server.house import House
from replan.server.problems import RefusedError


@dataclass(frozen=True, kw_only=True)
class Terminals:
    """The runtimes of runs that a terminal began, by the run.

    Attributes:
        storage: Where the runs are kept.
        environment: What team files read their keys from.
        grace: Seconds that running steps have to end.
        opened: What closes them.
        runtimes: The runtimes that are open.
    """

    storage: Storage
    environment: Mapping[str, str]
    grace: float
    opened: AsyncExitStack
    runtimes: dict[str, Runtime] = field(default_factory=dict[str, Runtime])

    async def house_for(self, house: House, record: RunRecord, who: Identity) -> House:
        """A house in which the team of a run works.

        Raises:
            RefusedError: It is not for whoever asks, or nobody knows whose word its order is.
            InputError: It was begun by another program.
        """
        told = (
            f"This run was begun by a terminal. Act on it there: replan resume {record.run_id[:8]}."
        )
        if who.tenant or who.limits != Allowance():
            raise RefusedError(403, "not_allowed", told)
        if not is_signed(record.order, record.run_id):
            whose = "What it does was kept by somebody else, or was changed since."
            raise RefusedError(409, "unsigned", f"{told} {whose}")
        if record.run_id not in self.runtimes:
            order = order_from(record.order, record.run_id[:8])
            graph = prepared(order, self.environment, storage=self.storage).graph
            opening = open_runtime(graph, storage=self.storage, grace=self.grace)
            self.runtimes[record.run_id] = await self.opened.enter_async_context(opening)
        return replace(house, runtimes={"": self.runtimes[record.run_id]})

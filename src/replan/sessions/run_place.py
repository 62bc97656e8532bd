"""Where the run of a turn works, and how it is asked and answered there."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
)
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from langgraph.types import StateSnapshot
from pydantic import JsonValue

from replan.calling import Call, Graph, Input
from replan.events.types import Event
from replan.langgraph_inside.tasks import without_tokens
from replan.ports.journal import Journal
from replan.runs.asked.asks import Ask, resumption
from replan.runs.looking import config_of
from replan.runs.running import followed
from replan.runs.travel.portable import PortableRun, adopted
from replan.state.limits import RunSettings

_BEHIND_ALL = "summarise"

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Followed:
    """How the run of a turn is followed and stopped."""

    hear: Callable[[Event], None]
    hear_again: Callable[[Event], None]  # receives what was reported before the worker was killed
    tokens: bool  # whether texts are reported piece by piece
    stop: asyncio.Event
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


class RunPlace(Protocol):
    """Where runs of one turn are worked on; each method works until the run rests."""

    @property
    def graph(self) -> Graph:
        """The graph of the team."""
        ...

    @property
    def journal(self) -> Journal:
        """What has the rows of the runs."""
        ...

    async def take_up(self, run: PortableRun) -> None:
        """Have a run here that a context carries."""
        ...

    async def begin(
        self, given: State, seen: State | None, settings: RunSettings | None, run_id: str
    ) -> State:
        """Begin a run, and return its state.

        Args:
            given: What it begins with.
            seen: What is in its state before.
            settings: Its settings.
            run_id: Its name.
        """
        ...

    async def go_on(self, run: PortableRun, settings: RunSettings | None) -> tuple[State, bool]:
        """Continue a run; and say whether it was answered by this turn before."""
        ...

    async def answer(
        self,
        run_id: str,
        asks: Sequence[Ask],
        answers: Mapping[str, JsonValue],
        settings: RunSettings | None,
    ) -> State:
        """Answer what a run asks, and continue it."""
        ...

    async def snapshot(self) -> StateSnapshot:
        """The state of the run that was worked on last."""
        ...


RunPlaces = Callable[[str, Followed], AbstractAsyncContextManager[RunPlace]]
"""Opens the place of one turn, by the name of the turn."""


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """The memory of one call: nothing of its run is stored."""

    graph: Graph
    journal: Journal
    thread_id: str  # a new one
    following: Followed

    async def take_up(self, run: PortableRun) -> None:
        await adopted(run, self.graph, self.journal, self.thread_id)

    async def begin(
        self, given: State, seen: State | None, settings: RunSettings | None, run_id: str
    ) -> State:
        if seen is not None:
            await put_before(seen, self.graph, self.thread_id)
        return await self._followed(given, settings, run_id)

    async def go_on(self, run: PortableRun, settings: RunSettings | None) -> tuple[State, bool]:
        return await self._followed(None, None if run.waits else settings, run.run_id), False

    async def answer(
        self,
        run_id: str,
        asks: Sequence[Ask],
        answers: Mapping[str, JsonValue],
        settings: RunSettings | None,
    ) -> State:
        bound = {ask.key: ask.bound(answers[ask.key]) for ask in asks if ask.key in answers}
        return await self._followed(resumption(asks, bound), settings, run_id)

    async def snapshot(self) -> StateSnapshot:
        return await cast("Any", self.graph).aget_state(config_of(self.thread_id))

    async def _followed(self, given: Input, settings: RunSettings | None, run_id: str) -> State:
        config, each = config_of(self.thread_id), self.following
        call = Call(given, settings, config if each.tokens else without_tokens(config), run_id)
        return dict(await followed(self.graph, call, each.hear, stop=each.stop))


def call_places(
    graph: Graph,
    journals: Callable[[], AbstractContextManager[Journal]],
    new_thread: Callable[[], str],
) -> RunPlaces:
    """Have the runs of turns in the memory of the process, each as long as its call.

    Args:
        graph: The graph, with a checkpointer in memory.
        journals: Gives the journal of one call.
        new_thread: Gives the id of a thread that no other call of the process has.
    """

    @asynccontextmanager
    async def opened(_: str, following: Followed) -> AsyncGenerator[RunPlace]:
        thread = new_thread()
        try:
            with journals() as journal:
                yield CallPlace(graph=graph, journal=journal, thread_id=thread, following=following)
        finally:
            await cast("Any", graph).checkpointer.adelete_thread(thread)

    return opened


async def put_before(seen: State, graph: Graph, thread_id: str) -> None:
    """Write the initial state of a new thread for a run."""
    await cast("Any", graph).aupdate_state(config_of(thread_id), seen, as_node=_BEHIND_ALL)

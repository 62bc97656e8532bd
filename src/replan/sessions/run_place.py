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

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from pydantic import JsonValue

from replan.calling.compiled import Graph
from replan.calling.new_or_continued import Call, Input, check_storable
from replan.calling.team_graph import TeamGraph
from replan.events.types import Event
from replan.langgraph_inside.tasks import without_tokens
from replan.ports.journal import Journal
from replan.runs.asked.asks import Ask, resumption, state_at_rest
from replan.runs.looking import config_of
from replan.runs.running import followed_at_once
from replan.runs.travel.portable import PortableRun, adopted
from replan.state.limits import RunSettings

_BEHIND_ALL = "summarise"
_UNHEARD = without_tokens({}).get("configurable", {})

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Followed:
    """How the run of a turn is followed and stopped."""

    hear: Callable[[Event], None]
    hear_again: Callable[[Event], None]  # receives what was reported before the worker was killed
    tokens: bool  # whether texts are reported piece by piece
    stop: asyncio.Event | None  # None: nobody stops it
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

    graph: TeamGraph
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
        # Nothing that was begun stands on the thread, so there is nothing to go on with.
        contents = [each.content for each in given["messages"]]
        check_storable({"run_id": run_id, "messages": contents})
        return await self._followed(given, settings, run_id, begins=True)

    async def go_on(self, run: PortableRun, settings: RunSettings | None) -> tuple[State, bool]:
        if run.waits and run.graphs is not None:
            return at_rest(await self.snapshot()), False
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

    async def _followed(
        self, given: Input, settings: RunSettings | None, run_id: str, *, begins: bool = False
    ) -> State:
        each = self.following
        heard = {} if each.tokens else _UNHEARD
        config: RunnableConfig = {
            "configurable": {**heard, "thread_id": self.thread_id},
            "metadata": {"run_id": run_id},
        }
        call = Call(given, settings, config, run_id)
        state = await followed_at_once(
            self.graph, call, each.hear, stop=each.stop, begins=begins, texts=each.tokens
        )
        return dict(state)


def call_places(
    graph: TeamGraph,
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


def at_rest(snapshot: StateSnapshot) -> State:
    """The state of a run whose graphs wait: without an answer they would only ask once more."""
    return {**state_at_rest(snapshot), "outcome": "waiting"}


async def put_before(seen: State, graph: Graph, thread_id: str) -> None:
    """Write the initial state of a new thread for a run."""
    await cast("Any", graph).aupdate_state(config_of(thread_id), seen, as_node=_BEHIND_ALL)

"""Where the run of a turn works: in the memory of a call, or in a storage, where it continues."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    suppress,
)
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt, StateSnapshot
from pydantic import JsonValue

from replan.base.errors import ReplanError
from replan.base.langgraph_inside.tasks import without_tokens
from replan.log.events.types import Event
from replan.log.rows import Request
from replan.log.run_log import RunLog
from replan.ports.ownership import unowned
from replan.ports.storage import Storage
from replan.runs.asked.asks import state_at_rest
from replan.runs.asked.requests import answer_rows
from replan.runs.calling.compiled import Graph
from replan.runs.calling.given_input import Input
from replan.runs.calling.new_or_continued import Call, check_storable
from replan.runs.calling.team_graph import TeamGraph
from replan.runs.reports import config_of
from replan.runs.result import RunResult
from replan.runs.run_at_work import Following
from replan.runs.running import followed
from replan.runs.service import Runtime
from replan.runs.stopping import put_an_end_to
from replan.runs.travel.portable import PortableRun, close_step_of, put_on_thread
from replan.sessions.session_runs import own_record
from replan.sessions.tool_calls import calls_on_record
from replan.specialists.steps.step_record import ANSWERS
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.person.waiting import resumption
from replan.state.questions import Question
from replan.state.rules import open_questions

_BEHIND_ALL = "summarise"
_CARRIED = "carried"  # the interrupt of questions that a context carries, and no graph has asked
_WITHOUT_TOKENS = without_tokens({}).get("configurable", {})

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Followed:
    """How the run of a turn is followed and stopped."""

    report: Callable[[Event], None]
    report_again: Callable[[Event], None]  # receives what was reported before the worker was killed
    tokens: bool  # whether texts are reported piece by piece
    stop: asyncio.Event | None  # None: nobody stops it
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(kw_only=True)
class CallPlace:
    """The memory of one call: nothing of its run is stored.

    Each method works until the run rests.
    """

    graph: TeamGraph
    log: RunLog  # has the rows of the runs
    thread_id: str  # a new one
    following: Followed
    is_kept: ClassVar[bool] = False
    _is_new: bool = True  # whether the thread is empty

    async def take_up(self, run: PortableRun) -> None:
        """Have a run here that a context carries."""
        self._is_new = False
        await put_on_thread(run, self.graph, self.log, self.thread_id)

    async def begin(
        self, run_input: State, seen: State | None, settings: RunSettings | None, run_id: str
    ) -> State:
        """Begin a run with its input, on a thread whose state is `seen`; return its state."""
        if seen is not None:
            self._is_new = False
            await write_first_state(seen, self.graph, self.thread_id)
        # Nothing that was begun stands on the thread, so there is nothing to go on with.
        contents = [message.content for message in run_input["messages"]]
        check_storable({"run_id": run_id, "messages": contents})
        return await self._followed(run_input, settings, run_id, begins=True)

    async def go_on(self, run: PortableRun, settings: RunSettings | None) -> tuple[State, bool]:
        """Continue a run; and say whether it was answered by this turn before."""
        if (questions := plain_questions(run)) and run.next == "user_input":
            # The graph would only ask once more.
            shown = Interrupt({"questions": [*questions], "problem": ""}, id=_CARRIED)
            return {**run.state, "outcome": "waiting", "__interrupt__": [shown]}, False
        return await self._followed(None, None if run.waits else settings, run.run_id), False

    async def answer(
        self,
        run_id: str,
        asks: Sequence[Question],
        answers: Mapping[str, JsonValue],
        settings: RunSettings | None,
    ) -> State:
        """Answer what a run asks, and continue it."""
        if asks[0].interrupt == _CARRIED:
            for key, answer in answers.items():
                await self.log.note(run_id, f"{ANSWERS}{key}", answer)
            return await self._followed(None, settings, run_id)
        return await self._followed(Command(resume=resumption(asks, answers)), settings, run_id)

    async def snapshot(self) -> StateSnapshot:
        """The state of the run that was worked on last."""
        return await cast("Any", self.graph).aget_state(config_of(self.thread_id))

    async def snapshot_at_rest(self) -> StateSnapshot:
        """The same of a run that waits or was stopped: the node that it continues with is next."""
        return await self.snapshot()

    async def _followed(
        self, run_input: Input, settings: RunSettings | None, run_id: str, *, begins: bool = False
    ) -> State:
        each = self.following
        streaming = {} if each.tokens else _WITHOUT_TOKENS
        config: RunnableConfig = {
            "configurable": {**streaming, "thread_id": self.thread_id},
            "metadata": {"run_id": run_id},
        }
        call = Call(run_input, settings, config, run_id, is_first=self._is_new)
        options: Any = {"stop": each.stop, "begins": begins, "models": each.tokens}
        return dict(await followed(self.graph, call, each.report, is_passing=True, **options))


def call_places(
    graph: TeamGraph,
    logs: Callable[[], AbstractContextManager[RunLog]],
    new_thread: Callable[[], str],  # the id of a thread that no other call of the process has
) -> Callable[[str, Followed], AbstractAsyncContextManager[CallPlace]]:
    """Have the runs of turns in the memory of the process, each as long as its call."""

    @asynccontextmanager
    async def opened(_: str, following: Followed) -> AsyncGenerator[CallPlace]:
        thread = new_thread()
        try:
            with logs() as log:
                yield CallPlace(graph=graph, log=log, thread_id=thread, following=following)
        finally:
            await cast("Any", graph).checkpointer.adelete_thread(thread)

    return opened


def plain_questions(run: PortableRun) -> tuple[Question, ...]:
    """The questions that a run waits for; none where a person decides, or a graph asks."""
    questions = open_questions(cast("EnhancedState", run.state))
    return () if run.asked or any(question.is_decision for question in questions) else questions


def at_rest(snapshot: StateSnapshot) -> State:
    """The state of a run whose graphs wait: without an answer they would only ask once more."""
    return {**state_at_rest(snapshot), "outcome": "waiting"}


async def write_first_state(seen: State, graph: Graph, thread_id: str) -> None:
    """Write the initial state of a new thread for a run."""
    await cast("Any", graph).aupdate_state(config_of(thread_id), seen, as_node=_BEHIND_ALL)


@dataclass(kw_only=True)
class StoragePlace:
    """The runs of one turn in a storage, with the methods of `CallPlace`."""

    runtime: Runtime
    turn: str  # the name of the turn
    following: Followed
    is_kept: ClassVar[bool] = True  # a run continues where its checkpoints are
    _thread_id: str = ""

    @property
    def graph(self) -> Graph:
        return self.runtime.graph

    @property
    def log(self) -> RunLog:
        return self.runtime.resources.log

    @property
    def storage(self) -> Storage:
        return cast("Storage", self.runtime.storage)

    @property
    def clock(self) -> Callable[[], datetime]:
        return self.runtime.resources.clock

    async def take_up(self, run: PortableRun) -> None:
        """Have a run here that a context carries; one that is here already may be further."""
        record = await own_record(self.storage, run.run_id, self.following.labels)
        self._thread_id = f"{run.run_id}/{self.turn}" if record is None else record.thread_id
        if record is None:
            labels = self.following.labels
            await self.runtime.adopt(run, thread_id=self._thread_id, labels=labels)

    async def begin(
        self, run_input: State, seen: State | None, settings: RunSettings | None, run_id: str
    ) -> State:
        record = await own_record(self.storage, run_id, self.following.labels)
        self._thread_id = record.thread_id if record else self._thread_id or run_id
        if record is not None:
            await self._report_again(run_id, None)
        elif seen is not None:
            await write_first_state(seen, self.graph, self._thread_id)
        return await self._worked(
            run_id,
            self.runtime.run(
                run_input,
                run_id=run_id,
                thread_id=self._thread_id,
                settings=settings,
                labels=self.following.labels,
                **self._followed,
            ),
        )

    async def go_on(self, run: PortableRun, settings: RunSettings | None) -> tuple[State, bool]:
        said = await self.log.request(run.run_id, self.turn)
        if said is not None:
            await self._report_again(run.run_id, said.at)
            return await self._resumed(run.run_id, None), True
        if run.asked and (found := await self.snapshot()).interrupts:
            return at_rest(found), False
        if not run.waits:
            # Nobody has to hear of it.
            await self.log.take_requests([await self._say(run.run_id, {})], self.clock())
        return await self._resumed(run.run_id, None if run.waits else settings), False

    async def answer(
        self,
        run_id: str,
        asks: Sequence[Question],
        answers: Mapping[str, JsonValue],
        settings: RunSettings | None,
    ) -> State:
        await self._say(run_id, answer_rows(asks, answers))
        return await self._resumed(run_id, settings)

    async def snapshot(self) -> StateSnapshot:
        return await cast("Any", self.graph).aget_state(config_of(self._thread_id))

    async def snapshot_at_rest(self) -> StateSnapshot:
        # Who had the run before may have been killed between its last task and the checkpoint.
        await close_step_of(self._thread_id, self.graph)
        return await self.snapshot()

    @property
    def _followed(self) -> Following:
        each = self.following
        return {"tokens": each.tokens, "on_event": each.report, "stop": each.stop}

    async def _say(self, run_id: str, rows: dict[str, JsonValue]) -> Request:
        """Put on record what this turn says to a run: it counts once, however often it is taken."""
        now = self.clock()
        request = Request(
            run_id=run_id,
            name=self.turn,
            kind="answer",
            # As exact as the times of events.
            at=now.replace(microsecond=now.microsecond // 1000 * 1000),
            by=self.following.labels.get("user", ""),
            answers=rows,
        )
        return await self.log.add_request(request)

    async def _report_again(self, run_id: str, since: datetime | None) -> None:
        for event in await calls_on_record(self.storage.log, run_id, since):
            self.following.report_again(event)

    async def _resumed(self, run_id: str, settings: RunSettings | None) -> State:
        doing = self.runtime.resume(run_id, settings=settings, **self._followed)
        return await self._worked(run_id, doing)

    async def _worked(self, run_id: str, doing: Coroutine[Any, Any, RunResult]) -> State:
        """Wait for a run; who is cancelled stops it, so that the turn can continue later."""
        # A run has its own owner, and the runtime serves others, too.
        task = asyncio.get_running_loop().create_task(doing, context=unowned())
        try:
            result = await asyncio.shield(task)
        except asyncio.CancelledError:
            with suppress(ReplanError):
                await self.runtime.stop(run_id, force=True)
                await self.runtime.wait(run_id)
            await put_an_end_to(task)
            raise
        return {**result.state, "outcome": result.outcome}


RunPlace = CallPlace | StoragePlace
"""Where runs of one turn are worked on."""

RunPlaces = Callable[[str, Followed], AbstractAsyncContextManager[RunPlace]]
"""Opens the place of one turn, by the name of the turn."""


def storage_places(runtime: Runtime) -> RunPlaces:
    """Have the runs of turns in the storage of a runtime."""

    @asynccontextmanager
    async def opened(turn: str, following: Followed) -> AsyncGenerator[RunPlace]:
        yield StoragePlace(runtime=runtime, turn=turn, following=following)

    return opened

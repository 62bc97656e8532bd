"""The board of a round: where a step waits for the results of its siblings.

LangGraph ends a super-step only when its slowest task ends. So a round sends every unfinished
step at once, and their order is kept here, in the memory of the one process that runs the round.
The log and the state hold the truth: a lost board is simply filled again.

`Send` gives a task its argument instead of the state. Plan, messages and results in every argument
would be stored once per step, so the board reads the channels of the super-step, as LangGraph's
tool node does. If a version of LangGraph does not allow this, the whole state is sent instead.
"""

import asyncio
import heapq
from collections.abc import (
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NotRequired, TypedDict, TypeVar, cast
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from pydantic import JsonValue

from replan.base.langgraph_inside.tasks import can_read_state, read_state as read_channels
from replan.log.rows import LedgerEntry
from replan.log.run_log import RunLog
from replan.log.whole_results import whole_results
from replan.plan.model import PlanStep, TaskPlan
from replan.ports.run_context import here
from replan.specialists.steps.on_record import RecordedResults
from replan.state.conversation.conversation import MemoryPolicy, Seen, resolved, visible_messages
from replan.state.enhanced import EnhancedState, rounds_of
from replan.state.limits import RunSettings
from replan.state.options import MemoryOptions
from replan.state.results import (
    Assignment,
    ExecutionStatus,
    SpecialistResult,
    known_results,
    newest_results,
)

T = TypeVar("T")

_READ = (
    "messages",
    "memory_summary",
    "run_id",
    "settings",
    "max_rounds",
    "current_round",
    "current_plan",
    "plan_author",
    "plan_history",
    "current_thinking_result",
    "current_specialist_results",
    "carried_results",
    "generations",
    "questions",
    "dispatched",
)

QUESTIONS = "question/"  # the prefix of notes that hold questions; the question's key follows

SECONDS_TO_END = 5.0
"""How long cancelled work may take to end; then it is left alone."""

Outcome = SpecialistResult | Literal["skipped"] | None
"""The outcome of a seat: a result, a condition that does not hold, or nothing in this round."""


class Sent(TypedDict):
    """The argument of a task: ids, and the state only if it cannot be read in another way.

    Attributes:
        run_id: The run.
        step_id: The step.
        specialist: Who does it.
        state: The state of the round.
        raised: What the step has raised before, which is to reach LangGraph.
    """

    run_id: str
    step_id: int
    specialist: str
    state: NotRequired[EnhancedState]
    raised: NotRequired[GraphBubbleUp]


def argument(assignment: Assignment, state: EnhancedState, config: RunnableConfig) -> Sent:
    sent = Sent(
        run_id=state.get("run_id", ""), step_id=assignment.step_id, specialist=assignment.specialist
    )
    if not can_read_state(config):
        sent["state"] = state
    return sent


def read_state(sent: Sent, config: RunnableConfig) -> EnhancedState:
    if "state" in sent:
        return sent["state"]
    return cast(EnhancedState, read_channels(config, _READ))


class Slots:
    """Places for steps that run at the same time; a more urgent step gets the next free one."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    def take(self, priority: int) -> "_Place":
        """Hold a place; wait for one by priority, then by arrival."""
        return _Place(self, priority)

    async def acquire(self, priority: int) -> None:
        if self._free:
            self._free -= 1
            return
        self._arrivals += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (-priority, self._arrivals, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


@dataclass(slots=True)
class _Place:
    """A place as a context manager, held by each running step; cheaper than a generator."""

    slots: Slots
    priority: int

    async def __aenter__(self) -> None:
        await self.slots.acquire(self.priority)

    async def __aexit__(self, *_: object) -> None:
        self.slots.release()


@dataclass(slots=True)
class _Seat:
    """A seat as a context manager, held by each step of a round; cheaper than a generator."""

    board: "Board"
    key: str

    async def __aenter__(self) -> None:
        self.board.sit_down(self.key)

    async def __aexit__(self, *_: object) -> None:
        await self.board.stand_up(self.key)


class Board:
    """The seats of one round: one for each step and specialist that was sent."""

    def __init__(
        self,
        state: EnhancedState,
        max_concurrency: int | None = None,
        early: "Board | None" = None,
    ) -> None:
        self.read(state)
        # What was read of the log.
        self.recorded = RecordedResults({})  # the results of the run
        self.ledger: Sequence[LedgerEntry] = ()  # its attempts
        self.noted: Mapping[str, JsonValue] = {}  # its questions, by the keys of their notes
        self._is_loaded = False
        # The conversation as specialists see it; most of them see the same.
        self._seen: dict[MemoryPolicy, Seen] = {}
        self._seen_as_host: Seen | None = None
        if early is None:
            at_once = self.settings.limits.max_parallel_steps
            # Bounds the steps that run at the same time.
            self.slots = Slots(min(at_once, max_concurrency or at_once))
            # The numbers of the run's next questions.
            self.questions = count(len(state.get("questions", {})) + 1)
        else:
            # Steps that began before the plan was complete are still at work.
            self.slots, self.questions = early.slots, early.questions
        # The outcomes of steps of the round, computed once for all that wait for them.
        self.ended: dict[int, tuple[PlanStep, list[SpecialistResult]]] = {}
        self._seats: dict[str, asyncio.Future[Outcome]] = {}
        self._seated = 0
        self._loading = asyncio.Lock()
        self._fresh: list[SpecialistResult] = []
        self.begun = set[int]()  # the steps that somebody has begun in the round
        self.follows = frozenset[str]()  # the names of the edits that its plan has
        self.is_closed = False  # whether nothing more begins
        self._beside: asyncio.Task[EnhancedState] | None = None
        self.edited: Board | None = None  # the board of steps of an edited plan, beside the round

    def read(self, state: EnhancedState) -> None:
        """Take the state of the round; a resumed round may have other settings."""
        self.state = state  # the state at the start of the round, read once for all its tasks
        self._seen_as_host = None
        self.settings = state.get("settings") or RunSettings()
        self._plan = state.get("current_plan") or TaskPlan()
        self._steps = {step.id: step for step in self._plan.steps}
        self.round = state.get("current_round", 1)
        self.sent: dict[int, list[Assignment]] = {}  # whom each step was sent to
        for assignment in state.get("dispatched", []):
            self.sent.setdefault(assignment.step_id, []).append(assignment)

    def add(self, plan: TaskPlan, assignments: Sequence[Assignment]) -> None:
        """Take steps of a plan that grows."""
        dispatched = [*self.state.get("dispatched", []), *assignments]
        self.read({**self.state, "current_plan": plan, "dispatched": dispatched})

    def seen(self, memory: MemoryPolicy) -> Seen:
        """The visible part of the conversation, computed once for all who see the same."""
        if memory not in self._seen:
            self._seen[memory] = visible_messages(self.state, memory)
        return self._seen[memory]

    def seen_as_host(self, memory: MemoryOptions) -> Seen:
        """What the host sees of it, with the team's options; most specialists see the same."""
        if self._seen_as_host is None:
            self._seen_as_host = self.seen(resolved(memory, self.settings.memory))
        return self._seen_as_host

    def step(self, step_id: int) -> PlanStep:
        """Find a step of the round's plan."""
        return self._steps.get(step_id) or self._plan.step(step_id)

    @property
    def is_taken(self) -> bool:
        return self._seated > 0

    def seat(self, key: str) -> "_Seat":
        """Hold a seat; leaving it without an outcome publishes None, so that no waiter hangs."""
        return _Seat(self, key)

    def sit_down(self, key: str) -> None:
        self._seats[key] = asyncio.get_running_loop().create_future()
        self._seated += 1

    async def stand_up(self, key: str) -> None:
        self.publish(key, None)
        self._seated -= 1
        if not self._seated:
            # A task that comes back to the same round, after a question, must read again.
            self.read_again()
            self.ended.clear()
            beside, self._beside, self.edited = self._beside, None, None
            if beside is not None:
                await cancelled([beside])

    def beside(self, work: Callable[[], Coroutine[Any, Any, EnhancedState]]) -> None:
        """Do something beside the round, from its first task until its last one ends."""
        if self._beside is None:
            self._beside = asyncio.ensure_future(work())

    async def end_beside(self) -> EnhancedState:
        """The update by the steps beside the round; only its last task waits for their end."""
        if self.edited is None or self._beside is None or self._seated > 1:
            return {}
        self.edited.is_closed = True
        return await self._beside

    def read_again(self) -> None:
        """Read the log again when it is needed next."""
        self._is_loaded = False

    @property
    def state_so_far(self) -> EnhancedState:
        """The state of the round, with the results that it has by now."""
        results = newest_results(self.state)
        fresh = {result.key: result for result in self._fresh}
        return {**self.state, "current_specialist_results": {**results, **fresh}}

    def publish(self, key: str, outcome: Outcome) -> None:
        """Publish the outcome of a seat; the first one counts."""
        if self._settle_seat(key, outcome) and isinstance(outcome, SpecialistResult):
            self._fresh.append(outcome)

    async def load(self, log: RunLog) -> None:
        """Read what the log has of the run, once a round; the results of the state become whole."""
        # Most callers come after it was read, and need no lock.
        if self._is_loaded:
            return
        async with self._loading:
            if self._is_loaded:
                return
            run_id = self.state.get("run_id", "")
            results = await log.results(run_id)
            self.ledger = await log.ledger(run_id)
            self.noted = await log.notes(run_id, QUESTIONS)
            if known_results(self.state):
                self.state = await whole_results(self.state, log)
            self.recorded, self._is_loaded = RecordedResults.of(self.state, results), True

    async def outcome(self, key: str) -> Outcome:
        """Wait for a seat that is taken in this round; None if it is not."""
        seat = self._seats.get(key)
        # Shielded: a waiter that is cancelled must not take the result from the others.
        return None if seat is None else await asyncio.shield(seat)

    def publish_earlier(self, key: str, result: SpecialistResult) -> None:
        """Publish a result of an earlier round: others may use it, but its wishes are past."""
        self._settle_seat(key, result)

    def refused(self, key: str) -> Outcome:
        """The failure of a step that nobody can do: it is in the state since the round began."""
        result = newest_results(self.state).get(key)
        return None if result is None or result.round != self.round else result

    async def is_halted(self) -> bool:
        """Whether nothing more may start in this round: a request to revise, a halting failure."""
        # Nothing is awaited after it, so an edit that comes later finds the step begun.
        steering = here().steering
        # In its last round, a run follows nobody any longer.
        if steering is not None and self.round < rounds_of(self.state):
            await steering.checked.wait()
            if self.is_closed or steering.asked.keys() - self.follows:
                return True
        # Steps that nobody does have failed before anything of the round began.
        stated = newest_results(self.state)
        known = (
            result
            for result in (*self.recorded.known.values(), *stated.values())
            if result.round == self.round
        )
        halts = self.settings.on_failure == "halt"
        return any(
            result.replan_needed or (halts and result.status is not ExecutionStatus.SUCCESS)
            for result in (*self._fresh, *known)
        )

    def _settle_seat(self, key: str, outcome: Outcome) -> bool:
        """Settle a seat; return whether this was its first outcome."""
        is_first = not self._seats[key].done()
        if is_first:
            self._seats[key].set_result(outcome)
        return is_first


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait for their end; one that does not end is left alone."""
    at_work = [task for task in tasks if not task.done()]
    for task in at_work:
        task.cancel()
    if at_work:
        await asyncio.wait(at_work, timeout=SECONDS_TO_END)


class Boards:
    """The boards of the rounds that run in this process, one by run and checkpoint."""

    def __init__(self) -> None:
        # The tasks of a round hold its board; when the last one ends, it is gone.
        self._boards: WeakValueDictionary[tuple[str, str], Board] = WeakValueDictionary()

    def join(
        self,
        run_id: str,
        checkpoint_id: str,
        read_state: Callable[[], EnhancedState],
        max_concurrency: int | None = None,
        early: Board | None = None,
    ) -> Board:
        """Return the round's board; the first task of the round creates it and reads the state.

        Args:
            run_id: The run.
            checkpoint_id: The checkpoint at which the round begins.
            read_state: Reads the state.
            max_concurrency: How many steps the caller lets run at the same time.
            early: The board of steps of the round that began before it.
        """
        board = self._boards.get((run_id, checkpoint_id))
        if board is None:
            board = Board(read_state(), max_concurrency, early)
            self._boards[run_id, checkpoint_id] = board
        elif not board.is_taken:
            board.read(read_state())
        return board

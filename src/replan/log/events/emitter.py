"""The one place that sends out events: to the stream first, then to the callbacks.

Hooks of callbacks are other people's code: they receive every event in order and can stop nothing.
Each callback has its own queue in each run: its hooks are called one after another, in the order
of the events, with a time limit for each. A run waits for them between its steps, never in one.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakValueDictionary

from replan.base.langgraph_inside.tasks import is_unread
from replan.base.secrets.masking import KNOWN, with_masked_traceback
from replan.log.events.callbacks import ANY_EVENT, HOOKS, Hook, hears_tokens, hooks_of
from replan.log.events.listeners import Announcement, Listener, Trace
from replan.log.events.log import log
from replan.log.events.masked_events import without_known_secrets
from replan.log.events.types import (
    AnswerToken,
    BaseEvent,
    Event,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistToken,
    TaskCompleted,
    WarningReported,
)
from replan.log.events.warnings import warnings_in
from replan.state.limits import HOOK_SECONDS

logger = logging.getLogger(__name__)
logger.addFilter(with_masked_traceback)

HookCaller = Callable[[Hook, BaseEvent], Awaitable[object]]

_TOKENS = (AnswerToken, SpecialistToken)
# The most frequent events: they contain nothing to warn about or to log.
_OFTEN = (*_TOKENS, SpecialistCompleted, SpecialistInvoked)


@dataclass(frozen=True)
class Emitter:
    """Reports the events of one node."""

    write: Callable[[Any], None]  # LangGraph's stream writer of the node, or who hears instead
    hooks: "RunHooks"  # the hooks of the callbacks, for the run
    run_id: str
    round: int
    keeps_prompts: bool = True  # whether prompts and replies of models are reported
    # What the events so far contain that a person may not expect.
    warnings: list[str] = field(default_factory=list[str])
    trace: Trace | None = None  # of the call of the graph, or none

    @property
    def is_heard(self) -> bool:
        """Whether something listens, so that events are worth building."""
        return self.trace is not None or self._is_received

    @property
    def reports_texts(self) -> bool:
        """Whether something receives the prompts and replies of models."""
        if not self.keeps_prompts:
            return False
        is_traced = self.trace is not None and self.trace.hears_texts
        return is_traced or self._receives_models

    @property
    def hears_models(self) -> bool:
        """Whether something listens to the calls of models."""
        return self.trace is not None or self._receives_models

    @property
    def _is_taken(self) -> bool:
        """Whether anything takes events, be it of one kind."""
        return self.trace is not None or self.hooks.take_events or not is_unread(self.write)

    @property
    def _is_received(self) -> bool:
        return self.hooks.hears_events or not is_unread(self.write)

    @property
    def _receives_models(self) -> bool:
        if isinstance(self.write, Listener):
            return self.write.hears_models or self.hooks.hears_events
        return self._is_received

    async def warn(self, *texts: str) -> None:
        """Report something that a person may not expect."""
        for text in texts:
            await self.emit(WarningReported, text=text)

    async def emit(self, kind: type[BaseEvent], /, **fields: Any) -> None:
        """Report an event, and wait for its hooks."""
        self.stream(kind, **fields)
        await self.hooks.wait(is_last=kind is TaskCompleted)

    def stream(self, kind: type[BaseEvent], /, **fields: Any) -> None:
        """Report an event at once: the stream first, then the callbacks."""
        self._publish(self._event(kind, fields))

    def announce(self, kind: type[BaseEvent], /, **fields: Any) -> Announcement | None:
        """An event that is reported once the row of the log is safe that it belongs to.

        None for a frequent one that nobody takes.
        """
        if not self._is_taken and kind in _OFTEN:
            return None
        return Announcement(cast("Event", self._event(kind, fields)), self._publish)

    def _event(self, kind: type[BaseEvent], fields: Mapping[str, Any]) -> BaseEvent:
        masked = without_known_secrets(kind, fields) if KNOWN.forms else fields
        return kind(run_id=self.run_id, round=self.round, **masked)

    def _publish(self, event: BaseEvent) -> None:
        if not isinstance(event, _OFTEN):
            self.warnings.extend(warnings_in(event))
            log(event)
        self.pass_on(event)

    def pass_on(self, event: BaseEvent) -> None:
        """Report an event as it is, such as one of this run that came from another process."""
        if self.trace is not None:
            self.trace.take(event)
        self.write(event)
        self.hooks.queue(event)


async def call_here(hook: Hook, event: BaseEvent) -> None:
    await hook(event)


@dataclass(frozen=True, eq=False)
class Hooks:
    """The hooks of a team's callbacks."""

    callbacks: Sequence[object] = ()
    seconds: float = HOOK_SECONDS  # how long one hook may take before it is left alone
    call: HookCaller = (
        call_here  # calls a hook, one that is not async where it does not hold the loop
    )
    _runs: "WeakValueDictionary[tuple[int, str], RunHooks]" = field(
        default_factory=WeakValueDictionary[tuple[int, str], "RunHooks"], init=False
    )
    # A loop holds its tasks weakly.
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]], init=False)

    def of(self, run_id: str) -> "RunHooks":
        """The hooks as the running loop calls them for one run."""
        if not self.callbacks:
            return RunHooks(self, run_id)
        # A loop whose id could be given to another one is held by its hooks.
        key = (id(asyncio.get_running_loop()), run_id)
        found = self._runs.get(key)
        if found is None:
            self._runs[key] = found = RunHooks(self, run_id)
        return found

    def begin(
        self, work: Coroutine[Any, Any, None], context: contextvars.Context
    ) -> asyncio.Task[None]:
        """Begin a piece of work of the running loop."""
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class RunHooks:
    """The hooks of one run."""

    def __init__(self, hooks: Hooks, run_id: str) -> None:
        self._seconds = hooks.seconds
        self._queues = [_HookQueue(callback, hooks, run_id, self) for callback in hooks.callbacks]
        # Gives the events that are reported with the next one, in their order.
        self._opening: Callable[[BaseEvent], Iterable[BaseEvent]] | None = None

    @property
    def hears_tokens(self) -> bool:
        return any(queue.hears_tokens for queue in self._queues)

    @property
    def hears_events(self) -> bool:
        return any(queue.hears_events for queue in self._queues)

    @property
    def take_events(self) -> bool:
        """Whether there is a callback, with hooks for whatever kinds of events."""
        return bool(self._queues)

    def queue(self, event: BaseEvent) -> None:
        """Have the hooks of an event called, in their time; from whatever thread."""
        opening, self._opening = self._opening, None
        for each in (event,) if opening is None else opening(event):
            for queue in self._queues:
                queue.put(each)

    def open_with(self, opening: Callable[[BaseEvent], Iterable[BaseEvent]]) -> None:
        """Report the opening of a piece of work with its first event, and in order."""
        self._opening = opening

    async def wait(self, *, is_last: bool = False) -> None:
        """Wait until the hooks of all events so far were called, or their time is over."""
        # A callback with a hook that was left alone, and is at work still, is waited for only after
        # the last event of a run; one with many slow hooks, for twice the time of one.
        behind = [
            queue for queue in self._queues if queue.is_at_work and (is_last or not queue.is_late)
        ]
        if behind:
            marks = [queue.mark(is_last=is_last) for queue in behind]
            _, missed = await asyncio.wait(marks, timeout=2 * self._seconds)
            if missed and is_last:
                logger.error("a run does not wait for its callbacks", extra={"late": len(missed)})


class _HookQueue:
    """What one callback is still to receive of one run."""

    def __init__(self, callback: object, hooks: Hooks, run_id: str, owner: RunHooks) -> None:
        self._own: Mapping[str, Hook] = hooks_of(callback)
        self.hears_events = ANY_EVENT in self._own
        self.hears_tokens = hears_tokens(callback)
        self._hooks, self._run_id = hooks, run_id
        # Other code of the same run finds this queue by the run while its hooks are at work.
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_HookCall | asyncio.Future[None]] = deque()
        self._marks: list[asyncio.Future[None]] = []
        self._worker: asyncio.Task[None] | None = None
        self._left_alone: set[asyncio.Task[None]] = set()

    @property
    def is_at_work(self) -> bool:
        """Whether something is still to be delivered."""
        return self._worker is not None and not self._worker.done()

    @property
    def is_late(self) -> bool:
        """Whether a hook that was left alone is still at work."""
        return bool(self._left_alone)

    def put(self, event: BaseEvent) -> None:
        """Add the calls of the hooks for an event."""
        if isinstance(event, _TOKENS) and not self.hears_tokens:
            return
        context = contextvars.copy_context()
        for name in (HOOKS.get(type(event), ""), ANY_EVENT):
            if name in self._own:
                self._waiting.append(_HookCall(name, self._own[name], event, context))
                self._wake()

    def mark(self, *, is_last: bool) -> asyncio.Future[None]:
        """A future that is done once the hooks queued so far were called, or given up."""
        mark: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(mark)
        if not is_last:
            self._marks.append(mark)
        self._wake()
        return mark

    def _wake(self) -> None:
        """Begin to call hooks in the loop of the run, from whatever thread."""
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._ensure_worker()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ensure_worker)

    def _ensure_worker(self) -> None:
        if not self.is_at_work:
            self._worker = self._hooks.begin(self._drain(), contextvars.Context())

    async def _drain(self) -> None:
        while self._waiting:
            call = self._waiting.popleft()
            if isinstance(call, _HookCall):
                await self._call_in_time(call)
            else:
                _settle([call])
        self._marks.clear()

    async def _call_in_time(self, call: "_HookCall") -> None:
        task = self._hooks.begin(self._call(call), call.context)
        _, late = await asyncio.wait({task}, timeout=self._hooks.seconds)
        if late:
            self._left_alone.add(task)
            task.add_done_callback(self._left_alone.discard)
            about = {"seconds": self._hooks.seconds}
            logger.error("callback left alone", extra=self._about(call) | about)
            _settle(self._marks)

    async def _call(self, call: "_HookCall") -> None:
        task = asyncio.current_task()
        try:
            await self._hooks.call(call.hook, call.event)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # A cancellation without a request is the hook's own, and an error like any other.
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            logger.exception("callback failed", extra=self._about(call))

    def _about(self, call: "_HookCall") -> dict[str, object]:
        return {"hook": call.name, "run_id": self._run_id}


def _settle(marks: Iterable[asyncio.Future[None]]) -> None:
    for mark in marks:
        if not mark.done():
            mark.set_result(None)


@dataclass(frozen=True)
class _HookCall:
    """One call of a hook, in the context in which its event was reported."""

    name: str
    hook: Hook
    event: BaseEvent
    context: contextvars.Context

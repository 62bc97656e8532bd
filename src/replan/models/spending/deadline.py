"""The time of work: its clocks, and its bounds, both its own and what the run has left."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from replan.base.errors import LimitReachedError, StepElsewhereError
from replan.log.run_log import RunLog
from replan.models.spending.scopes import Scope

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE = 1.0  # seconds that work has to end by itself after its time is over, before it is abandoned

_TICK = 1.0

LONGEST_BLOCK = 1.0  # seconds that a step may keep the loop before it is named

TIMES = "seconds/"  # the prefix of the keys of recorded seconds
PRECISION = 0.01  # the fraction of the time by which the record may be behind
LEAST_PRECISION = 1.0  # seconds by which the record may always be behind


@dataclass(eq=False, slots=True)
class Stopwatch:
    """A clock that runs while there is work, in any process; parallel work counts once."""

    _before: float = 0.0
    _since: float = 0.0
    _at_work: int = 0
    _recorded: float = 0.0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def seconds(self) -> float:
        return self._before + (time.monotonic() - self._since if self._at_work else 0.0)

    @property
    def is_running(self) -> bool:
        return self._at_work > 0

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last record for another one."""
        return self.seconds - self._recorded >= max(LEAST_PRECISION, PRECISION * self._recorded)

    def running(self) -> "_Running":
        """A block in which it runs."""
        return _Running([self])

    def begin(self) -> None:
        with self._guard:
            if not self._at_work:
                self._since = time.monotonic()
            self._at_work += 1

    def end(self) -> None:
        with self._guard:
            if self._at_work == 1:
                self._before = self.seconds
            self._at_work -= 1

    def continue_from(self, recorded: float) -> None:
        """Go on from the seconds that an earlier process recorded."""
        self._before = self._recorded = max(self._before, recorded)

    def to_record(self) -> float:
        """The seconds now, which the caller records."""
        self._recorded = self.seconds
        return self._recorded


@dataclass(slots=True)
class _Running:
    """A block in which clocks run; cheaper than a generator."""

    clocks: Sequence[Stopwatch]

    def __enter__(self) -> None:
        for clock in self.clocks:
            clock.begin()

    def __exit__(self, *_: object) -> None:
        for clock in self.clocks:
            clock.end()


@dataclass(eq=False)
class ScopeTimers:
    run_id: str
    log: RunLog
    _clocks: dict[str, Stopwatch] = field(default_factory=dict[str, Stopwatch])

    @property
    def are_running(self) -> bool:
        return any(clock.is_running for clock in self._clocks.values())

    async def recall(self) -> None:
        for key, seconds in (await self.log.notes(self.run_id, TIMES)).items():
            if isinstance(seconds, int | float):
                self._of(key.removeprefix(TIMES).rpartition("/")[0]).continue_from(seconds)

    def at_work(self, scopes: Sequence[Scope]) -> _Running:
        """A block in which the clocks of scopes run."""
        return _Running([self._of(scope.name) for scope in scopes])

    def left(self, scopes: Sequence[Scope]) -> tuple[float, Scope]:
        """The seconds that are left, and the scope that has the fewest."""
        left = ((one.most("seconds") - self._of(one.name).seconds, one) for one in scopes)
        return min(left, key=lambda pair: pair[0])

    def check(self, scopes: Sequence[Scope]) -> None:
        """Refuse work in scopes of which one has no time left."""
        left, scope = self.left(scopes)
        if left <= 0:
            raise scope.reached("seconds")

    async def note(self, scopes: Sequence[Scope]) -> None:
        """Record the seconds at work, if they are bounded and some have passed."""
        for scope in scopes:
            clock = self._of(scope.name)
            if scope.budget.max_seconds is not None and clock.is_due:
                seconds = clock.to_record()
                await self.log.note(self.run_id, f"{TIMES}{scope.name}/{seconds:.3f}", seconds)

    def _of(self, scope: str) -> Stopwatch:
        clock = self._clocks.get(scope)
        if clock is None:
            clock = self._clocks[scope] = Stopwatch()
        return clock


class HasDeadline(Protocol):
    """The owner of bounded work: a meter."""

    @property
    def scopes(self) -> Sequence[Scope]: ...

    @property
    def clocks(self) -> ScopeTimers: ...

    @property
    def waiting(self) -> Stopwatch: ...

    patience: float  # seconds that a call of it waits for room at most while no call ends
    idle: float  # seconds that may pass without a sign of work
    signed_at: float  # when its work gave the newest one

    def end_silent_calls(self) -> bool:
        """End calls that can fail by themselves since nothing came; whether there was one."""
        ...


class StepTimeoutError(TimeoutError):
    """Work was stopped when its time was over; its progress is unknown."""


def was_cut_off(error: BaseException) -> bool:
    """Whether an error means that work was stopped because its time was over."""
    if isinstance(error, StepElsewhereError):
        return error.is_cut_off
    return isinstance(error, StepTimeoutError) or isinstance(error.__cause__, StepTimeoutError)


async def in_time(
    work: Callable[[], Awaitable[T]],
    timed: HasDeadline,
    seconds: float = math.inf,
    idle: float | None = None,
) -> T:
    """Do work within its time, and not much longer if it does not stop.

    Args:
        work: The work.
        timed: Whose time it takes.
        seconds: How long it may take.
        idle: How long it may take without a sign of work.
    """
    # The time in which a call waits for others to make room is not the work's own. It counts for
    # the run, and the call is refused if none of the others ends within the work's timeout.
    timed.patience = min(timed.patience, seconds)
    timed.idle, timed.signed_at = idle or math.inf, time.monotonic()
    scopes, clocks = timed.scopes, timed.clocks
    is_bounded = any(scope.budget.max_seconds is not None for scope in scopes)
    if is_bounded:
        clocks.check(scopes)
    elif seconds == timed.idle == math.inf:
        # Nothing can end it before it ends by itself, so it needs no task to be stopped in.
        with clocks.at_work(scopes):
            return await _unless_it_cancels_itself(work())
    started, end = time.monotonic(), _End(seconds, TimeoutError)
    task = asyncio.ensure_future(work())
    try:
        with clocks.at_work(scopes):
            while not task.done():
                end = _next_end(timed, seconds, started, is_bounded=is_bounded)
                if end.left <= 0 and not _is_put_off(end, timed):
                    break
                await _wait_for(task, _longest_wait(end.left, is_bounded=is_bounded))
                if is_bounded:
                    await clocks.note(scopes)
    finally:
        # What is around it may rest before it does such work again.
        timed.idle = math.inf
        is_late = not task.done()
        await _left(task)
    if is_late:
        raise end.error()
    if task.cancelled():
        raise RuntimeError("it cancelled itself")
    return task.result()


async def _left(task: asyncio.Future[Any]) -> None:
    """End a task that nobody waits for any longer."""
    if task.done():
        _take_note(task)
        return
    task.add_done_callback(_take_note)
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE)
    if not task.done():
        # It is abandoned, and its result is ignored.
        logger.warning("work that does not stop was left alone", extra={"seconds": GRACE})


def _take_note(ended: asyncio.Future[Any]) -> None:
    """Ask for the error of work: who waits for it may be cancelled as it fails, and never does."""
    if not ended.cancelled():
        ended.exception()


async def _wait_for(task: asyncio.Future[Any], seconds: float | None) -> None:
    """Wait until a task is done, but no longer than this; it goes on, whatever happens here."""
    # As `asyncio.wait` does for any number of tasks, with a tenth of its calls.
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    timer = None if seconds is None else loop.call_later(seconds, wake)
    task.add_done_callback(wake)
    try:
        await woken
    finally:
        task.remove_done_callback(wake)
        if timer is not None:
            timer.cancel()


async def _unless_it_cancels_itself(work: Awaitable[T]) -> T:
    """Do work; a cancellation that nobody asked for is an error."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it cancelled itself") from error


class _End(NamedTuple):
    left: float
    error: Callable[[], Exception]
    is_silence: bool = False


def _next_end(timed: HasDeadline, seconds: float, started: float, *, is_bounded: bool) -> _End:
    """The bound that ends work first, if it does not end by itself."""
    seconds_left = started + seconds + timed.waiting.seconds - time.monotonic()
    if timed.idle == math.inf and not is_bounded:
        return _End(seconds_left, partial(_no_answer_within, seconds))
    left, scope = timed.clocks.left(timed.scopes)
    idle = timed.idle
    ends = (
        _End(seconds_left, partial(_no_answer_within, seconds)),
        _End(_idle_left(timed), partial(no_sign_within, idle), is_silence=True),
        _End(left, lambda: _reached_at_work(scope)),
    )
    return min(ends, key=lambda end: end.left)


def _is_put_off(end: _End, timed: HasDeadline) -> bool:
    """Whether work that fell silent goes on, since only a call in it ends."""
    return end.is_silence and timed.end_silent_calls()


def _no_answer_within(seconds: float) -> StepTimeoutError:
    return StepTimeoutError(f"no answer within {seconds:g} s")


def no_sign_within(seconds: float) -> StepTimeoutError:
    return StepTimeoutError(f"no sign of work for {seconds:g} s")


def _idle_left(timed: HasDeadline) -> float:
    # A call that waits for room has a reason to be silent.
    silent = 0.0 if timed.waiting.is_running else time.monotonic() - timed.signed_at
    return timed.idle - silent


def _reached_at_work(scope: Scope) -> LimitReachedError:
    error = scope.reached("seconds")
    error.__cause__ = StepTimeoutError("it was at work")
    return error


def _longest_wait(left: float, *, is_bounded: bool) -> float | None:
    """How long to wait at a time: bounded time is recorded while it passes."""
    left = min(left, _TICK) if is_bounded else left
    return None if left == math.inf else left


def watched(
    work: Coroutine[Any, Any, T], about: Callable[[], Mapping[str, object]]
) -> Awaitable[T]:
    """Await work, and log each time that it blocks the loop for over a second.

    Work that it starts as other tasks is not watched.

    Args:
        work: The work.
        about: Says whose work it is, for the log.
    """
    return _Watched(work, about)


@dataclass(frozen=True)
class _Watched(Generic[T]):
    work: Coroutine[Any, Any, T]
    about: Callable[[], Mapping[str, object]]

    def __await__(self) -> Generator[Any, Any, T]:
        proceed: Callable[[Any], Any] = self.work.send
        sent: Any = None
        while True:
            began = time.monotonic()
            try:
                awaited = proceed(sent)
            except StopIteration as end:
                return end.value
            finally:
                seconds = time.monotonic() - began
                if seconds > LONGEST_BLOCK:
                    self._warn(seconds)
            try:
                sent, proceed = (yield awaited), self.work.send
            except BaseException as error:  # noqa: BLE001 - it is raised where the work waits
                sent, proceed = error, self.work.throw

    def _warn(self, seconds: float) -> None:
        about = {**self.about(), "seconds": round(seconds, 1)}
        logger.warning(
            "%s blocked the event loop for %s s; let it await, or run in a thread",
            f"step {about.get('step_id', '')}, @{about.get('specialist', '')},",
            about["seconds"],
            extra=about,
        )

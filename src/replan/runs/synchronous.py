"""Runs for synchronous code: the loop of a `Runtime` is in a thread of its own."""

from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from replan.base.own_loop import Portal
from replan.log.events.types import Event
from replan.runs.calling.given_input import Input
from replan.runs.continued.recovery import Recovery
from replan.runs.result import RunResult, T_co
from replan.runs.run import Run
from replan.runs.run_at_work import Following
from replan.runs.service import ResumeOptions, Runtime, StartOptions

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SyncRun(Generic[T_co]):
    """A run, for synchronous code.

    Attributes:
        run_id: The run.
    """

    def __init__(self, run: Run[T_co], portal: Portal) -> None:
        self.run_id = run.run_id
        self._run = run
        self._portal = portal

    def result(self) -> RunResult[T_co]:
        """Wait until the run is over, waits for a person or was stopped, and return its result."""
        return self._portal.call(self._run.result)


def _called(
    method: Callable[Concatenate[Runtime[Any], P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["SyncRuntime[Any]", P], R]:
    """A method of a `Runtime`, done in its portal."""

    @wraps(method)
    def call(self: "SyncRuntime[Any]", *args: P.args, **options: P.kwargs) -> R:
        return self.portal.call(lambda: method(self.runtime, *args, **options))

    return call


def _begun(
    method: Callable[Concatenate[Runtime[Any], P], Coroutine[Any, Any, Run[Any]]],
) -> Callable[Concatenate["SyncRuntime[T]", P], SyncRun[T]]:
    """A method of a `Runtime` that returns a run."""

    @wraps(method)
    def begin(self: "SyncRuntime[T]", *args: P.args, **options: P.kwargs) -> SyncRun[T]:
        run = self.portal.call(lambda: method(self.runtime, *args, **options))
        return SyncRun(run, self.portal)

    return begin


class SyncRuntime(Generic[T_co]):
    """A `Runtime` for synchronous code. Its event loop runs in its own thread.

    Its methods take what those of `Runtime` take; what returns a `Run` there returns a `SyncRun`.

    Attributes:
        runtime: The runtime that does the work.
        portal: The thread that the work is done in.
    """

    def __init__(self, runtime: Runtime[T_co], portal: Portal) -> None:
        """Prepare; `with open_runtime(...)` does it.

        Args:
            runtime: What does the work.
            portal: The thread that it is done in.
        """
        self.runtime = runtime
        self.portal = portal

    def run(
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        **options: Unpack[StartOptions],
    ) -> RunResult[T_co]:
        """Run a request until it is over, waits for a person or is stopped; see `Runtime.start`."""
        return self.start(input, **options).result()

    def resume(self, run_id: str, **options: Unpack[ResumeOptions]) -> RunResult[T_co]:
        """Resume a run that was stopped, killed or ended by a limit; see `Runtime.resume`."""
        return self.portal.call(lambda: self.runtime.resume(run_id, **options))

    def resume_interrupted(
        self, *, at_once: int = 4, limit: int = 1000, by: str = "", **following: Unpack[Following]
    ) -> Recovery[T_co]:
        """Resume the runs that a crash or a shutdown left; see `Runtime.resume_interrupted`."""
        return self.portal.call(
            lambda: self.runtime.resume_interrupted(
                at_once=at_once, limit=limit, by=by, **following
            )
        )

    start = _begun(Runtime.start)
    """See `Runtime.start`."""
    answer = _begun(Runtime.answer)
    """See `Runtime.answer`."""
    retry = _begun(Runtime.retry)
    """See `Runtime.retry`."""
    skip = _begun(Runtime.skip)
    """See `Runtime.skip`."""
    edit_plan = _called(Runtime.edit_plan)
    """See `Runtime.edit_plan`."""
    send_message = _called(Runtime.send_message)
    """See `Runtime.send_message`."""
    stop = _called(Runtime.stop)
    """See `Runtime.stop`."""
    get = _called(Runtime.get)
    """See `Runtime.get`."""
    runs = _called(Runtime.runs)
    """See `Runtime.runs`."""
    text = _called(Runtime.text)
    """See `Runtime.text`."""
    facts = _called(Runtime.facts)
    """See `Runtime.facts`."""
    forget_fact = _called(Runtime.forget_fact)
    """See `Runtime.forget_fact`."""

    def events(self, run_id: str, *, after: int = 0, tokens: bool = False) -> Iterator[Event]:
        """Yield the past and the coming events of a run; see `Runtime.events`."""
        events = self.runtime.events(run_id, after=after, tokens=tokens)
        try:
            while True:
                try:
                    yield self.portal.call(lambda: anext(events))
                except StopAsyncIteration:
                    return
        finally:
            # Who left the runtime before has ended them.
            if self.portal.is_open:
                self.portal.call(events.aclose)

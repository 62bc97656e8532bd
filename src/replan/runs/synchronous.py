"""Runs for synchronous code: the loop of a `Runtime` is in a thread of its own."""

from collections.abc import Collection, Iterator, Mapping
from typing import Generic, Unpack

from replan.base.own_loop import Portal
from replan.events.types import Event
from replan.log.report import RunReport
from replan.memory.facts import Fact
from replan.runs.calling.given_input import Input
from replan.runs.continued.corrections import CorrectionOptions
from replan.runs.continued.recovery import Recovery
from replan.runs.result import RunResult, T_co
from replan.runs.run import Run
from replan.runs.run_at_work import Following
from replan.runs.service import Runtime, StartOptions
from replan.runs.statuses import RunStatus
from replan.state.limits import RunSettings


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


class SyncRuntime(Generic[T_co]):
    """A `Runtime` for synchronous code. Its event loop runs in its own thread."""

    def __init__(self, runtime: Runtime[T_co], portal: Portal) -> None:
        """Prepare; `with open_runtime(...)` does it.

        Args:
            runtime: What does the work.
            portal: The thread that it is done in.
        """
        self._runtime = runtime
        self._portal = portal

    def run(
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        **options: Unpack[StartOptions],
    ) -> RunResult[T_co]:
        """Run a request until it is over, waits for a person or is stopped; see `Runtime.start`."""
        return self.start(input, **options).result()

    def start(
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        **options: Unpack[StartOptions],
    ) -> SyncRun[T_co]:
        """Begin a run, and return it immediately; see `Runtime.start`."""
        run = self._portal.call(lambda: self._runtime.start(input, **options))
        return SyncRun(run, self._portal)

    def resume(
        self,
        run_id: str,
        *,
        settings: RunSettings | None = None,
        by: str = "",
        **following: Unpack[Following],
    ) -> RunResult[T_co]:
        """Resume a run that was stopped, killed or ended by a limit; see `Runtime.resume`."""
        return self._portal.call(
            lambda: self._runtime.resume(run_id, settings=settings, by=by, **following)
        )

    def resume_interrupted(
        self, *, at_once: int = 4, limit: int = 1000, by: str = "", **following: Unpack[Following]
    ) -> Recovery[T_co]:
        """Resume the runs that a crash or a shutdown left; see `Runtime.resume_interrupted`."""
        return self._portal.call(
            lambda: self._runtime.resume_interrupted(
                at_once=at_once, limit=limit, by=by, **following
            )
        )

    def answer(
        self, run_id: str, answers: object, *, by: str = "", **following: Unpack[Following]
    ) -> SyncRun[T_co]:
        """Answer the questions of a run; see `Runtime.answer`."""
        run = self._portal.call(lambda: self._runtime.answer(run_id, answers, by=by, **following))
        return SyncRun(run, self._portal)

    def retry(
        self,
        run: str,
        step: int,
        /,
        *,
        by: str = "",
        step_timeout: float | None = None,
        **options: Unpack[CorrectionOptions],
    ) -> SyncRun[T_co]:
        """Repeat a step and its dependents; see `Runtime.retry`."""
        begun = self._portal.call(
            lambda: self._runtime.retry(run, step, by=by, step_timeout=step_timeout, **options)
        )
        return SyncRun(begun, self._portal)

    def skip(
        self, run: str, step: int, /, *, by: str = "", **options: Unpack[CorrectionOptions]
    ) -> SyncRun[T_co]:
        """Skip a step, and continue; see `Runtime.skip`."""
        begun = self._portal.call(lambda: self._runtime.skip(run, step, by=by, **options))
        return SyncRun(begun, self._portal)

    def edit_plan(self, run_id: str, plan: str, *, version: int, by: str = "") -> tuple[int, ...]:
        """Edit the plan of a run that is not over; see `Runtime.edit_plan`."""
        return self._portal.call(
            lambda: self._runtime.edit_plan(run_id, plan, version=version, by=by)
        )

    def send_message(
        self, run_id: str, text: str, *, by: str = "", name: str = ""
    ) -> tuple[int, ...]:
        """Tell the host of a run that is not over something; see `Runtime.send_message`."""
        return self._portal.call(lambda: self._runtime.send_message(run_id, text, by=by, name=name))

    def stop(self, run_id: str, *, by: str = "", force: bool = False) -> None:
        """Stop a run gracefully; see `Runtime.stop`."""
        self._portal.call(lambda: self._runtime.stop(run_id, by=by, force=force))

    def events(self, run_id: str, *, after: int = 0, tokens: bool = False) -> Iterator[Event]:
        """Yield the past and the coming events of a run; see `Runtime.events`."""
        events = self._runtime.events(run_id, after=after, tokens=tokens)
        try:
            while True:
                try:
                    yield self._portal.call(lambda: anext(events))
                except StopAsyncIteration:
                    return
        finally:
            # Who left the runtime before has ended them.
            if self._portal.is_open:
                self._portal.call(events.aclose)

    def get(self, run_id: str) -> RunReport:
        """Return the report of a run; see `Runtime.get`."""
        return self._portal.call(lambda: self._runtime.get(run_id))

    def text(self, run_id: str, ref: str) -> str | None:
        """Return a long text of an event; see `Runtime.text`."""
        return self._portal.call(lambda: self._runtime.text(run_id, ref))

    def facts(self, user: str, *, tenant: str = "", query: str = "") -> list[Fact]:
        """Return what the team remembers about a user; see `Runtime.facts`."""
        return self._portal.call(lambda: self._runtime.facts(user, tenant=tenant, query=query))

    def forget_fact(self, user: str, fact_id: str, *, tenant: str = "") -> bool:
        """Forget a fact of a user; see `Runtime.forget_fact`."""
        return self._portal.call(lambda: self._runtime.forget_fact(user, fact_id, tenant=tenant))

    def runs(
        self,
        limit: int = 20,
        *,
        labels: Mapping[str, str] | None = None,
        status: RunStatus | Collection[RunStatus] | None = None,
    ) -> list[RunReport]:
        """Return the latest runs, the newest first; see `Runtime.runs`."""
        return self._portal.call(lambda: self._runtime.runs(limit, labels=labels, status=status))

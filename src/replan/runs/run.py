"""The handle of a run: wait for it, follow it, answer, stop and inspect it."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any, Generic, Protocol

from replan.log.events.types import Event
from replan.log.report import RunReport
from replan.runs.result import RunResult, T_co


class RunsById(Protocol):
    """Runs by their ids: what a handle uses of a `Runtime`."""

    async def wait(self, run_id: str) -> RunResult: ...

    async def handed_out(self, run_id: str) -> None: ...

    def events(
        self, run_id: str, *, after: int = 0, tokens: bool = False
    ) -> AsyncGenerator[Event]: ...

    async def stop(self, run_id: str, *, by: str = "") -> None: ...

    async def answer(self, run_id: str, answers: object, *, by: str = "") -> "Run": ...

    async def edit_plan(
        self, run_id: str, plan: str, *, version: int, by: str = ""
    ) -> tuple[int, ...]: ...

    async def send_message(
        self, run_id: str, text: str, *, by: str = "", name: str = ""
    ) -> tuple[int, ...]: ...

    async def get(self, run_id: str) -> RunReport: ...


class Run(Generic[T_co]):
    """A run, in this process or another one. Awaiting it waits until no process works on it.

    Attributes:
        run_id: The run.
    """

    def __init__(
        self, runtime: RunsById, run_id: str, task: "asyncio.Task[RunResult[T_co]] | None" = None
    ) -> None:
        self.run_id = run_id
        self._runtime = runtime
        self._task = task

    def __await__(self) -> Generator[Any, None, RunResult[T_co]]:
        return self.result().__await__()

    async def result(self) -> RunResult[T_co]:
        """Wait until the run is over, waits for a person or was stopped, and return its result."""
        if self._task is None:
            return await self._runtime.wait(self.run_id)
        try:
            # Whoever waits for it and is cancelled does not take it from the others.
            return await asyncio.shield(self._task)
        finally:
            if self._task.done():
                await self._runtime.handed_out(self.run_id)

    def events(self, *, after: int = 0, tokens: bool = False) -> AsyncGenerator[Event]:
        """Yield the events of the run; see `Runtime.events`."""
        return self._runtime.events(self.run_id, after=after, tokens=tokens)

    async def stop(self, *, by: str = "") -> None:
        """Stop the run; see `Runtime.stop`."""
        await self._runtime.stop(self.run_id, by=by)

    async def answer(self, answers: object, *, by: str = "") -> "Run[T_co]":
        """Answer questions of the run; see `Runtime.answer`."""
        return await self._runtime.answer(self.run_id, answers, by=by)

    async def edit_plan(self, plan: str, *, version: int, by: str = "") -> tuple[int, ...]:
        """Edit the plan of the run; see `Runtime.edit_plan`."""
        return await self._runtime.edit_plan(self.run_id, plan, version=version, by=by)

    async def send_message(self, text: str, *, by: str = "", name: str = "") -> tuple[int, ...]:
        """Tell the host of the run something; see `Runtime.send_message`."""
        return await self._runtime.send_message(self.run_id, text, by=by, name=name)

    async def report(self) -> RunReport:
        """Return what is known of the run; see `Runtime.get`."""
        return await self._runtime.get(self.run_id)

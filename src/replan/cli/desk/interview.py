"""Ask a person several things one by one, while the run continues."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from pydantic import JsonValue

from replan.cli.desk.dialogs import Desk, Quit, answer
from replan.state.questions import Question

Give = Callable[[Question, JsonValue], Awaitable[None]]
"""Passes an answer to the run."""


class Interview:
    """The questions of a run, in the order of their arrival."""

    def __init__(
        self,
        desk: Desk,
        *,
        give: Give,
        talking: Callable[[Question | None], None],
        evidence: Callable[[Question], Awaitable[Sequence[str]]],
    ) -> None:
        """Prepare; no prompt is shown before the first question."""
        self.is_talking = False  # whether the person is asked something now
        self._desk = desk
        self._give = give
        self._talking = talking
        self._evidence = evidence  # the lines of what a question is decided on
        self._asked: set[str] = set()
        self._left_open: set[str] = set()
        self._queue: asyncio.Queue[Question] = asyncio.Queue()
        self._answers_given = 0
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._talk())

    def add(self, ask: Question) -> None:
        """Ask this, too, unless it is asked already."""
        if ask.key not in self._asked:
            self._asked.add(ask.key)
            self._queue.put_nowait(ask)

    async def wait_for_answer(self, asks: Sequence[Question]) -> bool:
        """Ask these, and wait until one answer more was given; False if all are left open."""
        given_before, keys = self._answers_given, {ask.key for ask in asks}
        for ask in asks:
            self.add(ask)
        async with self._news:
            await self._news.wait_for(
                lambda: (
                    self._answers_given > given_before
                    or keys <= self._left_open
                    or self._task.done()
                )
            )
        if self._task.done():
            self._task.result()
        return self._answers_given > given_before

    async def close(self) -> None:
        """Ask nothing more."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _talk(self) -> None:
        try:
            while True:
                await self._ask(await self._queue.get())
        finally:
            async with self._news:
                self._news.notify_all()

    async def _ask(self, ask: Question) -> None:
        self._set_talking(ask)
        self._desk.keyboard.clear()
        try:
            await self._give(ask, await answer(ask, self._desk, await self._evidence(ask)))
        except Quit:
            self._left_open.add(ask.key)
        else:
            # The same key may ask again, as a plan does whose edition had mistakes.
            self._asked.discard(ask.key)
            self._answers_given += 1
        finally:
            self._set_talking(None)
        async with self._news:
            self._news.notify_all()

    def _set_talking(self, ask: Question | None) -> None:
        self.is_talking = ask is not None
        self._talking(ask)

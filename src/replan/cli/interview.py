"""Ask a person several things one by one, while the run goes on."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from pydantic import JsonValue

from replan.cli.asking import Desk, Quit, answer
from replan.runs.asks import Ask

Note = Callable[[Ask, JsonValue], Awaitable[None]]
"""Keeps an answer."""


class Interview:
    """The questions of a run, in the order in which they came.

    Attributes:
        is_talking: Whether the person is asked something now.
    """

    def __init__(self, desk: Desk, *, note: Note, talking: Callable[[bool], None]) -> None:
        """Prepare; nobody is asked before the first question comes.

        Args:
            desk: Where the person sits.
            note: Keeps each answer at once.
            talking: Called with whether the person is asked something from now on.
        """
        self.is_talking = False
        self._desk = desk
        self._note = note
        self._talking = talking
        self._asked: set[str] = set()
        self._left_open: set[str] = set()
        self._queue: asyncio.Queue[Ask] = asyncio.Queue()
        self._answers: dict[str, JsonValue] = {}
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._talk())

    def add(self, ask: Ask) -> None:
        """Ask this, too, unless it was asked already."""
        if ask.key not in self._asked:
            self._asked.add(ask.key)
            self._queue.put_nowait(ask)

    async def answers_to(self, asks: Sequence[Ask]) -> Mapping[str, JsonValue]:
        """Give what is answered of these, as soon as one is; nothing if all are left open."""
        for ask in asks:
            self.add(ask)
        keys = {ask.key for ask in asks}
        async with self._news:
            await self._news.wait_for(
                lambda: keys & self._answers.keys() or keys <= self._left_open or self._task.done()
            )
        if self._task.done():
            self._task.result()
        given = {key: self._answers.pop(key) for key in keys & self._answers.keys()}
        # The same key may ask again, as a plan does whose edition had mistakes.
        self._asked -= given.keys()
        return given

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

    async def _ask(self, ask: Ask) -> None:
        self._turn(is_talking=True)
        self._desk.keyboard.clear()
        try:
            given = await answer(ask, self._desk)
            await self._note(ask, given)
        except Quit:
            self._left_open.add(ask.key)
        else:
            self._answers[ask.key] = given
        finally:
            self._turn(is_talking=False)
        async with self._news:
            self._news.notify_all()

    def _turn(self, *, is_talking: bool) -> None:
        self.is_talking = is_talking
        self._talking(is_talking)

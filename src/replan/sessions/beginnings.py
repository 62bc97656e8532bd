"""Turns begin one after another, so that many of them do not block the event loop."""

import asyncio
from asyncio import AbstractEventLoop
from weakref import WeakKeyDictionary


class Beginnings:
    """Lets turns begin in the order of their arrival, one in each cycle of the event loop."""

    def __init__(self) -> None:
        self._places = WeakKeyDictionary[AbstractEventLoop, asyncio.Lock]()

    async def turn(self) -> None:
        """Wait until a turn may begin."""
        # Each time a loop comes round it does all that can be done: of a thousand turns that began
        # together, a thousand first parts, before anything else.
        place = self._places.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with place:
            await asyncio.sleep(0)

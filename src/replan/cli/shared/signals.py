"""What Ctrl-C and SIGTERM do: no new step starts, running ones get a moment, then all stops."""

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from replan.cli.shared.process import INTERRUPTED, TERMINATED

_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Stop:
    """A request to stop, and how urgent it is."""

    def __init__(self, asked: asyncio.Event, *, finish: Callable[[], object]) -> None:
        """Prepare; `handling_signals` passes signals on to it."""
        self.asked = asked  # set at the first signal: nothing new starts from now on
        self.code = 0  # the exit code of the first signal; 0 before there is one
        self.is_editing = False  # whether an editor has the terminal: then Ctrl-C is meant for it
        self._finish = finish  # called at the second signal: the person does not want to wait

    def take(self, number: int) -> None:
        """Take a signal, in the loop."""
        if self.is_editing and number == signal.SIGINT:
            return
        if self.asked.is_set():
            self._finish()
            return
        self.code = _CODES[signal.Signals(number)]
        self.asked.set()


@contextmanager
def handling_signals(stop: Stop) -> Generator[None]:
    """Return the process's signals to `stop` while this lasts; must be entered in the loop."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread, and only it may say what they do
        return
    loop, urgent = asyncio.get_running_loop(), False

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal urgent
        if urgent and not stop.is_editing:
            # The third one is for a loop that foreign code keeps from hearing the second.
            signal.signal(number, signal.SIG_DFL)
        urgent = stop.asked.is_set()
        loop.call_soon_threadsafe(stop.take, number)

    before = {number: signal.signal(number, on_signal) for number in _CODES}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

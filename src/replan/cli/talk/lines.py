"""The lines of a person: edited with a history, typed plainly, or read from a pipe."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TextIO, TypeVar

from replan.base.user_code import in_thread
from replan.cli.desk.keyboard import Keyboard
from replan.cli.shared.signals import Stop, handling_signals
from replan.runs.stopping import put_an_end_to

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 - nothing went wrong
    """The person pressed Ctrl-C, or the process is to end."""

    def __init__(self, code: int) -> None:
        """Keep the exit code of the signal."""
        super().__init__()
        self.code = code


class Lines(Protocol):
    """The source of a person's lines."""

    async def line(self, prompt: str, *, default: str = "", is_message: bool = False) -> str | None:
        """Return the next line; None at the end of the input.

        Args:
            prompt: What is before it.
            default: What is there to be edited, where lines can be edited.
            is_message: Whether it belongs into the history of messages.

        Raises:
            Interrupted: A signal came instead.
        """
        ...

    def clear(self) -> None:
        """Drop what was typed before the next question was visible."""
        ...


class TypedLines:
    """Lines of a terminal, as the terminal itself lets people edit them."""

    def __init__(self, keyboard: TextIO, output: TextIO) -> None:
        """Prepare; nothing is read before it is asked for."""
        self._keyboard = Keyboard(keyboard.fileno())
        self._output = output

    async def line(self, prompt: str, *, default: str = "", is_message: bool = False) -> str | None:
        """Return the next line."""
        line: str | None = None
        try:
            line = await until_interrupted(self._read_line(prompt))
        finally:
            if line is None:
                # The next output does not belong after the prompt.
                self._write("\n")
        return line

    def clear(self) -> None:
        """Drop what was typed."""
        self._keyboard.clear()

    async def _read_line(self, prompt: str) -> str | None:
        self._write(prompt)
        return await self._keyboard.line()

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()


class PipedLines:
    """Lines of a pipe or a file; what is asked is in the output, without a prompt."""

    def __init__(self, source: TextIO) -> None:
        """Prepare."""
        self._source = source

    async def line(self, prompt: str, *, default: str = "", is_message: bool = False) -> str | None:
        """Return the next line."""
        line = await until_interrupted(in_thread(self._source.readline))
        return line.rstrip("\r\n") if line else None

    def clear(self) -> None:
        """Nothing: a program writes when it likes."""


async def until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Do work until it is done or a signal comes."""
    stop = Stop(asyncio.Event(), finish=lambda: None)
    with handling_signals(stop):
        task = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(stop.asked.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Interrupted(stop.code)
            return task.result()
        finally:
            await put_an_end_to(task, asked)

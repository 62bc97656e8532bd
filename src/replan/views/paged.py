"""Write text that may be longer than the window: on a terminal through the pager."""

import os
import shlex
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

from rich.console import Console

from replan.errors import InputError

Write = Callable[[str], object]


@contextmanager
def paged(console: Console, output: TextIO, *, plain: bool) -> Generator[Write]:
    """Return what writes, at once where the text is longer than the window; `PAGER=` means none."""
    is_whole = plain or not console.is_terminal or console.is_dumb_terminal
    command = [] if is_whole else _command(os.environ.get("PAGER", "less"))
    if not command:
        yield output.write
        return
    pages = _Pages(command, output, console.height)
    try:
        yield pages.write
    finally:
        pages.close()


def _command(pager: str) -> list[str]:
    try:
        return shlex.split(pager)
    except ValueError as error:
        problem = f"PAGER={pager} is not a command: {error}."
        raise InputError(f"{problem} Set it to one such as less.") from error


class _Pages:
    """Holds a text back until it is longer than the window, then hands it to the pager."""

    def __init__(self, command: list[str], output: TextIO, height: int) -> None:
        self._command, self._output, self._height = command, output, height
        self._held = ""
        self._pager: subprocess.Popen[str] | None = None

    def write(self, text: str) -> None:
        self._held += text
        if self._pager is None and self._held.count("\n") >= self._height:
            # Without -R `less` shows colours as signs.
            environment = {"LESS": "-R", **os.environ}
            with suppress(OSError):  # there is no such program
                self._pager = subprocess.Popen(  # noqa: S603 - the person's own
                    self._command, stdin=subprocess.PIPE, text=True, env=environment
                )
        if self._pager is not None and self._pager.stdin is not None:
            with suppress(OSError):  # the reader has seen enough
                self._pager.stdin.write(self._held)
                self._pager.stdin.flush()
            self._held = ""

    def close(self) -> None:
        if self._pager is None:
            self._output.write(self._held)
            return
        with suppress(OSError):
            if self._pager.stdin is not None:
                self._pager.stdin.close()
        # Ctrl-C is for the pager, which does not end by it.
        while self._pager.poll() is None:
            with suppress(KeyboardInterrupt):
                self._pager.wait()

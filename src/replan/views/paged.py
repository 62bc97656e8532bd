"""Write text that may be longer than the window: on a terminal through the pager."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import StringIO
from typing import TextIO

from rich.console import Console

from replan.base.errors import InputError

Write = Callable[[str], object]


@contextmanager
def paged(console: Console, output: TextIO, *, plain: bool) -> Generator[Write]:
    """Return what writes, at once where the text is longer than the window; `PAGER=` means none."""
    is_whole = plain or not console.is_terminal or console.is_dumb_terminal
    pager = [] if is_whole else _command(os.environ.get("PAGER", "less"))
    if not pager or shutil.which(pager[0]) is None:
        yield output.write
        return
    held = StringIO()
    try:
        yield held.write
    finally:
        text = held.getvalue()
        if text.count("\n") < console.height:
            output.write(text)
        else:
            _page(text, pager)


def _command(pager: str) -> list[str]:
    try:
        return shlex.split(pager)
    except ValueError as error:
        problem = f"PAGER={pager} is not a command: {error}."
        raise InputError(f"{problem} Set it to one such as less.") from error


def _page(text: str, pager: list[str]) -> None:
    # Ctrl-C is for the pager, which does not end by it.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # Without -R `less` shows colours as signs.
        environment = {"LESS": "-R", **os.environ}
        subprocess.run(pager, input=text, text=True, check=False, env=environment)  # noqa: S603 - the person's own
    finally:
        signal.signal(signal.SIGINT, before)

"""Write what may be longer than the window: on a terminal through the pager of the shell."""

import os
import pydoc
from typing import TextIO

from rich.console import Console


def write_paged(text: str, console: Console, output: TextIO) -> None:
    """Write a text; an empty `PAGER` means none."""
    is_longer = text.count("\n") >= console.height
    if is_longer and console.is_terminal and os.environ.get("PAGER") != "":
        # Without it `less` shows colours as signs.
        os.environ.setdefault("LESS", "-R")
        pydoc.pager(text)
    else:
        output.write(text)

"""Lines that a person edits, with the history of earlier messages, through prompt_toolkit."""

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead

from replan.cli.desk.keyboard import Keyboard
from replan.cli.shared.process import INTERRUPTED
from replan.cli.talk.lines import Interrupted, until_interrupted


class EditedLines:
    """Lines of a terminal, edited with all keys."""

    def __init__(self, history: Path | None) -> None:
        """Prepare; `history` is the file of earlier messages, None keeps none."""
        kept: History = InMemoryHistory() if history is None else _history_in(history)
        self._messages: PromptSession[str] = PromptSession(history=kept)
        self._answers: PromptSession[str] = PromptSession(history=InMemoryHistory())

    async def line(self, prompt: str, *, default: str = "", is_message: bool = False) -> str | None:
        """Return the next line."""
        session = self._messages if is_message else self._answers
        return await until_interrupted(_read_line(session, prompt, default))

    def clear(self) -> None:
        """Drop what was typed."""
        for session in (self._messages, self._answers):
            clear_typeahead(session.input)
        Keyboard(self._messages.input.fileno()).clear()


async def _read_line(session: PromptSession[str], prompt: str, default: str) -> str | None:
    try:
        return await session.prompt_async(prompt, default=default)
    except KeyboardInterrupt as error:
        # It must not leave the task, or it ends the loop.
        raise Interrupted(INTERRUPTED) from error
    except EOFError:
        return None


def _history_in(path: Path) -> History:
    """The messages of earlier conversations, in a file that this user alone reads."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        # Nobody is kept from talking by a folder that cannot be written.
        return InMemoryHistory()
    return FileHistory(path)

"""One harness for programs that are killed: a subject, a store, and the moments of its lives.

A **subject** is a program, and what must hold when it has ended. The program is an async function
of a `Life`: it begins its work or goes on with it, says what it does, and gives what it came to. A
**store** is where it keeps its work: a SQLite file or a PostgreSQL database. A **moment** is where
the process kills itself, as a power cut would: after so many writes, or at a word that it meets.
One life after the other is killed, and the last one ends. Programs stand in `killed_programs.py`
and `storage_kills.py`, the table of subjects, stores and moments in `e2e/test_kills.py`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import warm

Moment = int | str
_MOST = 60


@dataclass(frozen=True)
class Life:
    """One life of a program, in a process of its own.

    Attributes:
        folder: Where its files are, from life to life.
        where: The place of its store.
        moment: When it kills itself; 0 is never.
        given: What it is told besides.
        written: What it wrote.
    """

    folder: Path
    where: str
    moment: Moment = 0
    given: Any = None
    written: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        """What tells it from other programs in the same store."""
        return self.folder.name

    def say(self, *words: object) -> None:
        """Write down what it does; a kill takes nothing of it back."""
        with (self.folder / "said").open("a") as lines:
            lines.write(f"{' '.join(map(str, words))}\n")

    def meets(self, *moments: Moment) -> None:
        """Die, if one of these is the moment."""
        if self.moment and self.moment in moments:
            os.kill(os.getpid(), signal.SIGKILL)

    def does(self, *words: object) -> None:
        """Have an effect outside, and meet it by its first word."""
        self.say(*words)
        self.meets(str(words[0]))

    def wrote(self, row: str = "") -> None:
        """Count a write, and meet its number and what is said of its row."""
        if row:
            self.say(row)
        self.written.append(row)
        self.meets(len(self.written), row)

    def watch(self, owner: Any, *names: str, row_of: Callable[..., str] = lambda *_: "") -> None:
        """Count what these methods write."""
        for name in names:
            setattr(owner, name, self._watched(getattr(owner, name), row_of))

    def _watched(self, write: Callable[..., Any], row_of: Callable[..., str]) -> Callable[..., Any]:
        async def written(*given: Any, **named: Any) -> Any:
            value = await write(*given, **named)
            self.wrote(row_of(write.__name__, given))
            return value

        return written

    @property
    def said(self) -> list[str]:
        """What was said in all lives."""
        path = self.folder / "said"
        return path.read_text().splitlines() if path.exists() else []


Program = Callable[[Life], Awaitable[Any]]


def lived(program: Program, life: Life) -> Any:
    """Live one life; give what it came to, or None if it was killed."""
    ended = warm.call(_live, program, life)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return json.loads(ended.stdout) if ended.returncode == 0 else None


def lived_on(program: Program, life: Life, *moments: Moment) -> Any:
    """Kill a life at each of the moments, and let one more end."""
    for moment in moments:
        assert lived(program, replace(life, moment=moment)) is None, moment
    return lived(program, life)


def lived_on_and_on(program: Program, life: Life, every: int) -> Any:
    """Kill each life after its n-th write until one ends; give what it came to."""
    for lives in range(_MOST):
        if (ended := lived(program, replace(life, moment=every))) is not None:
            assert lives > 1
            return ended
    raise AssertionError(f"no life gets further: {life.said}")


def begun(program: Program, life: Life) -> warm.Process:
    """Begin a life that is at work beside the test; what it prints is read line by line."""
    return warm.Process(warm.words_of(_live, program, life), stdout=subprocess.PIPE)


def _live(program: Program, life: Life) -> None:
    ended = asyncio.run(program(life))
    sys.stdout.write(f"{json.dumps(ended)}\n")

"""What hostile texts do to the doors that read them: errors, CPU, memory.

Each text is drawn from a seed: an ordinary one of its kind, in which pieces are repeated, nested,
swapped, cut or replaced by what parsers stumble over. Its CPU is compared with that of an ordinary
text of the same kind and size; from 100 kB on, its memory with its own size.
"""

import asyncio
import random
import resource
import sqlite3
import tempfile
import time
import tracemalloc
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fuzz_texts import hostile, ordinary
from reporting import Row, options, publish

from replan import open_storage
from replan.adapters.knowledge.read_files import passages_in
from replan.errors import ReplanError
from replan.host.plan_texts import read_plan
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import overlooked
from replan.replies.readings import read_answer, read_feedback, read_specialist, read_think
from replan.state.person.answers import read_decision
from replan.state.team import SpecialistCard
from replan.team.team_file import read_team_file

TEAM = ("a", "writer")
CARDS = [SpecialistCard(name=name, intended_use="Works.") for name in TEAM]
LARGE = 100_000
"""Bytes from which on memory is looked at."""
NOTICED = 0.02
"""Seconds of CPU below which a text is no slower than its machine is noisy."""
MOST_CPU, MOST_MEMORY = 3, 20
"""Times the CPU of an ordinary text, times the bytes of the text itself."""

Door = Callable[[str], object]


@dataclass
class Seen:
    """What came of the texts at one door.

    Attributes:
        texts: How many there were.
        size: Their characters in all.
        refused: How many of them an error of ours refused.
        foreign: Errors of any other kind, each with the seed of its text.
        cpu: The most CPU over that of an ordinary text, and the seed of that text.
        memory: The most memory over the bytes of the text, and the seed of that text.
    """

    texts: int = 0
    size: int = 0
    refused: int = 0
    foreign: list[str] = field(default_factory=list)
    cpu: tuple[float, str] = (0.0, "")
    memory: tuple[float, str] = (0.0, "")


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--seed", type=int, default=1, help="draws the texts")
    parser.add_argument("--count", type=int, help="texts at each door; default 200, long 100,000")
    parser.add_argument("--most", type=int, default=200_000, help="bytes of a text, about")
    parser.add_argument("--door", nargs="+", help="only these doors")
    return parser


def main(args: Namespace) -> list[Row]:
    """Draw texts for each door, and say what came of them."""
    count = args.count or (100_000 if args.long else 200)
    with tempfile.TemporaryDirectory() as folder, closing(Rows(Path(folder))) as rows:
        doors = {**_doors(Path(folder)), "a stored row": ("row", rows.read)}
        wanted = {name: door for name, door in doors.items() if not args.door or name in args.door}
        return [
            {"table": "Hostile texts", **row_of(name, fuzzed(kind, door, args, count))}
            for name, (kind, door) in wanted.items()
        ]


def row_of(name: str, seen: Seen) -> Row:
    """The line of a door."""
    for error in seen.foreign[:5]:
        print(f"{name}: {error}")
    return {
        "door": name,
        "texts": seen.texts,
        "kB": seen.size // 1_000,
        "refused": seen.refused,
        "other errors": len(seen.foreign),
        "most CPU, times": seen.cpu[0],
        "of": seen.cpu[1],
        "most memory, times": seen.memory[0],
        "most memory of the process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }


def fuzzed(kind: str, door: Door, args: Namespace, count: int) -> Seen:
    """Let so many texts through a door."""
    seen, usual = Seen(), Usual(kind, door)
    for number in range(count):
        name = f"{args.seed}/{number}"
        text = hostile(kind, random.Random(name), args.most)  # noqa: S311 - texts, no secrets
        seen.texts += 1
        seen.size += len(text)
        _let_through(door, text, name, seen, usual)
    return seen


def _let_through(door: Door, text: str, name: str, seen: Seen, usual: "Usual") -> None:
    started = time.process_time()
    try:
        door(text)
    except ReplanError:
        seen.refused += 1
    except Exception as error:  # noqa: BLE001 - what is looked for
        seen.foreign.append(f"{name}: {type(error).__name__}: {str(error)[:80]}")
    seconds = time.process_time() - started
    if seconds > max(NOTICED, MOST_CPU * usual.seconds(len(text))):
        # Once more, since another process can make a text slow once.
        seconds = least_seconds(door, text)
    if seconds > NOTICED:
        seen.cpu = max(
            seen.cpu, (seconds / max(NOTICED / MOST_CPU, usual.seconds(len(text))), name)
        )
    if len(text) >= LARGE:
        seen.memory = max(
            seen.memory, (_peak(door, text) / len(text.encode("utf-8", "replace")), name)
        )


class Usual:
    """How long ordinary texts of a kind take, by their size."""

    def __init__(self, kind: str, door: Door) -> None:
        self._kind = kind
        self._door = door
        self._known: dict[int, float] = {}

    def seconds(self, size: int) -> float:
        """The CPU of an ordinary text of about this size."""
        # Not above it: a larger one may be beyond a bound, and refused at once.
        step = max(8, size.bit_length() - 1)
        if step not in self._known:
            self._known[step] = least_seconds(self._door, ordinary(self._kind, 1 << step))
        return self._known[step] * size / (1 << step)


def least_seconds(door: Door, text: str) -> float:
    """The least CPU of three times."""
    least = float("inf")
    for _ in range(3):
        started = time.process_time()
        with suppress(Exception):
            door(text)
        least = min(least, time.process_time() - started)
    return least


def _peak(door: Door, text: str) -> int:
    """The most bytes that a door holds while it reads a text."""
    tracemalloc.start()
    try:
        with suppress(Exception):
            door(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _doors(folder: Path) -> dict[str, tuple[str, Door]]:
    """The doors that texts of others come in by, with the kind of text that each reads."""

    def team(text: str) -> object:
        path = folder / "team.yaml"
        path.write_text(text, encoding="utf-8", errors="replace")
        return read_team_file(path, {})

    def note(text: str) -> object:
        return passages_in("note.md", text.replace("\0", "").encode("utf-8", "replace"))

    return {
        "a plan": ("plan", PlanDocument.parse),
        "a plan's hints": ("plan", overlooked),
        "a decision": ("plan", read_decision),
        "a thought": ("thought", lambda text: read_think(text, TEAM)),
        "a judgement": ("judgement", read_feedback),
        "a model's plan": ("plan", lambda text: read_plan(text, CARDS)),
        "an answer": ("answer", read_answer),
        "a specialist's reply": ("answer", read_specialist),
        "a team file": ("team", team),
        "a note": ("note", note),
    }


class Rows:
    """A SQLite file in which the row of a step's result is exchanged, and read by Replan."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "runs.db"
        self._loop = asyncio.new_event_loop()
        self._opened = open_storage(self._path)
        self._storage = self._loop.run_until_complete(self._opened.__aenter__())
        self._file = sqlite3.connect(self._path)

    def read(self, text: str) -> object:
        """Read a row that holds a text."""
        with self._file:
            self._file.execute("DELETE FROM replan_log")
            self._file.execute(
                "INSERT INTO replan_log (run_id, number, key, kind, at, value) VALUES"
                " ('r', 1, 'result/k', 'specialist_completed', '', ?)",
                (text.encode("utf-8", "surrogatepass"),),
            )
        return self._loop.run_until_complete(self._storage.log.results("r"))

    def close(self) -> None:
        """Close the file and the storage."""
        self._file.close()
        self._loop.run_until_complete(self._opened.__aexit__(None, None, None))
        self._loop.close()


if __name__ == "__main__":
    publish("fuzz", arguments().parse_args(), main)

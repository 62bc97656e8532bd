"""The one harness of the benchmarks: options, turns, figures, tables, and further processes.

Kinds that are compared take turns, and a ratio is the median of the ratios of the turns, so that a
slow moment of the machine hits all of them. CPU is that of this process, with all its threads.
"""

import cProfile
import gc
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, TypeVar

from replan.testing import ChatRequest, OpenAIServer, Reply

K = TypeVar("K")
V = TypeVar("V")

Row = dict[str, Any]
"""One line of a table; its `table` says of which."""

LONGEST_SPIN = 900
"""Seconds after which a process that spins ends by itself."""

_SPIN = f"""
import os, time
parent, end = os.getppid(), time.monotonic() + {LONGEST_SPIN}
while os.getppid() == parent and time.monotonic() < end:
    sum(range(10_000))
"""


def options(description: str) -> ArgumentParser:
    """The options that every benchmark has."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--long", action="store_true", help="more sizes and repetitions")
    return parser


def publish(name: str, args: Namespace, main: Callable[[Namespace], list[Row]]) -> None:
    """Run a benchmark and print its rows."""
    rows = main(args)
    used = {key: value for key, value in vars(args).items() if key != "json"}
    if args.json:
        print(json.dumps({"benchmark": name, "options": used, "rows": rows}))
        return
    print(f"## {name}\n")
    print(", ".join(f"{key}: {value}" for key, value in used.items()))
    for table, group in groupby(rows, lambda row: row["table"]):
        print(f"\n### {table}\n\n{_markdown(list(group))}")


def _markdown(rows: list[Row]) -> str:
    """The rows of one table."""
    columns = [key for key in rows[0] if key != "table"]
    lines = [columns, ["---:"] * len(columns)]
    lines += [[_shown(row.get(column)) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.2f}" if value < 10 else f"{value:,.1f}"  # noqa: PLR2004
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def judged(
    value: float, *, name: str = "ratio", most: float | None = None, least: float | None = None
) -> Row:
    """A figure, its target, and whether it is met."""
    targets = {"at most": most, "at least": least}
    target = " ".join(f"{word} {bound:g}" for word, bound in targets.items() if bound is not None)
    is_met = (most is None or value <= most) and (least is None or value >= least)
    return {name: value, "target": target, "met": ("yes" if is_met else "no") if target else ""}


@dataclass(frozen=True)
class Taken(Generic[V]):
    """What one turn of a kind took.

    Attributes:
        seconds: Of the clock.
        cpu: Seconds of this process, all threads.
        value: What it gave.
    """

    seconds: float
    cpu: float
    value: V


async def in_turns(
    kinds: Mapping[K, Callable[[], Awaitable[V]]], repeat: int
) -> dict[K, list[Taken[V]]]:
    """What each kind took in so many turns, after one that pays for what is loaded once."""
    taken: dict[K, list[Taken[V]]] = {kind: [] for kind in kinds}
    for turn in range(repeat + 1):
        for kind, begin in kinds.items():
            gc.collect()
            cpu, began = time.process_time(), time.perf_counter()
            value = await begin()
            one = Taken(time.perf_counter() - began, time.process_time() - cpu, value)
            if turn:
                taken[kind].append(one)
    return taken


def cpu_over(ours: Sequence[Taken[Any]], base: Sequence[Taken[Any]]) -> float:
    """The median ratio of the CPU of two kinds that took turns."""
    return statistics.median(a.cpu / b.cpu for a, b in zip(ours, base, strict=True))


async def functions_called(work: Callable[[], Awaitable[object]]) -> int:
    """How many functions this thread calls for a piece of work: a count, whatever else goes on."""
    counting = cProfile.Profile()
    with counting:
        await work()
    return sum(entry.callcount for entry in counting.getstats())


def child(program: str, *words: str) -> Any:
    """What a program of the benchmarks prints as JSON, run in a process of its own."""
    command = [sys.executable, program, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
    return json.loads(done.stdout)


@contextmanager
def serving(program: str, *words: str) -> Generator[str]:
    """The address of a server that a program of the benchmarks is, in a process of its own.

    Raises:
        RuntimeError: It did not start.
    """
    with subprocess.Popen(  # noqa: S603 - a file of ours
        [sys.executable, program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            raise RuntimeError("The server did not start.")
        yield address


def serve(model: Callable[[ChatRequest], Reply], models: tuple[str, ...]) -> None:
    """Serve models under these names, say where, and end when the standard input does."""
    with OpenAIServer(model, models=models) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


@contextmanager
def busy(processes: int) -> Generator[None]:
    """Let so many processes keep a core busy meanwhile.

    Raises:
        RuntimeError: One of them ended too early, so that what was measured says nothing.
    """
    command = [sys.executable, "-c", _SPIN]
    spinning = [subprocess.Popen(command) for _ in range(processes)]  # noqa: S603 - the lines above
    try:
        yield
        if any(one.poll() is not None for one in spinning):
            raise RuntimeError(f"A process that was to spin ended within {LONGEST_SPIN} s.")
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def forked(*preloaded: str) -> Any:
    """What starts processes that have imported these modules already, for others to kill."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [*preloaded, "replan.testing", "replan.storage.databases.postgres"]
    )
    return context


@contextmanager
def postgres() -> Iterator[Any]:
    """A PostgreSQL of its own, as the tests start it."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres import running_server  # noqa: PLC0415 - few benchmarks need it

    with running_server() as server:
        yield server


@contextmanager
def stores(*, with_postgres: bool) -> Iterator[dict[str, str]]:
    """New places of storage by their names: a SQLite file, and a PostgreSQL if asked."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        found = {"SQLite": str(Path(folder) / "runs.db")}
        if with_postgres:
            found["PostgreSQL"] = stack.enter_context(postgres()).dsn
        yield found

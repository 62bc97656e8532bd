"""What a message of a pipeline's thread costs, what a unit costs, and how 200 pipelines get along.

Usage: python benchmarks/threads.py
"""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from replan import open_storage
from replan.pipelines import (
    BaseAgent,
    InteractionUnit,
    Response,
    StateHandler,
    SubThreadAgent,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
    Task,
    Thread,
    ThreadMessage,
    run_pipeline,
)

LENGTHS = (10, 1_000, 10_000)
SAVES = 60
UNITS = 10
PIPELINES = 200
REPEATS = 7
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class WordWritingHandler(StateHandler):
    """Does nothing but say a word."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Say it."""
        return Response(f"A word in {self.phase}.")


class WordWritingAgent(SubThreadAgent):
    """Says ten words."""

    async def _initialize_interaction_units(self) -> None:
        names = [f"word_writing_{number}" for number in range(UNITS)]
        self.interaction_units = {
            name: await InteractionUnit.create(
                state_handler=WordWritingHandler(phase=name, next_phase=following)
            )
            for name, following in zip(names, [*names[1:], "completed"], strict=True)
        }


class WordExecutionHandler(SubThreadExecutionHandler):
    """Lets ten words be said."""

    sub_thread_agent = WordWritingAgent


class WordAgent(BaseAgent):
    """Says ten words in a sub-thread."""

    async def _initialize_state_handlers(self) -> None:
        both = (SubThreadPreparationHandler(), WordExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}


def message(number: int) -> ThreadMessage:
    text = f"{number:06} " + "word " * 40
    return ThreadMessage(id=f"bot_{number:06}", sender="bot", text=text, timestamp=NOON)


def stored_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select sum(length(value)) from replan_thread_rows")
        return rows.fetchone()[0]


async def seconds_of(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def one_message(folder: Path) -> None:
    """Save messages one by one at the end of threads of different lengths, in turns."""
    async with open_storage(folder / "messages.sqlite") as storage:
        threads = {length: Thread(f"of {length}") for length in LENGTHS}
        for length, thread in threads.items():
            for number in range(length):
                thread.add(message(number))
            await storage.threads.save_thread(thread)
        took: dict[int, list[float]] = {length: [] for length in LENGTHS}
        wrote: dict[int, int] = {}
        for number in range(SAVES):
            for length, thread in threads.items():
                thread.add(message(length + number))
                took[length].append(
                    await seconds_of(lambda t=thread: storage.threads.save_thread(t))
                )
        for length, thread in threads.items():
            before = stored_bytes(folder / "messages.sqlite")
            thread.add(message(length + SAVES))
            await storage.threads.save_thread(thread)
            wrote[length] = stored_bytes(folder / "messages.sqlite") - before
    print("a message saved in a thread of", "messages", "bytes", "ms", sep=" | ")
    for length in LENGTHS:
        print(f"{length:>39} | {wrote[length]:>5} | {1000 * median(took[length]):.2f}")


async def ten_units(folder: Path) -> None:
    """Run a pipeline of ten units in SQLite, and only its handlers."""
    async with open_storage(folder / "units.sqlite") as storage:
        runs = [
            await seconds_of(
                lambda n=number: run_pipeline(
                    WordAgent, "Ten words", thread_id=f"t{n}", repository=storage.threads
                )
            )
            for number in range(REPEATS)
        ]
    bare = WordWritingHandler(phase="word_writing")

    async def handlers() -> None:
        for _ in range(UNITS):
            await bare.handle(Task(name="t"), Thread("t"), BaseAgent())

    alone = median([await seconds_of(handlers) for _ in range(REPEATS)])
    print(f"a unit over its bare handler: {1000 * (median(runs) - alone) / UNITS:.2f} ms")
    print(f"a write of bare SQLite that is safe: {1000 * bare_write(folder):.2f} ms")


def bare_write(folder: Path) -> float:
    """Measure what a write costs that SQLite makes safe: most of what a unit waits for."""
    took: list[float] = []
    with closing(sqlite3.connect(folder / "bare.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE rows (value)")
        for _ in range(SAVES):
            started = time.perf_counter()
            connection.execute("INSERT INTO rows VALUES (?)", [b"word " * 60])
            took.append(time.perf_counter() - started)
    return median(took)


async def many_at_once(folder: Path) -> None:
    """Run 200 pipelines at once in one SQLite file, and see how long the loop is held."""
    late: list[float] = []

    async def watch() -> None:
        while True:
            expected = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - expected)

    async with open_storage(folder / "many.sqlite") as storage, asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        took = await seconds_of(
            lambda: asyncio.gather(
                *(
                    run_pipeline(
                        WordAgent, "Ten words", thread_id=f"m{n}", repository=storage.threads
                    )
                    for n in range(PIPELINES)
                )
            )
        )
        watching.cancel()
    p99 = quantiles(late, n=100)[-1]
    print(f"{PIPELINES} pipelines at once: {took:.1f} s, loop lag p99 {1000 * p99:.0f} ms")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await one_message(Path(folder))
        await ten_units(Path(folder))
        await many_at_once(Path(folder))


if __name__ == "__main__":
    asyncio.run(main())

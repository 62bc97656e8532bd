"""Runs that are cancelled at random moments: what they leave behind, and whether they can go on.

Every run is cut off once, by a cancellation of its task or by a request to stop without any grace,
and then goes on to its end. What must not happen is counted: a task that is left, a transaction
that is still open, a recorded step that is done again, a step that begins without a row in the
ledger, a run that does not end as it would have without the cut.
"""

import asyncio
import random
import sqlite3
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from plans import random_dag
from reporting import Row, options, publish
from stored import fresh_database

from replan import (
    ExecutionContext,
    Host,
    Specialist,
    Storage,
    Team,
    build_graph,
    open_storage,
    run,
)
from replan.testing import ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
STEPS = 6
MOST_TURNS = 8
"""Turns of the event loop that a step takes at most."""

KINDS = ("cancelled", "told to stop")

IsOpen = Callable[[], bool]
"""Tells whether a transaction is open in a store."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--runs", type=int, help="cuts for each storage (default 500)")
    parser.add_argument("--postgres", help="the DSN of a PostgreSQL, on which a database is made")
    parser.add_argument("--seed", type=int, default=1, help="of plans and moments (default 1)")
    return parser


def main(args: Namespace) -> list[Row]:
    """Cut runs in memory, in a SQLite file, and in PostgreSQL if there is one."""
    args.runs = args.runs or (2_500 if args.long else 500)
    return asyncio.run(_rows(args))


async def _rows(args: Namespace) -> list[Row]:
    rows: list[Row] = []
    with _stores(args.postgres) as stores:
        for name, (where, is_open) in stores.items():
            async with open_storage(where) as storage:
                rows += await _cut_all(name, storage, is_open, args)
    return rows


@contextmanager
def _stores(postgres: str | None) -> Iterator[dict[str, tuple[str, IsOpen]]]:
    """The stores by their names: where they are, and what tells whether a transaction is open."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "runs.db")
        stores: dict[str, tuple[str, IsOpen]] = {
            "memory": (":memory:", lambda: False),
            "SQLite": (str(file), lambda: is_locked(file)),
        }
        if not postgres:
            yield stores
            return
        with fresh_database(postgres) as address:
            yield {**stores, "PostgreSQL": (address, lambda: is_in_transaction(address))}


@dataclass
class Seen:
    """What was counted over all runs that were cut in one way."""

    counts: Counter[str] = field(default_factory=Counter[str])

    def row(self, storage: str, kind: str) -> Row:
        """One line of the table."""
        names = (
            "runs",
            "cut before the end",
            "tasks left",
            "transactions left",
            "recorded steps done again",
            "tries without a row",
            "not completed",
        )
        return {
            "table": "Runs that were cut off once, and went on",
            "storage": storage,
            "by": kind,
            **{name: self.counts[name] for name in names},
        }


async def _cut_all(name: str, storage: Storage, is_open: IsOpen, args: Namespace) -> list[Row]:
    chance = random.Random(args.seed)  # noqa: S311 - the same draw on every run, no secret
    done: Counter[tuple[str, int]] = Counter()
    graph = build_graph(_team(chance, done), storage=storage)
    seen = {kind: Seen() for kind in KINDS}
    turns = min([await _turns_of(Cut(graph, storage, done, "whole", seed)) for seed in (1, 2)])
    for number in count():
        if sum(each.counts["cut before the end"] for each in seen.values()) >= args.runs:
            break
        kind = KINDS[number % len(KINDS)]
        cut = Cut(graph, storage, done, f"{number}", args.seed + number)
        seen[kind].counts += await cut.make(kind, chance.randint(0, turns), is_open)
    return [each.row(name, kind) for kind, each in seen.items()]


def _team(chance: random.Random, done: Counter[tuple[str, int]]) -> Team:
    async def work(context: ExecutionContext) -> str:
        done[context.run_id, context.plan_step.id] += 1
        for _ in range(chance.randint(0, MOST_TURNS)):
            await asyncio.sleep(0)
        return f"text {context.plan_step.id}"

    return Team(
        host=Host(model=ScriptedModel({"feedback": always(COMPLETE)})),
        specialists=[Specialist(name="worker", intended_use="Works.", run=work, effects="pure")],
    )


async def _turns_of(cut: "Cut") -> int:
    """Turns of the event loop that a whole run takes."""
    running, turns = asyncio.ensure_future(cut.begin()), 0
    while not running.done():
        await asyncio.sleep(0)
        turns += 1
    await running
    return turns


class Cut:
    """One run that is cut off once.

    Attributes:
        done: How often each step of each run was begun.
    """

    def __init__(
        self,
        graph: Any,
        storage: Storage,
        done: Counter[tuple[str, int]],
        name: str,
        seed: int,
    ) -> None:
        self.done = done
        self._graph = graph
        self._log = storage.log
        self._run_id = f"{name}-{seed}"
        self._config: Any = {"configurable": {"thread_id": self._run_id}}
        self._given = {"messages": [("user", "Go.")], "plan": random_dag(STEPS, seed).document}

    async def begin(self, stop: asyncio.Event | None = None) -> Mapping[str, Any]:
        """Start the run."""
        return (
            await run(
                self._graph,
                self._given,
                config=self._config,
                run_id=self._run_id,
                stop=stop,
                grace=0,
            )
        ).state

    async def make(self, kind: str, turns: int, is_open: IsOpen) -> Counter[str]:
        """Cut the run off after so many turns of the event loop, look, and go on."""
        before, stop = asyncio.all_tasks(), asyncio.Event()
        running = asyncio.ensure_future(self.begin(stop))
        for _ in range(turns):
            if running.done():
                break
            await asyncio.sleep(0)
        was_cut = not running.done()
        if kind == "cancelled":
            running.cancel()
        stop.set()
        with suppress(asyncio.CancelledError):
            await running
        seen = Counter({"runs": 1, "cut before the end": int(was_cut)})
        seen["tasks left"] = len(asyncio.all_tasks() - before)
        seen["transactions left"] = int(is_open())
        recorded = {r.step_id for r in (await self._log.results(self._run_id)).values()}
        begun = Counter(self.done)
        state = await self._to_the_end()
        seen["recorded steps done again"] = sum(
            self.done[self._run_id, step] > begun[self._run_id, step] for step in recorded
        )
        tries = sum(times for (run_id, _), times in self.done.items() if run_id == self._run_id)
        seen["tries without a row"] = max(0, tries - len(await self._log.ledger(self._run_id)))
        texts = {r.step_id: r.text for r in state["current_specialist_results"].values()}
        whole = {step: f"text {step}" for step in range(1, STEPS + 1)}
        seen["not completed"] = int(state["outcome"] != "completed" or texts != whole)
        return seen

    async def _to_the_end(self) -> Mapping[str, Any]:
        state = (await self._graph.aget_state(self._config)).values
        if state.get("is_completed"):
            return state
        if not state:
            # It was cut off before anything was saved.
            return await self.begin()
        return (await run(self._graph, None, config=self._config)).state


def is_locked(file: Path) -> bool:
    """Whether somebody holds the right to write to the file."""
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
    return False


def is_in_transaction(address: str) -> bool:
    """Whether a client of the database has a transaction open; the server itself tidies up, too."""
    asked = """select count(*) from pg_stat_activity where datname = current_database()
        and backend_type = 'client backend' and pid <> pg_backend_pid()
        and xact_start is not null"""
    with psycopg.connect(address) as connection:
        row = connection.execute(asked).fetchone()
    return row is not None and row[0] > 0


if __name__ == "__main__":
    publish("cancellations", arguments().parse_args(), main)

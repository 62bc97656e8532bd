"""What runs ask of one PostgreSQL: statements, round trips, bytes, log and CPU, a run and a step.

Runs of 1, 5 and 20 steps on a database of their own, through a relay that counts. Each step is a
function (no model), or a chat model that is scripted: a call reserves and settles. What a run costs
is fitted as a fixed part and a part for each step. The same runs are done in one process, and by a
worker that takes them from a queue in the same database. CPU is that of the server's processes for
these connections, where it runs on this machine; the rest of the server writes the log.
"""

import asyncio
import json
import os
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from plans import chain
from reporting import Row, options, publish
from stored import fresh_database
from wire import Counted, relayed

from replan import Host, Run, RunResult, Runtime, Specialist, Team, open_runtime, open_storage
from replan.testing import ScriptedModel, always
from replan.workers.open_worker import WorkerWanted, open_worker
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.versions import published, version_of

STEPS = (1, 5, 20)
CONSTANTS = Path(__file__).with_name("capacity_constants.json")
_IDLE = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")
_COMPLETE = {"feedback": always("---\nverdict: complete\n---\nDone.")}
_TEAM = """\
name: crew
host: {model: offline}
specialists:
  - {name: worker, intended_use: Works., run: 'capacity:work', effects: pure}
"""


def work(_: object) -> str:
    """A step that takes no time, with a result of a paragraph."""
    return "A finding with its reasons. " * 20


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--postgres", required=True, help="the DSN of a PostgreSQL")
    parser.add_argument("--runs", type=int, default=20, help="runs of each size")
    parser.add_argument("--save", action="store_true", help="keep the constants of the simulation")
    return parser


@dataclass
class Taken:
    """What some runs took of the database."""

    wire: Counted
    log_bytes: int
    transactions: int
    cpu: float

    def of_each(self, runs: int) -> dict[str, float]:
        """The figures of one run."""
        return {
            "statements": self.wire.statements / runs,
            "round trips": self.wire.round_trips / runs,
            "writing transactions": self.transactions / runs,
            "kB to the server": self.wire.bytes_up / runs / 1_000,
            "kB from the server": self.wire.bytes_down / runs / 1_000,
            "kB of log": self.log_bytes / runs / 1_000,
            "CPU ms of the server": 1_000 * self.cpu / runs,
        }


Count = Callable[[], AbstractContextManager[list[Taken]]]
"""Counts what the database does for as long as a block."""


def main(args: Namespace) -> list[Row]:
    """Measure the kinds of runs, and fit them."""
    rows, constants = list[Row](), dict[str, Any]()
    for kind, measured in {"functions": _here, "chat models": _models, "a worker": _worker}.items():
        found = {steps: asyncio.run(measured(args, steps)) for steps in STEPS}
        rows += [{"table": f"A run, {kind}", "steps": n, **each} for n, each in found.items()]
        fixed, step = _fitted(found)
        rows += [{"table": f"Fitted, {kind}", "part": "a run", **fixed}]
        rows += [{"table": f"Fitted, {kind}", "part": "and each step", **step}]
        constants[kind] = {"run": fixed, "step": step}
    idle = asyncio.run(_idle(args))
    rows.append({"table": "A worker that has nothing to do, a second", **idle})
    constants["idle worker"] = idle
    if args.save:
        CONSTANTS.write_text(json.dumps(constants, indent=2) + "\n")
    return rows


def _fitted(found: dict[int, dict[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """A line through the smallest and the largest size."""
    least, most = STEPS[0], STEPS[-1]
    step = {name: (found[most][name] - found[least][name]) / (most - least) for name in found[most]}
    return {name: found[least][name] - least * step[name] for name in step}, step


async def _here(
    args: Namespace, steps: int, model: ScriptedModel | None = None
) -> dict[str, float]:
    async with (
        _database(args.postgres) as (address, _, count),
        open_storage(address) as storage,
    ):
        fields: dict[str, Any] = {"chat_model": model} if model else {"run": work}
        member = Specialist(name="worker", intended_use="Works.", effects="pure", **fields)
        team = Team(host=Host(model=ScriptedModel(_COMPLETE)), specialists=[member])
        async with open_runtime(team, storage=storage) as runtime:
            given = {"plan": chain(steps).document}
            await runtime.run(given)
            with count() as taken:
                for _ in range(args.runs):
                    _check(await runtime.run(given))
            return taken[0].of_each(args.runs)


async def _models(args: Namespace, steps: int) -> dict[str, float]:
    said = ScriptedModel({"*": always(work(None))})
    return await _here(args, steps, said)


async def _worker(args: Namespace, steps: int) -> dict[str, float]:
    async with _team(args) as (folder, address, direct, count):
        wanted = WorkerWanted(team=folder / "team.yaml", storage=address, concurrency=4)
        async with _at_work(wanted), _queued(folder, address) as runtime:
            given = {"plan": chain(steps).document}
            await _rested([await runtime.start(given)], direct)
            with count() as taken:
                begun = [await runtime.start(given) for _ in range(args.runs)]
                await _rested(begun, direct)
            return taken[0].of_each(args.runs)


async def _idle(args: Namespace) -> dict[str, float]:
    """What a worker asks for that has nothing to do, a second."""
    async with _team(args) as (folder, address, _, count):
        wanted = WorkerWanted(team=folder / "team.yaml", storage=address, concurrency=4)
        async with _at_work(wanted):
            await asyncio.sleep(3.0)
            with count() as taken:
                await asyncio.sleep(_IDLE)
            return {name: each / _IDLE for name, each in taken[0].of_each(1).items()}


@asynccontextmanager
async def _team(args: Namespace) -> AsyncGenerator[tuple[Path, str, str, Count]]:
    """A folder with a team that is published in a database."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "team.yaml"
        path.write_text(_TEAM)
        async with _database(args.postgres) as (address, direct, count):
            async with open_queue(address, connections=1) as queue:
                await published(queue, version_of(path), "crew")
            yield Path(name), address, direct, count


@asynccontextmanager
async def _at_work(wanted: WorkerWanted) -> AsyncGenerator[None]:
    """A worker in this process, so that nothing but the database is between it and the queue."""
    async with open_worker(wanted, environment={}) as worker:
        working = asyncio.ensure_future(worker.work())
        yield
        await worker.drain()
        await working


@asynccontextmanager
async def _queued(folder: Path, address: str) -> AsyncGenerator[Runtime]:
    member = Specialist(name="worker", intended_use="Works.", run=work, effects="pure")
    team = Team(host=Host(model="offline"), specialists=[member])
    digest = version_of(folder / "team.yaml").digest
    async with (
        open_storage(address, connections=2) as storage,
        open_queue(address, connections=1) as queue,
        open_queued_runtime(team, storage=storage, queue=queue, digest=digest) as runtime,
    ):
        yield runtime


async def _rested(runs: list[Run], direct: str) -> None:
    """Wait beside the relay until runs are over: who waits is not counted."""
    ids, query = [run.run_id for run in runs], "select run_id, outcome from replan_runs"
    async with await psycopg.AsyncConnection.connect(direct, autocommit=True) as connection:
        while True:
            rows = await (await connection.execute(query)).fetchall()
            found = dict(rows)
            if all(found[each] != "running" for each in ids):
                break
            await asyncio.sleep(0.2)
    ended = {found[each] for each in ids}
    if ended != {"completed"}:
        raise RuntimeError(f"Runs ended with {ended}.")


@asynccontextmanager
async def _database(server: str) -> AsyncGenerator[tuple[str, str, Count]]:
    """A new database: its address through the relay and the direct one, and what counts."""
    with fresh_database(server) as direct, psycopg.connect(direct, autocommit=True) as looking:
        async with relayed(direct) as (address, counted):

            @contextmanager
            def count() -> Generator[list[Taken]]:
                taken, wire = list[Taken](), Counted(*counted.all)
                log, transactions, cpu = _figures(looking)
                yield taken
                log_now, transactions_now, cpu_now = _figures(looking)
                spent = sum(now - cpu.get(pid, 0.0) for pid, now in cpu_now.items())
                more = transactions_now - transactions
                taken.append(Taken(counted.since(wire), log_now - log, more, spent))

            yield address, direct, count


def _figures(looking: psycopg.Connection[Any]) -> tuple[int, int, dict[int, float]]:
    """The place in the log, the number of the next writing transaction, the CPU of the others."""
    log = looking.execute("select pg_current_wal_lsn() - '0/0'").fetchone()
    number = looking.execute("select pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    others = looking.execute(
        "select pid from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid()"
    ).fetchall()
    if log is None or number is None:
        raise RuntimeError("The server did not answer.")
    return int(log[0]), int(number[0]), {pid: _cpu_of(pid) for (pid,) in others}


def _cpu_of(pid: int) -> float:
    """Seconds of CPU of a process of this machine."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _check(result: RunResult) -> None:
    if result.outcome != "completed":
        raise RuntimeError(f"A run ended with {result.outcome}.")


if __name__ == "__main__":
    publish("capacity", arguments().parse_args(), main)

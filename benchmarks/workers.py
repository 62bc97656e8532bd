"""Workers that are killed and stopped, a PostgreSQL that restarts, and what both of them cost.

Runs of three steps wait in the queue of a PostgreSQL that is started for this. Each step leaves a
line outside, with its idempotency key. Workers are forked from a process that has the imports done.

The database: runs of 1 and of 20 steps, one at a time. What a run costs PostgreSQL is fitted as a
fixed part and a part for each step. CPU is that of the server's processes for these connections;
the rest of the server writes the log.
"""

import asyncio
import os
import random
import resource
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from harness import Row, forked, options, postgres, publish
from plans import chain

from replan import ExecutionContext, Host, Specialist, Team, open_runtime, open_storage
from replan.runs.service import Runtime
from replan.team.team_file import read_team_file
from replan.testing import ScriptedModel, always
from replan.workers.open_worker import WorkerWanted, publish as publish_team, work
from replan.workers.queue import Queue, open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.versions import version_of

CREW = """\
import asyncio
import os
import time
from pathlib import Path

SEEN = os.open(Path(__file__).parent / "seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
SECONDS = float(os.environ.get("STEP_SECONDS", "0"))


async def work(context):
    name, key = context.plan_step.description.split()[0], context.idempotency_key
    os.write(SEEN, f"{name} {key} {time.time()}\\n".encode())
    if SECONDS:
        await asyncio.sleep(SECONDS)
    return f"Done {name}."
"""
TEAM = """\
name: crew
host: {model: offline}
specialists:
  - {name: worker, intended_use: Works., run: 'bench_crew:work', effects: keyed}
"""
STEPS = 3
LEASE = 3.0
SIZES = (1, 20)
"""Steps of the runs that are fitted."""

LONGEST = 1_200.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class House:
    """A team, a server of its own, and the workers that were started."""

    folder: Path
    server: Any
    workers: list[BaseProcess] = field(default_factory=list[BaseProcess])

    @property
    def wanted(self) -> WorkerWanted:
        """What each worker is to do."""
        return WorkerWanted(
            team=self.folder / "team.yaml",
            storage=self.server.dsn,
            concurrency=4,
            lease=LEASE,
            grace=1.0,
        )

    def start(self, seconds: float) -> BaseProcess:
        """Start a worker, whose steps take some time."""
        process: BaseProcess = forked("replan.workers.open_worker").Process(
            target=_worker, args=(self.wanted, seconds), daemon=True
        )
        process.start()
        self.workers.append(process)
        return process

    def end(self) -> float:
        """End all workers, and give the CPU seconds that they took."""
        for each in self.workers:
            if each.pid is not None and each.is_alive():
                os.kill(each.pid, signal.SIGCONT)
                each.terminate()
        for each in self.workers:
            each.join(30)
        self.workers.clear()
        spent = self.folder / "spent"
        lines = spent.read_text().split() if spent.exists() else []
        spent.unlink(missing_ok=True)
        return sum(map(float, lines))

    @property
    def seen(self) -> list[tuple[str, str, float]]:
        """What each step left outside: its name, its key, its time."""
        file = self.folder / "seen"
        rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(name, key, float(at)) for name, key, at in rows]


def _worker(wanted: WorkerWanted, seconds: float) -> None:
    os.environ["STEP_SECONDS"] = str(seconds)  # noqa: TID251 - of this process
    os.chdir(wanted.team.parent)
    before = _cpu()
    work(wanted, lambda _: None)
    with (wanted.team.parent / "spent").open("a") as spent:
        spent.write(f"{_cpu() - before}\n")


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--runs", type=int, help="runs of each part (default 100, long 1000)")
    parser.add_argument("--kills", type=int, help="workers that are killed (default 10, long 500)")
    parser.add_argument("--stalls", type=int, help="stalls (default 5, long 200)")
    parser.add_argument("--rate", type=float, default=50.0, help="runs a second for the wait")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the disturbances")
    return parser


def main(args: Namespace) -> list[Row]:
    """Do each part on a server of its own."""
    args.runs = args.runs or (1_000 if args.long else 100)
    args.kills = args.kills or (500 if args.long else 10)
    args.stalls = args.stalls or (200 if args.long else 5)
    rows: list[Row] = []
    for name in args.only:
        with postgres() as server, tempfile.TemporaryDirectory() as folder:
            house = House(Path(folder), server)
            (house.folder / "bench_crew.py").write_text(CREW)
            (house.folder / "team.yaml").write_text(TEAM)
            os.chdir(house.folder)
            publish_team(house.wanted.team, server.dsn)
            try:
                rows += asyncio.run(PARTS[name](house, args))
            finally:
                house.end()
                # The next part has a file of its own by that name.
                sys.modules.pop("bench_crew", None)
    return rows


@asynccontextmanager
async def opened(house: House) -> AsyncGenerator[tuple[Runtime, Queue]]:
    """A runtime whose runs are done by workers."""
    wanted = house.wanted
    team, digest = read_team_file(wanted.team, {}), version_of(wanted.team).digest
    async with (
        open_storage(wanted.storage, patience=60) as storage,
        open_queue(wanted.storage, patience=60) as queue,
        open_queued_runtime(team.config, storage=storage, queue=queue, digest=digest) as runtime,
    ):
        yield runtime, queue


async def begun(runtime: Runtime, names: list[str], rate: float = 0.0) -> dict[str, float]:
    """Put runs into the queue, and tell when."""
    at = dict[str, float]()
    first = time.time()
    for number, name in enumerate(names):
        if rate:
            await asyncio.sleep(max(0.0, first + number / rate - time.time()))
        at[name] = time.time()
        plan = "".join(f"- [ ] {n}. {name}-{n} @worker\n" for n in range(1, STEPS + 1))
        await runtime.start({"plan": plan}, run_id=name)
    return at


async def ended(queue: Queue) -> bool:
    """Wait until nothing is left in the queue."""
    query = "SELECT count(*) AS number FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    latest = time.monotonic() + LONGEST
    while time.monotonic() < latest:
        if not (await queue.app.connector.execute_query_one_async(query))["number"]:
            return True
        await asyncio.sleep(0.1)
    return False


async def checked(house: House, runtime: Runtime, names: list[str]) -> Row:
    """Compare what is on record with what happened outside."""
    keys = defaultdict[str, set[str]](set)
    for name, key, _ in house.seen:
        keys[name].add(key)
    wrong = Counter[str]()
    storage: Any = runtime.storage
    for name in names:
        view = await runtime.get(name)
        wrong["not ended"] += view.outcome != "completed"
        wrong["lost"] += STEPS - len(await storage.log.results(name))
        ledger = await storage.log.ledger(name)
        done = Counter(each.step_id for each in ledger if each.outcome == "done")
        wrong["done twice"] += sum(number > 1 for number in done.values())
        events = [event async for event in runtime.events(name)]
        wrong["rolled back"] += [each.seq for each in events] != [*range(1, len(events) + 1)]
        wrong["ended twice"] += sum(each.type == "task_completed" for each in events) > 1
    wrong["keys changed"] = sum(len(each) > 1 for each in keys.values())
    told = ("not ended", "lost", "done twice", "ended twice", "keys changed", "rolled back")
    repeated = len(house.seen) - len(keys)
    return {
        "runs": len(names),
        "repeated attempts": repeated,
        **{each: wrong[each] for each in told},
    }


async def killed(house: House, args: Namespace) -> list[Row]:
    """Kill one of four workers every second while runs are there, and PostgreSQL twice."""
    drawn, kills, restarts = random.Random(args.seed), 0, 0  # noqa: S311
    names, in_time = list[str](), True
    async with opened(house) as (runtime, queue):
        workers = [house.start(0.2) for _ in range(4)]
        first = time.monotonic()
        while kills < args.kills and in_time:
            more = [f"k{len(names) + number}" for number in range(args.runs)]
            names += more
            await begun(runtime, more)
            over = asyncio.ensure_future(ended(queue))
            while not over.done():
                await asyncio.wait({over}, timeout=drawn.uniform(0.5, 1.5))
                number = drawn.randrange(4)
                workers[number].kill()
                workers[number].join()
                workers[number] = house.start(0.2)
                kills += 1
                if kills in (4, 9):
                    await asyncio.to_thread(house.server.kill)
                    await asyncio.to_thread(house.server.start)
                    restarts += 1
            in_time = over.result()
        seconds = time.monotonic() - first
        row = await checked(house, runtime, names)
    extra = {"kills": kills, "restarts": restarts, "in time": in_time, "seconds": seconds}
    return [{"table": "Killed workers, a server that restarts", **row, **extra}]


async def stalled(house: House, args: Namespace) -> list[Row]:
    """Stop a worker for longer than its lease while it has a run, then let it go on."""
    names = list[str]()
    async with opened(house) as (runtime, queue):
        workers = [house.start(0.5) for _ in range(2)]
        for number in range(args.stalls):
            more = [f"s{number}-{each}" for each in range(6)]
            names += more
            before = len(house.seen)
            await begun(runtime, more)
            while len(house.seen) < before + 4:  # noqa: ASYNC110 - in other processes
                await asyncio.sleep(0.02)
            pid = workers[number % 2].pid or 0
            os.kill(pid, signal.SIGSTOP)
            over = await ended(queue)
            os.kill(pid, signal.SIGCONT)
            if not over:
                raise RuntimeError("the runs of a stopped worker were not taken up")
        row = await checked(house, runtime, names)
    return [{"table": "Stalls beyond the lease", "stalls": args.stalls, **row}]


async def waits(house: House, args: Namespace) -> list[Row]:
    """How long a run waits in the queue before its first step begins."""
    names = [f"w{number}" for number in range(max(50, args.runs))]
    async with opened(house) as (runtime, queue):
        for _ in range(2):
            house.start(0.0)
        await begun(runtime, ["warm1", "warm2"])
        await ended(queue)
        at = await begun(runtime, names, args.rate)
        over = await ended(queue)
    first = {name.removesuffix("-1"): when for name, _, when in house.seen if name.endswith("-1")}
    found = sorted(1000 * (first[name] - at[name]) for name in names)
    lasted = max(at.values()) - min(at.values())
    return [
        {
            "table": "From the start to the first step",
            "runs": len(names),
            "runs a second": len(names) / lasted,
            "in time": over,
            "p50 ms": median(found),
            "p99 ms": found[int(0.99 * (len(found) - 1))],
        }
    ]


async def speeds(house: House, args: Namespace) -> list[Row]:
    """Runs a second with one, two and four workers, and in one process without a queue."""
    rows: list[Row] = []
    alone = await _alone(house, args.runs)
    for count in (1, 2, 4):
        names = [f"v{count}-{number}" for number in range(args.runs)]
        async with opened(house) as (runtime, queue):
            before = _cpu()
            await begun(runtime, names)
            here = _cpu() - before
            first = time.monotonic()
            for _ in range(count):
                house.start(0.0)
            await ended(queue)
            seconds = time.monotonic() - first
        spent = house.end()
        rows.append(
            {
                "table": "Runs a second",
                "workers": count,
                "runs": args.runs,
                "runs a second": args.runs / seconds,
                "CPU of one process": (here + spent) / alone,
            }
        )
    return rows


async def _alone(house: House, number: int) -> float:
    """The CPU seconds of the same runs in one process, four at once."""
    wanted = house.wanted
    team = read_team_file(wanted.team, {})
    async with (
        open_storage(wanted.storage) as storage,
        open_runtime(team.config, storage=storage) as runtime,
    ):
        seats = asyncio.Semaphore(wanted.concurrency)

        async def one(name: str) -> None:
            async with seats:
                plan = "".join(f"- [ ] {n}. {name}-{n} @worker\n" for n in range(1, STEPS + 1))
                await runtime.run({"plan": plan}, run_id=name)

        await one("first")
        before = _cpu()
        await asyncio.gather(*(one(f"a{each}") for each in range(number)))
        return _cpu() - before


def _finding(_: ExecutionContext) -> str:
    return "A finding with its reasons. " * 20


async def database(house: House, args: Namespace) -> list[Row]:
    """What runs of functions and of chat models cost the database, in one process."""
    said = ScriptedModel({"*": always("A finding with its reasons. " * 20)})
    end = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nDone.")})
    kinds: dict[str, dict[str, Any]] = {
        "functions": {"run": _finding},
        "chat models": {"chat_model": said},
    }
    rows: list[Row] = []
    for kind, fields in kinds.items():
        worker = Specialist(name="worker", intended_use="Works.", effects="pure", **fields)
        async with (
            open_storage(house.server.dsn) as storage,
            open_runtime(Team(Host(end), [worker]), storage=storage) as runtime,
        ):
            least, most = [await _asked(house, runtime, steps, args.runs) for steps in SIZES]
        step = {name: (most[name] - least[name]) / (SIZES[1] - SIZES[0]) for name in least}
        run = {name: least[name] - SIZES[0] * step[name] for name in least}
        table = f"What {kind} cost PostgreSQL"
        rows += [
            {"table": table, "part": "a run", **run},
            {"table": table, "part": "a step", **step},
        ]
    return rows


async def _asked(house: House, runtime: Runtime, steps: int, runs: int) -> dict[str, float]:
    """What the database did for each run of so many steps, after one that counts for nothing."""
    given = {"plan": chain(steps).document}
    await runtime.run(given)
    with psycopg.connect(house.server.dsn, autocommit=True) as looking:
        before, spent = _figures(looking), _cpu_of_others(looking)
        for _ in range(runs):
            await runtime.run(given)
        log, writes = (now - then for now, then in zip(_figures(looking), before, strict=True))
        cpu = sum(now - spent.get(pid, 0.0) for pid, now in _cpu_of_others(looking).items())
    return {
        "writing transactions": writes / runs,
        "kB of log": log / runs / 1_000,
        "CPU ms of the server": 1_000 * cpu / runs,
    }


def _figures(looking: psycopg.Connection[Any]) -> tuple[int, int]:
    """The place in the log, and the number of the next writing transaction."""
    asked = "select pg_current_wal_lsn() - '0/0', pg_snapshot_xmax(pg_current_snapshot())::text"
    log, number = looking.execute(asked).fetchone() or (0, 0)
    return int(log), int(number)


def _cpu_of_others(looking: psycopg.Connection[Any]) -> dict[int, float]:
    """Seconds of CPU of the server's processes for other connections."""
    asked = "select pid from pg_stat_activity where backend_type = 'client backend'"
    spent: dict[int, float] = {}
    for (pid,) in looking.execute(f"{asked} and pid <> pg_backend_pid()").fetchall():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        spent[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
    return spent


PARTS: dict[str, Callable[[House, Namespace], Any]] = {
    "killed": killed,
    "stalled": stalled,
    "wait": waits,
    "speed": speeds,
    "database": database,
}


if __name__ == "__main__":
    publish("workers", arguments().parse_args(), main)

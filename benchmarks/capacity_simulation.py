"""Where one PostgreSQL ends, and how tenants are spread over several: a simulation by events.

It has the constants that `capacity.py` measured (`capacity_constants.json`). A run comes at random,
waits for a free place of a worker, and does its steps one after the other. A step is a call of a
model, then work of the database: CPU on one of the server's cores, first come, first served, and a
flush of the log for each writing transaction, which flushes for all that wait for it. What is not
simulated: locks, vacuum, checkpoints of the server, the network, and the CPU of the workers.
"""

import heapq
import json
import random
import statistics
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

from reporting import Row, options, publish

CONSTANTS = Path(__file__).with_name("capacity_constants.json")
_KIND = "chat models"
_FULL = 0.7


def arguments() -> ArgumentParser:
    """The options of this simulation."""
    parser = options(__doc__ or "")
    parser.add_argument("--steps", type=int, default=8, help="steps of a run, one after the other")
    parser.add_argument("--model-seconds", type=float, default=2.0, help="the median of a call")
    parser.add_argument("--cores", type=int, default=4, help="cores of a database")
    parser.add_argument("--flush-ms", type=float, default=1.0, help="a flush of the log")
    parser.add_argument("--places", type=int, default=4_000, help="runs at once of all workers")
    parser.add_argument("--seconds", type=int, default=60, help="time that is simulated")
    parser.add_argument("--tenants", type=int, default=200, help="tenants that are spread")
    parser.add_argument("--seed", type=int, default=1, help="draws arrivals and calls")
    return parser


@dataclass(frozen=True)
class Costs:
    """What a database does for a part of the work."""

    cpu: float  # seconds
    flushes: float


Process = Generator[tuple[str, float]]
"""Work that yields what it waits for: `sleep` or `cpu` with seconds, `flush` or `place`."""


@dataclass
class Database:
    """Cores with a queue before them, and a log that is flushed for all that wait at a time."""

    clock: "Clock"
    cores: int
    flush: float
    places: int
    waiting: deque[tuple[Process, float]] = field(default_factory=deque[tuple[Process, float]])
    flushing: list[Process] = field(default_factory=list[Process])
    is_flushing: bool = False
    queue: deque[Process] = field(default_factory=deque[Process])

    def cpu(self, process: Process, seconds: float) -> None:
        """Have a process wait for a core, and hold it."""
        self.waiting.append((process, seconds))
        self._next_on_core()

    def log(self, process: Process) -> None:
        """Have a process wait for a flush that begins after it came."""
        self.flushing.append(process)
        self._next_flush()

    def place(self, process: Process) -> None:
        """Have a process wait for a place of a worker."""
        self.queue.append(process)
        self._next_in_place()

    def leave(self) -> None:
        """Give a place back."""
        self.places += 1
        self._next_in_place()

    def _next_in_place(self) -> None:
        while self.places and self.queue:
            self.places -= 1
            self.clock.resume(self.queue.popleft())

    def _next_on_core(self) -> None:
        while self.cores and self.waiting:
            process, seconds = self.waiting.popleft()
            self.cores -= 1
            self.clock.after(seconds, lambda process=process: self._off_core(process))

    def _off_core(self, process: Process) -> None:
        self.cores += 1
        self.clock.resume(process)
        self._next_on_core()

    def _next_flush(self) -> None:
        if self.flushing and not self.is_flushing:
            group, self.flushing, self.is_flushing = self.flushing, [], True
            self.clock.after(self.flush, lambda: self._flushed(group))

    def _flushed(self, group: list[Process]) -> None:
        self.is_flushing = False
        for process in group:
            self.clock.resume(process)
        self._next_flush()


class Clock:
    """Events in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._number = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._homes: dict[Process, Database] = {}

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something later."""
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, do))

    def begin(self, process: Process, home: Database) -> None:
        """Let a process begin; its work is that of a database."""
        self._homes[process] = home
        self.resume(process)

    def resume(self, process: Process) -> None:
        """Let a process go on to the next thing that it waits for."""
        wants = next(process, None)
        home = self._homes[process]
        match wants:
            case None:
                del self._homes[process]
            case ("sleep", seconds):
                self.after(seconds, lambda: self.resume(process))
            case ("cpu", seconds):
                home.cpu(process, seconds)
            case ("flush", _):
                home.log(process)
            case _:
                home.place(process)

    def run(self, until: float) -> None:
        """Go through the events up to a time."""
        while self._events and self._events[0][0] <= until:
            self.now, _, do = heapq.heappop(self._events)
            do()


@dataclass
class Seen:
    """What was seen of the runs of a simulation."""

    waits: list[float] = field(default_factory=list[float])
    delays: list[float] = field(default_factory=list[float])  # of the database, of each step


@dataclass(frozen=True, kw_only=True)
class Load:
    """Runs that come at a rate, each to one of some databases."""

    args: Namespace
    run: Costs  # what a run asks for
    step: Costs  # and each of its steps
    rate: float  # runs a second
    homes: list[Database]
    chosen: Callable[[], int]  # draws the database of a run
    clock: Clock
    drawn: random.Random
    seen: Seen = field(default_factory=Seen)

    @property
    def warm(self) -> float:
        """When the first runs are over, so that what is seen counts."""
        return self.args.seconds / 2

    def done(self) -> Seen:
        """Let the time pass."""
        self.clock.after(0.0, lambda: _come(self))
        self.clock.run(self.args.seconds)
        return self.seen


def main(args: Namespace) -> list[Row]:
    """Load one database more and more, then spread tenants over several."""
    run, step = costs()
    most = args.cores / (run.cpu + args.steps * step.cpu)
    rows = [
        {"table": "One database", "of its CPU": share, **_loaded(args, share * most)}
        for share in (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05)
    ]
    rows += [
        _spread(args, databases, how, _FULL * most * databases)
        for databases in (2, 4)
        for how in ("by hash", "the largest first")
    ]
    return rows


def costs() -> tuple[Costs, Costs]:
    """The measured costs of a run, and of each of its steps."""
    found = json.loads(CONSTANTS.read_text())[_KIND]
    cpu, flushes = "CPU ms of the server", "writing transactions"
    run, step = (Costs(found[part][cpu] / 1_000, found[part][flushes]) for part in ("run", "step"))
    return run, step


def _loaded(args: Namespace, rate: float) -> Row:
    """One database, to which runs come at a rate."""
    seen = _load(args, rate, 1, random.Random(args.seed), lambda: 0).done()  # noqa: S311
    return {
        "runs a second": rate,
        "waiting for a place, p99 ms": 1_000 * _p99(seen.waits),
        "database in a step, p50 ms": 1_000 * statistics.median(seen.delays),
        "database in a step, p99 ms": 1_000 * _p99(seen.delays),
    }


def _load(
    args: Namespace, rate: float, databases: int, drawn: random.Random, chosen: Callable[[], int]
) -> Load:
    clock, (run, step) = Clock(), costs()
    flush = args.flush_ms / 1_000
    return Load(
        args=args,
        run=run,
        step=step,
        rate=rate,
        homes=[Database(clock, args.cores, flush, args.places) for _ in range(databases)],
        chosen=chosen,
        clock=clock,
        drawn=drawn,
    )


def _spread(args: Namespace, databases: int, how: str, rate: float) -> Row:
    """Tenants of very different sizes (the n-th has 1/n of the first one's runs) on databases."""
    drawn = random.Random(args.seed)  # noqa: S311 - no secret
    sizes = [1 / number for number in range(1, args.tenants + 1)]
    placed = (
        _by_hash(sizes, databases, drawn) if how == "by hash" else _largest_first(sizes, databases)
    )
    loads = [
        sum(s for s, at in zip(sizes, placed, strict=True) if at == d) for d in range(databases)
    ]
    seen = _load(args, rate, databases, drawn, lambda: drawn.choices(placed, sizes)[0]).done()
    return {
        "table": "Several databases, each at 70 % of its CPU if all were equal",
        "databases": databases,
        "tenants placed": how,
        "runs a second": rate,
        "fullest over mean": max(loads) / statistics.mean(loads),
        "largest tenant, share of a database": sizes[0] / sum(sizes) * databases,
        "database in a step, p99 ms": 1_000 * _p99(seen.delays),
    }


def _by_hash(sizes: list[float], databases: int, drawn: random.Random) -> list[int]:
    return [drawn.randrange(databases) for _ in sizes]


def _largest_first(sizes: list[float], databases: int) -> list[int]:
    """Each tenant on the database that has least, the largest tenants first."""
    loads, placed = [0.0] * databases, list[int]()
    for size in sizes:
        least = loads.index(min(loads))
        loads[least] += size
        placed.append(least)
    return placed


def _come(load: Load) -> None:
    """Let a run begin, and the next one come."""
    home = load.homes[load.chosen()]
    load.clock.begin(_run(load, home), home)
    load.clock.after(load.drawn.expovariate(load.rate), lambda: _come(load))


def _run(load: Load, home: Database) -> Process:
    came, seen = load.clock.now, load.seen
    yield "place", 0.0
    if came > load.warm:
        seen.waits.append(load.clock.now - came)
    yield from _asked(load.run)
    for _ in range(load.args.steps):
        yield "sleep", load.args.model_seconds * load.drawn.lognormvariate(0.0, 0.6)
        began = load.clock.now
        yield from _asked(load.step)
        if began > load.warm:
            seen.delays.append(load.clock.now - began)
    home.leave()


def _asked(costs: Costs) -> Process:
    """The work of a database for a part: a flush after each piece."""
    pieces = max(1, round(costs.flushes))
    for _ in range(pieces):
        yield "cpu", costs.cpu / pieces
        yield "flush", 0.0


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))] if values else 0.0


if __name__ == "__main__":
    publish("capacity_simulation", arguments().parse_args(), main)

"""What a turn of a long session costs, and what is lost when workers are killed in their turns.

A long session: its turns are simple requests, each one call of a model that takes 0.2 s. The turns
about number 10 are compared with the last ones; those between are written into the store as they
would be, without their runs. Bytes are all that the process
writes (Linux), or PostgreSQL into its log.

Killed workers: processes take the turns of many sessions from one database, and each is killed
again and again, at a random moment of a turn. The turn is delivered again, to whoever is free. Each
turn is a plan of one step with an effect outside, known by its idempotency key.

Racing clients: two processes send a turn of one session at the same moment, again and again. Who is
refused sends its turn again.
"""

import asyncio
import contextlib
import multiprocessing
import queue
import random
import statistics
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import psycopg
from reporting import Row, options, publish

from replan import Host, Specialist, Storage, Team, open_storage
from replan.errors import SessionBusyError
from replan.ports.session_store import SessionKey, SessionTurn
from replan.sessions import ClientAgentAdapter, build_agent
from replan.testing import Reply, ScriptedModel, always

LATENCY = 0.2
"""Seconds of a call of a model."""

MEASURED = 5
"""Turns before and behind the one that is measured, of which the median counts."""

ANSWER = "---\ncomplexity: simple\n---\n" + "Rome is the capital of Italy. " * 15
PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker\n"
COMPLETE = "---\nverdict: complete\n---\nDone."


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--turns", type=int, default=1_000, help="turns of the long session")
    parser.add_argument("--sessions", type=int, default=8, help="sessions of the killed workers")
    parser.add_argument("--of-each", type=int, default=5, help="turns of each of them")
    parser.add_argument("--workers", type=int, default=4, help="processes that take turns")
    parser.add_argument("--kills", type=int, help="kills of each worker (default 5, long 25)")
    parser.add_argument("--races", type=int, help="races of two clients (default 60, long 1,000)")
    parser.add_argument("--only-races", action="store_true", help="leave the rest out")
    parser.add_argument("--seed", type=int, default=1, help="draws the moments of kills")
    parser.add_argument("--postgres", help="the DSN of an empty PostgreSQL database")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure a long session in each store, then kill workers."""
    args.kills = args.kills or (25 if args.long else 5)
    args.races = args.races or (1_000 if args.long else 60)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        stores = {"SQLite": f"{folder}/a.sqlite", "encrypted SQLite": f"{folder}/b.sqlite"}
        if args.postgres:
            stores["PostgreSQL"] = args.postgres
        for name, where in ({} if args.only_races else stores).items():
            key = "a key" if name.startswith("encrypted") else None
            row = asyncio.run(grown(where, key, args.turns))
            rows.append({"table": "A long session", "store": name, **row})
        if not args.only_races:
            where = args.postgres or f"{folder}/c.sqlite"
            row = Supervisor(where, Path(folder) / "effects", args).row()
            rows.append({"table": "Killed workers", **row})
        for name, where in {"SQLite": f"{folder}/d.sqlite", "PostgreSQL": args.postgres}.items():
            if where:
                row = raced(where, args.races)
                rows.append({"table": "Racing clients", "store": name, **row})
    return rows


async def grown(where: str, key: str | None, turns: int) -> Row:
    """Take turns at the beginning of a session and at its end, and compare them."""
    seconds, written = dict[int, float](), dict[int, int]()
    model = ScriptedModel({"think": always(Reply(ANSWER, latency=LATENCY))})
    early = range(10 - MEASURED, 10 + MEASURED + 1)
    late = range(turns - 2 * MEASURED, turns + 1)
    async with open_storage(where, key=key) as storage:
        client = ClientAgentAdapter(storage, build_agent(team(model)))
        for number in (*range(1, early.stop), *late):
            if number == late.start:
                await filled(storage, early.stop, late.start)
            before, began = _written(where), time.perf_counter()
            result = await client.process("long", f"Request {number}: " + "and so on " * 20)
            seconds[number] = time.perf_counter() - began
            written[number] = _written(where) - before
            if not result.success:
                raise RuntimeError(result.error)
    return {
        "turns": turns,
        "bytes of a late turn by those of turn 10": _ratio(written, early, late),
        "time of a late turn by that of turn 10": _ratio(seconds, early, late),
        "kB of turn 10": statistics.median(written[each] for each in early) / 1000,
        "own ms of turn 10": 1000 * (statistics.median(seconds[each] for each in early) - LATENCY),
        "own ms of a late turn": 1000 * (statistics.median(seconds[n] for n in late) - LATENCY),
    }


async def filled(storage: Storage, first: int, end: int) -> None:
    """Append turns as the last one that was taken, without their runs."""
    key = SessionKey("", "", "long")
    kept = await storage.sessions.load(key)
    before = await storage.sessions.load(key, first - 2)
    if kept is None or before is None:
        raise RuntimeError("The session has not begun.")
    updates = before.context.updates_to(kept.context)
    at = datetime.fromtimestamp(time.time(), UTC)
    for number in range(first, end):
        turn = SessionTurn(turn_id=str(number), at=at, given="a digest", updates=updates)
        await storage.sessions.append(key, turn, number - 1)


def _ratio(values: dict[int, Any], early: range, late: range) -> float:
    before = statistics.median(values[each] for each in early)
    return float(statistics.median(values[each] for each in late) / before)


def _written(where: str) -> int:
    """The bytes that this process has handed to the system, or a PostgreSQL to its log."""
    if where.startswith("postgresql"):
        with psycopg.connect(where) as connection:
            row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        return 0 if row is None else int(row[0])
    fields = Path("/proc/self/io").read_text().split()
    return int(fields[fields.index("wchar:") + 1])


def team(model: Any, effects: Path | None = None) -> Team:
    """A team of one worker, who writes down what it did."""

    def work(_: object, idempotency_key: str) -> str:
        if effects is not None:
            with effects.open("a") as file:
                file.write(f"{idempotency_key}\n")
        return "done"

    worker = Specialist(name="worker", intended_use="Works.", run=work)
    return Team(host=Host(model=model), specialists=[worker])


RACE = "race"
"""The session that two clients race on."""


def raced(where: str, races: int) -> Row:
    """Let two clients send a turn at the same moment, as often, and count what became of them."""
    clients = [started(race, where) for _ in range(2)]
    refused = calls = 0
    errors = Counter[str]()
    for number in range(races):
        for name, (client, _) in zip("ab", clients, strict=True):
            client.send(f"{name}{number}")
        for client, _ in clients:
            busy, asked, error = client.recv()
            refused, calls = refused + busy, calls + asked
            errors[error] += bool(error)
    for client, process in clients:
        client.send("")
        process.join()
    said, versions = asyncio.run(_kept(where))
    return {
        "races": races,
        "turns": 2 * races,
        "lost": 2 * races - len(said),
        "doubled": said.total() - len(said),
        "versions": versions,
        "model calls": calls,
        "refusals": refused,
        "errors": errors.total(),
    }


async def _kept(where: str) -> tuple[Counter[str], int]:
    async with open_storage(where) as storage:
        client = ClientAgentAdapter(storage, build_agent(team(ScriptedModel({}))))
        kept = await client.export(RACE)
        again = await client.process(RACE, "a0", turn_id="a0")
    said = Counter(str(each.content) for each in kept.dialogue_history if each.role == "user")
    if again.response != "Rome.":
        raise RuntimeError(f"a turn that is delivered again gives {again.response!r}")
    return said, len(kept.dialogue_history) // 2


def race(connection: Connection, where: str) -> None:
    """Send turns when told to, until told nothing."""
    asyncio.run(_racing(connection, where))


async def _racing(connection: Connection, where: str) -> None:
    model = ScriptedModel({"think": always("---\ncomplexity: simple\n---\nRome.")})
    async with open_storage(where) as storage:
        client = ClientAgentAdapter(storage, build_agent(team(model)))
        connection.send("ready")
        while turn := await asyncio.to_thread(connection.recv):
            refused, before, result = 0, len(model.calls), None
            while result is None:
                try:
                    result = await client.process(RACE, turn, turn_id=turn)
                except SessionBusyError:
                    refused += 1
            connection.send((refused, len(model.calls) - before, result.error))


def started(target: Callable[..., None], *given: str) -> tuple[Connection, Any]:
    """Start a process that says when it is ready."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sessions", "replan.testing", "replan.sessions.client.adapter"])
    mine, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *given))
    process.start()
    mine.recv()
    return mine, process


def serve(connection: Connection, where: str, effects: str) -> None:
    """Take turns, one after the other, until the process is killed."""
    asyncio.run(_served(connection, where, Path(effects)))


async def _served(connection: Connection, where: str, effects: Path) -> None:
    replies = {"think": PLAN, "feedback": COMPLETE}
    model = ScriptedModel({k: always(Reply(v, latency=LATENCY)) for k, v in replies.items()})
    agent = build_agent(team(model, effects))
    async with open_storage(where) as storage:
        client = ClientAgentAdapter(storage, agent)
        connection.send("ready")
        while True:
            session, turn = await asyncio.to_thread(connection.recv)
            while True:
                with contextlib.suppress(SessionBusyError):
                    result = await client.process(session, turn, turn_id=turn)
                    break
            connection.send(result.error or result.response)


@dataclass
class Supervisor:
    """Hands turns to workers, kills workers, and counts what became of the turns."""

    where: str
    effects: Path
    args: Namespace
    killed: int = 0
    delivered: int = 0
    errors: list[str] = field(default_factory=list[str])

    def row(self) -> Row:
        """Do it, and count."""
        self.effects.touch()
        sessions: queue.Queue[list[str]] = queue.Queue()
        for number in range(self.args.sessions):
            sessions.put([f"s{number}/{turn}" for turn in range(self.args.of_each)])
        threads = [
            threading.Thread(target=self._supervise, args=(sessions, seed))
            for seed in range(self.args.workers)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return {
            "workers": self.args.workers,
            "kills": self.killed,
            "turns": self.args.sessions * self.args.of_each,
            "deliveries": self.delivered,
            **asyncio.run(self._counted()),
            "errors": len(self.errors),
        }

    def _supervise(self, sessions: "queue.Queue[list[str]]", seed: int) -> None:
        draw = random.Random(f"{self.args.seed}/{seed}")  # noqa: S311 - no secret
        kills, worker, process = 0, None, cast("Any", None)
        while True:
            try:
                turns = sessions.get_nowait()
            except queue.Empty:
                break
            if worker is None:
                worker, process = started(serve, self.where, str(self.effects))
            worker.send((turns[0].partition("/")[0], turns[0]))
            self.delivered += 1
            dies = kills < self.args.kills and draw.random() < 0.8  # noqa: PLR2004
            if dies and not worker.poll(draw.uniform(0, 4 * LATENCY)):
                process.kill()
                process.join()
                kills, worker = kills + 1, None
                self.killed += 1
            else:
                told = worker.recv()
                if told != "Done.":
                    self.errors.append(told)
                turns.pop(0)
            if turns:
                sessions.put(turns)
        if process is not None:
            process.kill()
            process.join()

    async def _counted(self) -> Row:
        said = Counter[str]()
        async with open_storage(self.where) as storage:
            client = ClientAgentAdapter(storage, build_agent(team(ScriptedModel({}))))
            for number in range(self.args.sessions):
                context = await client.export(f"s{number}")
                said += Counter(
                    str(each.content) for each in context.dialogue_history if each.role == "user"
                )
        turns = self.args.sessions * self.args.of_each
        keys = self.effects.read_text().split()
        return {
            "lost": turns - len(said),
            "doubled": sum(said.values()) - len(said),
            "effects by their keys beyond one a turn": len(set(keys)) - turns,
            "calls that a service knew again": len(keys) - len(set(keys)),
        }


if __name__ == "__main__":
    publish("Sessions", arguments().parse_args(), main)

"""What a turn of a long session costs, what races do, and what many sessions at once take.

A long session: its turns are simple requests, each one call of a model that takes 0.2 s. The turns
about number 10 are compared with the last ones; those between are written into the store as they
would be, without their runs. Bytes are all that the process writes (Linux), or PostgreSQL into its
log.

Races: two processes send a turn of one session at the same moment, again and again. Who is refused
sends its turn again.

At once: turns of sessions that keep nothing, all in one process, next to those of a LangGraph graph
whose only node asks the same model over HTTP, with LangChain's own client and with Replan's.
"""

import asyncio
import statistics
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import at_once
import http_workloads
import psycopg
from harness import Row, child, forked, judged, options, publish, serving, stores
from http_runs import OUR_CLIENT, SIDES

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
LEAST_RATE = 0.8
MOST = {
    "kB": {"simple": 100, "planned": 500},
    "kB that stays": {"simple": 2, "planned": 2},
    "lag of the loop, p99, ms of CPU": {"simple": 150, "planned": 150},
    "slowest over median": {"simple": 2, "planned": 2},
}
"""Of one session, by the kind of its turns."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups (default all)")
    add("--turns", type=int, default=1_000, help="turns of the long session")
    add("--races", type=int, help="races of two clients (default 60, long 1,000)")
    add("--sessions", type=int, default=1_000, help="sessions at once")
    add("--repeat", type=int, default=3, help="pairs of processes with sessions at once")
    add("--postgres", action="store_true", help="also in a PostgreSQL of its own")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure the groups that are asked for."""
    args.races = args.races or (1_000 if args.long else 60)
    return [row for group in args.only for row in GROUPS[group](args)]


def _long(args: Namespace) -> list[Row]:
    rows: list[Row] = []
    with stores(with_postgres=args.postgres) as places, tempfile.TemporaryDirectory() as folder:
        for name, where in {**places, "encrypted SQLite": f"{folder}/encrypted.db"}.items():
            key = "a key" if name.startswith("encrypted") else None
            row = asyncio.run(grown(where, key, args.turns))
            rows.append({"table": "A long session", "store": name, **row})
    return rows


def _races(args: Namespace) -> list[Row]:
    with stores(with_postgres=args.postgres) as places:
        return [
            {"table": "Racing clients", "store": name, **raced(where, args.races)}
            for name, where in places.items()
        ]


def _at_once(args: Namespace) -> list[Row]:
    with serving(http_workloads.__file__) as base_url:
        return [row for kind in at_once.MODELS for row in _together(kind, base_url, args)]


def _together(kind: str, base_url: str, args: Namespace) -> list[Row]:
    # A graph of one node has no plan to compare with.
    sides = list(SIDES) if kind == "simple" else ["Replan"]
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(args.repeat):
        for side in sides:
            words = (side, kind, str(args.sessions), base_url)
            taken[side].append(child(at_once.__file__, *words))
    middle = {
        side: {name: statistics.median(one[name] for one in each) for name in each[0]}
        for side, each in taken.items()
    }
    row = {"table": f"{args.sessions:,} sessions at once, {at_once.TURNS} {kind} turns each"}
    rows = [
        {
            **row,
            "what": f"{name} of a session" if name in ("CPU", "kB", "kB that stays") else name,
            "LangGraph": middle.get("LangGraph", {}).get(name),
            **judged(middle["Replan"][name], name="Replan", most=most[kind]),
        }
        for name, most in MOST.items()
    ]
    for side in [each for each in sides if each != "Replan"]:
        pairs = list(zip(taken["Replan"], taken[side], strict=True))
        rate = statistics.median(ours["a second"] / bare["a second"] for ours, bare in pairs)
        least = LEAST_RATE if side != OUR_CLIENT else None
        calls = middle["Replan"]["function calls"] / middle[side]["function calls"]
        for what, told in (
            ("turns a second", judged(rate, name="Replan", least=least)),
            ("function calls", judged(calls, name="Replan")),
        ):
            rows.append({**row, "what": f"{what} over {side}'s", "LangGraph": 1.0, **told})
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


def team(model: Any) -> Team:
    """A team of one worker, whom nobody asks."""
    worker = Specialist(name="worker", intended_use="Works.", run=lambda _: "done")
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
    context = forked("sessions", "replan.sessions.client.adapter")
    mine, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *given))
    process.start()
    mine.recv()
    return mine, process


GROUPS: dict[str, Callable[[Namespace], list[Row]]] = {
    "long": _long,
    "races": _races,
    "at-once": _at_once,
}


if __name__ == "__main__":
    publish("sessions", arguments().parse_args(), main)

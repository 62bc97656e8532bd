"""Runs that are killed, and runs that lose their thread: count what went wrong when they ended.

Each run is a random plan in a process of its own, whose steps report to a server in this process,
which nobody kills, that they begin.

Killed: the process gets SIGKILL again and again, and the run is resumed each time. After each kill
the log is read: what is on record there must never begin again, nothing may have begun before what
it waits for was on record, and what a person has answered on record is never asked again. In each
run a plan is approved, and every fourth step asks a question.

Taken: the process loses its hold of the thread, or is stopped and loses it, or is stopped alone;
then a process of another clock continues the run, and sends the thread another message; then the
first one wakes. The steps must not be done twice.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any

import psycopg
from harness import Row, forked, options, publish, stores
from langgraph.checkpoint.base import id as ids
from langgraph.types import Command
from plans import Shape, random_dag

from replan import (
    ExecutionContext,
    Host,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_storage,
    run,
    waiting_for,
)
from replan.errors import ThreadBusyError
from replan.testing import ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
NEXT = "And then?"
ASKING = 4
"""Every fourth step asks a person."""

PLAN = "the plan"
"""By what the approval of a run's plan is known here."""

LOSSES = ("cut off", "stopped and cut off", "stopped")
CLOCKS = (0, -3_600, 3_600, -365 * 86_400)
"""Seconds by which the clock of the second process is wrong."""

LONGEST = 120.0
"""Seconds after which a process that nobody kills counts as one that hangs."""

PATIENCE = 15.0
"""Seconds that the second process has before the first one wakes."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--only", nargs="+", choices=KINDS, default=list(KINDS), help="kinds (default all)")
    add("--runs", type=int, help="runs of each kind in each store (default 10, long 300)")
    add("--steps", type=int, default=16, help="steps of each plan")
    add("--kills", type=int, default=8, help="kills of one run at most")
    add("--seed", type=int, default=1, help="the seed of the first run")
    add("--longest", type=float, default=0.6, help="seconds before a kill or a loss, at most")
    add("--postgres", action="store_true", help="also in a PostgreSQL of its own")
    return parser


def main(args: Namespace) -> list[Row]:
    """Torture runs of each kind in each store."""
    args.runs = args.runs or (300 if args.long else 10)
    with stores(with_postgres=args.postgres) as places, witness() as seen:
        return [
            _row(kind, name, where, seen, args)
            for kind in args.only
            for name, where in places.items()
        ]


def _row(kind: str, name: str, where: str, seen: "Witness", args: Namespace) -> Row:
    of_kind, told, wrong = KINDS[kind]
    total = Counter[str]()
    for seed in range(args.seed, args.seed + args.runs):
        one = of_kind(where, f"{kind}-{name.lower()}-{seed}", args, seen, seed)
        found = one.carry_out()
        if faults := {each: found[each] for each in wrong if found[each]}:
            print(f"{kind}, {name}, seed {seed}: {faults}", file=sys.stderr, flush=True)
        total += found
    figures = {each: total[each] for each in (*told, *wrong)}
    return {"table": f"Runs: {kind}", "store": name, "runs": args.runs, **figures}


@dataclass
class Witness:
    """What the steps of all runs reported, in the order in which it arrived."""

    port: int = 0
    begun: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    ended: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one report, and confirm it."""
        line = await reader.readline()
        if not line:  # it was killed before it could say anything
            writer.close()
            return
        told = json.loads(line)
        if "step" in told:
            self.begun.append((told["run"], told["step"]))
        elif "asked" in told:
            self.asked.append((told["run"], told["asked"]))
        else:
            self.ended[told["run"]] = told
        with contextlib.suppress(ConnectionError):  # who reported may be dead by now
            writer.write(b"heard\n")
            await writer.drain()
        writer.close()


@contextlib.contextmanager
def witness() -> Iterator[Witness]:
    """Listen in a thread of this process."""
    seen, loop = Witness(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listening = asyncio.start_server(seen.hear, "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(listening, loop).result()
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass(frozen=True)
class Record:
    """What a store has of a run: its attempts, its results, and what a person has answered."""

    attempts: list[int]
    texts: dict[int, str]
    answered: frozenset[str]

    def too_early(self, shape: Shape) -> int:
        """How many attempts began before the steps that they wait for were on record."""
        return sum(
            any(other not in self.texts for other in shape.waits[step]) for step in self.attempts
        )


@dataclass
class Tortured:
    """One run, with a random plan."""

    where: str
    run_id: str
    args: Namespace
    seen: Witness
    seed: int

    @property
    def shape(self) -> Shape:
        """Its plan."""
        return random_dag(self.args.steps, self.seed)

    def process(self, work: Callable[..., None], *given: object) -> BaseProcess:
        """Start a process that works on it."""
        started: BaseProcess = forked("torture").Process(
            target=work, args=(self.where, self.run_id, self.shape, self.seen.port, *given)
        )
        started.start()
        return started

    def begun(self, first: int = 0) -> list[int]:
        """The steps that began, of all reports from a number on."""
        return [step for run_id, step in self.seen.begun[first:] if run_id == self.run_id]

    async def on_record(self) -> Record:
        """Read its log."""
        async with open_storage(self.where) as storage:
            ledger = await storage.log.ledger(self.run_id)
            results = await storage.log.results(self.run_id)
            notes = await storage.log.notes(self.run_id)
        answered = {key.removeprefix("answer/") for key in notes if key.startswith("answer/")}
        if any(key.startswith("decision/") for key in notes):
            answered.add(PLAN)
        texts = {result.step_id: result.text for result in results.values()}
        return Record([entry.step_id for entry in ledger], texts, frozenset(answered))

    def lost(self, texts: Mapping[int, str]) -> Counter[str]:
        """The results that are missing in the end, or in another one's place."""
        right = expected(self.shape)
        swapped = sum(texts.get(step, text) != text for step, text in right.items())
        return Counter(lost=sum(step not in texts for step in right), swapped=swapped)


class Killed(Tortured):
    """A run whose process is killed, and which is resumed until it is done."""

    def carry_out(self) -> Counter[str]:
        """Count what happened, and what should not have."""
        drawn = random.Random(self.seed)  # noqa: S311 - the same draw on every run, no secret
        found, record = Counter[str](), Record([], {}, frozenset())
        for kill in range(self.args.kills + 1):
            heard, asked_before = len(self.seen.begun), len(self.seen.asked)
            is_last, before = kill == self.args.kills, record
            process = self.process(_work_killed, self.seed)
            process.join(LONGEST if is_last else drawn.uniform(0, self.args.longest))
            process.kill()
            process.join()
            found["recorded steps begun again"] += sum(
                step in before.texts for step in self.begun(heard)
            )
            asked = [key for own, key in self.seen.asked[asked_before:] if own == self.run_id]
            found["asked"] += len(asked)
            found["asked again"] += sum(key in before.answered for key in asked)
            record = asyncio.run(self.on_record())
            found["lost"] += sum(
                record.texts.get(step) != text for step, text in before.texts.items()
            )
            found["too early"] += record.too_early(self.shape)
            if process.exitcode == 0:
                break
            found["hung"] += int(is_last)
            found["kills"] += 1
            found["recorded at a kill"] += len(record.texts)
        mine = Counter(self.begun())
        found["begun twice"] = sum(count - 1 for count in mine.values())
        found["unaccounted"] = (mine - Counter(record.attempts)).total()
        told = self.seen.ended.get(self.run_id, {})
        found["completed"] = int(told.get("outcome") == "completed")
        return found + self.lost({int(step): text for step, text in told.get("texts", {}).items()})


class TakenAway(Tortured):
    """A run whose process loses its thread, and the process that continues it."""

    def carry_out(self) -> Counter[str]:
        """Count what happened, and what should not have."""
        drawn = random.Random(self.seed)  # noqa: S311 - the same draw on every run, no secret
        loss, clock = LOSSES[self.seed % len(LOSSES)], drawn.choice(CLOCKS)
        first = self.process(_work_alone, "first", 0)
        # The moment of the loss is drawn; it waits for nothing but the first step.
        latest = time.monotonic() + LONGEST
        while not self.begun() and time.monotonic() < latest:
            time.sleep(0.005)
        time.sleep(drawn.uniform(0, self.args.longest))
        if "stopped" in loss:
            _signal(first, signal.SIGSTOP)
        if "cut off" in loss:
            cut_off(self.where)
        second = self.process(_work_alone, "second", clock)
        # Who is stopped in the middle of a write to a SQLite file keeps others out until it wakes.
        second.join(drawn.uniform(0, 1) if loss == "stopped" else PATIENCE)
        _signal(first, signal.SIGCONT)
        found = Counter[str]()
        for process in (first, second):
            process.join(LONGEST)
            found["hung"] += int(process.is_alive())
            process.kill()
            process.join()
        return found + self._judged()

    def _judged(self) -> Counter[str]:
        record, newest = asyncio.run(self.on_record()), asyncio.run(self._newest())
        ended = [self.seen.ended.get(f"{self.run_id}/{name}", {}) for name in ("first", "second")]
        first, second = (str(each.get("outcome")) for each in ended)
        doubts = Counter[int](ended[1].get("doubts", []))
        begun = Counter(self.begun())
        return self.lost(record.texts) + Counter(
            {
                "lost their thread": int(first == "ThreadLostError"),
                "asked": doubts.total(),
                "too early": record.too_early(self.shape),
                "repeated": sum(max(0, n - 1 - doubts[step]) for step, n in begun.items()),
                "asked twice": sum(max(0, n - 1) for n in doubts.values()),
                "rolled back": int(newest != (NEXT, "completed")),
                "errors": int(first not in ("completed", "ThreadLostError"))
                + int(second != "completed"),
            }
        )

    async def _newest(self) -> tuple[str, str]:
        """The newest message of the thread, and how its run ended."""
        async with open_storage(self.where) as storage:
            graph = build_graph(_team(lambda _: "", "unsafe"), storage=storage)
            values = (await graph.aget_state(_thread(self.run_id))).values
        said = [each.text for each in values.get("messages", []) if each.type == "human"]
        return (said[-1] if said else "", str(values.get("outcome")))


def _signal(process: BaseProcess, number: signal.Signals) -> None:
    if process.pid is not None:
        with contextlib.suppress(ProcessLookupError):  # it may be over by now
            os.kill(process.pid, number)


def cut_off(where: str) -> None:
    """Let all holds of threads fall."""
    if not where.startswith("postgresql"):
        shutil.rmtree(f"{where}.held", ignore_errors=True)
        return
    held = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"{held} AND pid <> pg_backend_pid()")


def expected(shape: Shape) -> dict[int, str]:
    """The text of each step, which tells the texts of all that it waited for."""
    texts: dict[int, str] = {}
    for step, waits in shape.waits.items():
        texts[step] = text_of(step, {other: texts[other] for other in waits})
    return texts


def text_of(step: int, inputs: Mapping[int, str]) -> str:
    """A text that no other step and no other inputs would give."""
    told = json.dumps([step, sorted(inputs.items())])
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _team(work: Callable[..., Any], effects: Any, **more: Any) -> Team:
    model = ScriptedModel({"feedback": always(COMPLETE)})
    worker = Specialist(name="worker", intended_use="Looks into parts.", run=work, effects=effects)
    return Team(host=Host(model=model), specialists=[worker], **more)


def _thread(run_id: str) -> Any:
    return {"configurable": {"thread_id": run_id}}


async def _tell(port: int, told: Mapping[str, object]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{json.dumps(told)}\n".encode())
    await reader.readline()
    writer.close()


def _work_killed(where: str, run_id: str, shape: Shape, port: int, seed: int) -> None:
    asyncio.run(_until_killed(where, run_id, shape, port, seed))


async def _until_killed(where: str, run_id: str, shape: Shape, port: int, seed: int) -> None:
    """Start or resume the run, and answer as a person would."""
    drawn = random.Random(seed)  # noqa: S311 - as above
    seconds = {step: drawn.uniform(0.001, 0.03) for step in shape.waits}

    async def work(context: ExecutionContext) -> str:
        step = context.plan_step.id
        await _tell(port, {"run": run_id, "step": step})
        question = f"How is step {step} to be done?"
        if step % ASKING == 0 and ask_user(question) != _answer(question):
            return "answered by something else"
        await asyncio.sleep(seconds[step])
        return text_of(step, context.inputs)

    async with open_storage(where) as storage:
        graph = build_graph(_team(work, "pure", approval="plan"), storage=storage)
        known = (await graph.aget_state(_thread(run_id))).values
        given: Any = None if known else {"messages": [("user", "Go.")], "plan": shape.document}
        state = (await run(graph, given, config=_thread(run_id), run_id=run_id)).state
        while asked := waiting_for(state):
            is_plan = asked[0].kind == "plan"
            for question in asked:
                await _tell(port, {"run": run_id, "asked": PLAN if is_plan else question.key})
            answers = {
                question.key: "approve" if is_plan else _answer(question.text) for question in asked
            }
            given = Command(resume=answers)
            state = (await run(graph, given, config=_thread(run_id), run_id=run_id)).state
        results = state.get("current_specialist_results", {}).values()
        texts = {result.step_id: result.text for result in results}
        await _tell(port, {"run": run_id, "outcome": state.get("outcome"), "texts": texts})


def _answer(question: str) -> str:
    return f"Well: {question}"


def _work_alone(where: str, run_id: str, shape: Shape, port: int, name: str, clock: int) -> None:
    really = time.time_ns
    ids.time = type("clock", (), {"time_ns": staticmethod(lambda: really() + clock * 10**9)})
    asyncio.run(_until_taken(where, run_id, shape, port, name))


async def _until_taken(where: str, run_id: str, shape: Shape, port: int, name: str) -> None:
    drawn = random.Random(run_id)  # noqa: S311 - as above
    seconds = {step: drawn.uniform(0.02, 0.2) for step in shape.waits}
    doubts: list[int] = []

    async def work(context: ExecutionContext) -> str:
        step = context.plan_step.id
        await _tell(port, {"run": context.run_id, "step": step})
        await asyncio.sleep(seconds[step])
        return text_of(step, context.inputs)

    try:
        async with open_storage(where, patience=LONGEST) as storage:
            graph = build_graph(_team(work, "unsafe"), storage=storage)
            if name == "first":
                given = {"messages": [("user", "Go.")], "plan": shape.document}
                ran = await run(graph, given, config=_thread(run_id), run_id=run_id)
                outcome = ran.outcome
            else:
                outcome = await _continued(graph, run_id, doubts)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        outcome = type(error).__name__
    await _tell(port, {"run": f"{run_id}/{name}", "outcome": outcome, "doubts": doubts})


async def _continued(graph: Any, run_id: str, doubts: list[int]) -> str:
    """Continue a run as soon as nobody else works on it, and send its thread a message."""
    thread, state = _thread(run_id), None
    while state is None:
        try:
            state = (await run(graph, None, config=thread, run_id=run_id)).state
        except ThreadBusyError:
            await asyncio.sleep(0.01)
    while asked := waiting_for(state):
        doubts.extend(int(question.step_id) for question in asked)
        answers = {question.key: "run again" for question in asked}
        state = (await run(graph, Command(resume=answers), config=thread, run_id=run_id)).state
    given = {"messages": [("user", NEXT)], "plan": "- [ ] 1. Look once more @worker\n"}
    return (await run(graph, given, config=thread, run_id=f"{run_id}-next")).outcome


KINDS: dict[str, tuple[type[Any], tuple[str, ...], tuple[str, ...]]] = {
    "killed": (
        Killed,
        ("completed", "kills", "recorded at a kill", "begun twice", "asked"),
        (
            *("recorded steps begun again", "asked again", "lost"),
            *("swapped", "too early", "unaccounted", "hung"),
        ),
    ),
    "taken": (
        TakenAway,
        ("lost their thread", "asked"),
        (
            *("lost", "swapped", "too early", "repeated"),
            *("asked twice", "rolled back", "hung", "errors"),
        ),
    ),
}
"""How a run is tortured, what is counted, and what of it must not be."""


if __name__ == "__main__":
    publish("torture", arguments().parse_args(), main)

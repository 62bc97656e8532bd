"""Take threads away from runs that live, and count what went wrong.

Each run is a random plan of steps that must not be done twice. Its process loses its hold of the
thread, or is stopped and loses it, or is stopped alone; then a process of another clock goes on
with the run, and sends the thread another message; then the first one wakes. Steps report that they
begin to a server in this process, as in `torture.py`.
"""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

from killing import processes
from plans import Shape, random_dag
from reporting import Row, options, publish
from torture import (
    COMPLETE,
    Witness,
    _tell,
    _thread,
    expected,
    stores,
    text_of,
    witness,
)

TABLE = "Owners that lose their thread"
KINDS = ("cut off", "stopped and cut off", "stopped")
CLOCKS = (0, -3_600, 3_600, -365 * 86_400)
"""Seconds by which the clock of the second process is wrong."""

LONGEST = 60.0
"""Seconds after which a process counts as one that hangs."""

PATIENCE = 15.0
"""Seconds that the second process has before the first one wakes."""

NEXT = "And then?"
WRONG = ("lost", "swapped", "too early", "repeated", "asked twice", "rolled back", "hung", "errors")


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--owners", type=int, help="owners for each store (default 6, long 100)")
    parser.add_argument("--steps", type=int, default=12, help="steps of each plan")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first owner")
    parser.add_argument("--longest", type=float, default=0.8, help="seconds before the loss")
    parser.add_argument("--postgres", help="the DSN of a PostgreSQL; without it SQLite alone")
    return parser


def main(args: Namespace) -> list[Row]:
    """Do it in each store."""
    args.owners = args.owners or (100 if args.long else 6)
    with tempfile.TemporaryDirectory() as folder, witness() as seen:
        return [_row(name, where, seen, args) for name, where in stores(folder, args).items()]


def _row(name: str, where: str, seen: Witness, args: Namespace) -> Row:
    total = Counter[str]()
    for seed in range(args.seed, args.seed + args.owners):
        total += Duel(where, f"{name.lower()}-{seed}", args, seen, seed).carry_out()
    counted = {"owners": args.owners, "lost their thread": total["taken"]}
    counted |= {"asked": total["asked"], **{key: total[key] for key in WRONG}}
    return {"table": TABLE, "store": name, **counted}


@dataclass
class Duel:
    """A run whose process loses its thread, and the process that goes on with it."""

    where: str
    run_id: str
    args: Namespace
    seen: Witness
    seed: int

    def carry_out(self) -> Counter[str]:
        """Count what happened, and what should not have."""
        drawn = random.Random(self.seed)  # noqa: S311 - the same draw on every run, no secret
        kind, clock = KINDS[self.seed % len(KINDS)], drawn.choice(CLOCKS)
        first = self._start("first", 0)
        # The moment of the loss is drawn; it waits for nothing but the first step.
        self._until(lambda: any(run == self.run_id for run, _ in self.seen.begun))
        time.sleep(drawn.uniform(0, self.args.longest))
        if "stopped" in kind:
            _signal(first, signal.SIGSTOP)
        if "cut off" in kind:
            cut_off(self.where)
        second = self._start("second", clock)
        # Who is stopped in the middle of a write to a SQLite file keeps others out until it wakes.
        second.join(drawn.uniform(0, 1) if kind == "stopped" else PATIENCE)
        _signal(first, signal.SIGCONT)
        found = Counter[str]()
        for process in (first, second):
            process.join(LONGEST)
            found["hung"] += int(process.is_alive())
            process.kill()
            process.join()
        return found + self._judged()

    def _start(self, name: str, clock: int) -> BaseProcess:
        shape = random_dag(self.args.steps, self.seed)
        process: BaseProcess = processes(["torture"]).Process(
            target=_work, args=(self.where, self.run_id, name, clock, shape, self.seen.port)
        )
        process.start()
        return process

    def _until(self, happened: Any) -> None:
        latest = time.monotonic() + LONGEST
        while not happened() and time.monotonic() < latest:
            time.sleep(0.005)

    def _judged(self) -> Counter[str]:
        shape = random_dag(self.args.steps, self.seed)
        right = expected(shape)
        entries, texts, newest = asyncio.run(self._on_record())
        first, second = (self.seen.ended.get(f"{self.run_id}/{n}", {}) for n in ("first", "second"))
        doubts = Counter[int](second.get("doubts", []))
        begun = Counter(step for run, step in self.seen.begun if run == self.run_id)
        return Counter(
            {
                "taken": int(first.get("outcome") == "ThreadLostError"),
                "asked": doubts.total(),
                "lost": sum(step not in texts for step in right),
                "swapped": sum(texts.get(step, text) != text for step, text in right.items()),
                "too early": sum(
                    any(other not in texts for other in shape.waits[step]) for step in entries
                ),
                "repeated": sum(max(0, n - 1 - doubts[step]) for step, n in begun.items()),
                "asked twice": sum(max(0, n - 1) for n in doubts.values()),
                "rolled back": int(newest != (NEXT, "completed")),
                "errors": int(first.get("outcome") not in ("completed", "ThreadLostError"))
                + int(second.get("outcome") != "completed"),
            }
        )

    async def _on_record(self) -> tuple[list[int], dict[int, str], tuple[str, str]]:
        from replan import open_storage  # noqa: PLC0415

        async with open_storage(self.where) as storage:
            ledger = await storage.log.ledger(self.run_id)
            results = (await storage.log.results(self.run_id)).values()
            graph = _graph(storage, None)
            values = (await graph.aget_state(_thread(self.run_id))).values
        said = [each.text for each in values.get("messages", []) if each.type == "human"]
        newest = (said[-1] if said else "", str(values.get("outcome")))
        return [each.step_id for each in ledger], {r.step_id: r.text for r in results}, newest


def _signal(process: BaseProcess, number: signal.Signals) -> None:
    if process.pid is not None:
        with contextlib.suppress(ProcessLookupError):  # it may be over by now
            os.kill(process.pid, number)


def cut_off(where: str) -> None:
    """Let all holds of threads fall."""
    if not where.startswith("postgresql"):
        shutil.rmtree(f"{where}.held", ignore_errors=True)
        return
    import psycopg  # noqa: PLC0415 - an extra

    held = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"{held} AND pid <> pg_backend_pid()")


def _graph(storage: Any, work: Any) -> Any:
    from replan import Host, Specialist, Team, build_graph  # noqa: PLC0415
    from replan.testing import ScriptedModel, always  # noqa: PLC0415

    model = ScriptedModel({"feedback": always(COMPLETE)})
    worker = Specialist(
        name="worker", intended_use="Looks into parts.", run=work or text_of, effects="unsafe"
    )
    config = Team(host=Host(model=model), specialists=[worker])
    return build_graph(config, storage=storage)


def _work(where: str, run_id: str, name: str, clock: int, shape: Shape, port: int) -> None:
    from langgraph.checkpoint.base import id as ids  # noqa: PLC0415

    really = time.time_ns
    ids.time = type("clock", (), {"time_ns": staticmethod(lambda: really() + clock * 10**9)})
    asyncio.run(_worked(where, run_id, name, shape, port))


async def _worked(where: str, run_id: str, name: str, shape: Shape, port: int) -> None:
    from replan import ExecutionContext, open_storage  # noqa: PLC0415

    drawn = random.Random(run_id)  # noqa: S311
    seconds = {step: drawn.uniform(0.02, 0.2) for step in shape.waits}

    async def work(context: ExecutionContext) -> str:
        step = context.plan_step.id
        await _tell(port, {"run": context.run_id, "step": step})
        await asyncio.sleep(seconds[step])
        return text_of(step, context.inputs)

    doubts: list[int] = []
    try:
        async with open_storage(where, patience=LONGEST) as storage:
            graph = _graph(storage, work)
            outcome = await _carried_out(graph, run_id, name, shape, doubts)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        outcome = type(error).__name__
    await _tell(port, {"run": f"{run_id}/{name}", "outcome": outcome, "doubts": doubts})


async def _carried_out(graph: Any, run_id: str, name: str, shape: Shape, doubts: list[int]) -> str:
    from langgraph.types import Command  # noqa: PLC0415

    from replan import run, waiting_for  # noqa: PLC0415

    thread = _thread(run_id)
    given: Any = {"messages": [("user", "Go.")], "plan": shape.document}
    if name == "first":
        return (await run(graph, given, config=thread, run_id=run_id)).outcome
    state = await _patiently(graph, None, run_id)
    while asked := waiting_for(state):
        doubts.extend(int(question.step_id) for question in asked)
        answers = {question.key: "run again" for question in asked}
        state = (await run(graph, Command(resume=answers), config=thread, run_id=run_id)).state
    given = {"messages": [("user", NEXT)], "plan": "- [ ] 1. Look once more @worker\n"}
    state = (await run(graph, given, config=thread, run_id=f"{run_id}-next")).state
    return str(state.get("outcome"))


async def _patiently(graph: Any, given: Any, run_id: str) -> Any:
    """Go on with a run as soon as nobody else works on it."""
    from replan import run  # noqa: PLC0415
    from replan.errors import ThreadBusyError  # noqa: PLC0415

    while True:
        try:
            return (await run(graph, given, config=_thread(run_id), run_id=run_id)).state
        except ThreadBusyError:
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    publish("Owners", arguments().parse_args(), main)

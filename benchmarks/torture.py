"""Kill runs at random instants, resume them until they are done, and count what went wrong.

Each run is a random plan whose steps report to a server in this process, which nobody kills, that
they begin. The run itself is a process that gets SIGKILL again and again. After each kill the
log is read: what is on record there must never begin again, nothing may have begun before what
it waits for was on record, and what a person has answered on record is never asked again: in each
run a plan is approved, and every fourth step asks a question.
"""

import asyncio
import contextlib
import hashlib
import json
import random
import sys
import tempfile
import threading
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killing import killed_once
from plans import Shape, random_dag
from reporting import Row, options, publish

COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
TABLE = "Runs that were killed and resumed"
WRONG = (
    "recorded steps begun again",
    "asked again",
    "lost",
    "swapped",
    "too early",
    "unaccounted",
    "hung",
)
ASKING = 4
"""Every fourth step asks a person."""

PLAN = "the plan"
"""By what the approval of a run's plan is known here."""

LONGEST = 120.0
"""Seconds after which a process that nobody kills counts as one that hangs."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--runs", type=int, help="runs for each store (default 10, long 300)")
    parser.add_argument("--steps", type=int, default=20, help="steps of each plan")
    parser.add_argument("--kills", type=int, default=8, help="kills of one run at most")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    parser.add_argument("--longest", type=float, default=0.6, help="seconds before a kill, at most")
    parser.add_argument("--postgres", help="the DSN of a PostgreSQL; without it SQLite alone")
    return parser


def main(args: Namespace) -> list[Row]:
    """Torture each store."""
    args.runs = args.runs or (300 if args.long else 10)
    with tempfile.TemporaryDirectory() as folder, witness() as seen:
        return [_row(name, where, seen, args) for name, where in stores(folder, args).items()]


def stores(folder: str, args: Namespace) -> dict[str, str]:
    """A SQLite file in a folder, and the PostgreSQL that was named, if one was."""
    found = {"SQLite": str(Path(folder) / "runs.db")}
    return found | {"PostgreSQL": args.postgres} if args.postgres else found


def _row(name: str, where: str, seen: "Witness", args: Namespace) -> Row:
    total = Counter[str]()
    for seed in range(args.seed, args.seed + args.runs):
        found = Torture(where, f"{name.lower()}-{seed}", args, seen, seed).carry_out()
        if wrong := {key: found[key] for key in WRONG if found[key]}:
            print(f"{name}, seed {seed}: {wrong}", file=sys.stderr, flush=True)
        total += found
    counted = {"runs": args.runs, "completed": total["completed"], "kills": total["kills"]}
    counted |= {"recorded at a kill": total["recorded"], "begun twice": total["begun again"]}
    counted |= {"asked": total["asked"]}
    return {"table": TABLE, "store": name, **counted, **{key: total[key] for key in WRONG}}


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


@dataclass
class Torture:
    """One run: killed and resumed until it is done."""

    where: str
    run_id: str
    args: Namespace
    seen: Witness
    seed: int

    def carry_out(self) -> Counter[str]:
        """Count what happened, and what should not have."""
        drawn = random.Random(self.seed)  # noqa: S311 - the same draw on every run, no secret
        shape = random_dag(self.args.steps, self.seed)
        found, recorded, answered = Counter[str](), dict[int, str](), frozenset[str]()
        for kill in range(self.args.kills + 1):
            heard, asked_before = len(self.seen.begun), len(self.seen.asked)
            is_last = kill == self.args.kills
            ended = self._run_once(LONGEST if is_last else drawn.uniform(0, self.args.longest))
            begun = [step for run, step in self.seen.begun[heard:] if run == self.run_id]
            found["recorded steps begun again"] += sum(step in recorded for step in begun)
            asked = [key for run, key in self.seen.asked[asked_before:] if run == self.run_id]
            found["asked"] += len(asked)
            found["asked again"] += sum(key in answered for key in asked)
            found["hung"] += int(is_last and not ended)
            entries, results, answered = asyncio.run(self._on_record())
            found["lost"] += sum(results.get(step) != text for step, text in recorded.items())
            found["too early"] += sum(
                any(other not in results for other in shape.waits[step]) for step, _ in entries
            )
            recorded = results
            if ended:
                break
            found["kills"] += 1
            found["recorded"] += len(recorded)
        mine = Counter(step for run, step in self.seen.begun if run == self.run_id)
        accounted = Counter(step for step, _ in entries)
        found["begun again"] += sum(count - 1 for count in mine.values())
        found["unaccounted"] += sum((mine - accounted).values())
        return found + self._judged(shape)

    def _judged(self, shape: Shape) -> Counter[str]:
        """Look at what the run brought in the end."""
        told = self.seen.ended.get(self.run_id, {})
        texts = {int(step): text for step, text in told.get("texts", {}).items()}
        right = expected(shape)
        return Counter(
            {
                "completed": int(told.get("outcome") == "completed"),
                "lost": sum(step not in texts for step in right),
                "swapped": sum(texts.get(step, text) != text for step, text in right.items()),
            }
        )

    def _run_once(self, seconds: float | None) -> bool:
        """Start or resume the run, and kill it after so many seconds; whether it ended itself."""
        given = (self.where, self.run_id, self.args.steps, self.seed, self.seen.port)
        return killed_once(_work, given, lambda process: process.join(seconds), ["torture"]) == 0

    async def _on_record(self) -> tuple[list[tuple[int, int]], dict[int, str], frozenset[str]]:
        from replan import open_storage  # noqa: PLC0415

        async with open_storage(self.where) as storage:
            ledger = await storage.log.ledger(self.run_id)
            results = await storage.log.results(self.run_id)
            notes = await storage.log.notes(self.run_id)
        entries = [(entry.step_id, entry.number) for entry in ledger]
        answered = {key.removeprefix("answer/") for key in notes if key.startswith("answer/")}
        if any(key.startswith("decision/") for key in notes):
            answered.add(PLAN)
        texts = {result.step_id: result.text for result in results.values()}
        return entries, texts, frozenset(answered)


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


def _work(where: str, run_id: str, steps: int, seed: int, port: int) -> None:
    asyncio.run(_worked(where, run_id, random_dag(steps, seed), seed, port))


async def _worked(where: str, run_id: str, shape: Shape, seed: int, port: int) -> None:
    from replan import (  # noqa: PLC0415
        ExecutionContext,
        Host,
        Specialist,
        Team,
        ask_user,
        build_graph,
        open_storage,
    )
    from replan.testing import ScriptedModel, always  # noqa: PLC0415

    drawn = random.Random(seed)  # noqa: S311
    seconds = {step: drawn.uniform(0.001, 0.03) for step in shape.waits}

    async def work(context: ExecutionContext) -> str:
        step = context.plan_step.id
        await _tell(port, {"run": run_id, "step": step})
        if step % ASKING == 0 and ask_user(_question(step)) != _answer(_question(step)):
            return "answered by something else"
        await asyncio.sleep(seconds[step])
        return text_of(step, context.inputs)

    model = ScriptedModel({"feedback": always(COMPLETE)})
    team = [Specialist(name="worker", intended_use="Looks into parts.", run=work, effects="pure")]
    config = Team(host=Host(model=model), specialists=team, approval="plan")
    async with open_storage(where) as storage:
        graph = build_graph(config, storage=storage)
        known = await graph.aget_state(_thread(run_id))
        given = None if known.values else {"messages": [("user", "Go.")], "plan": shape.document}
        state = await _answered(graph, given, run_id, port)
        results = state.get("current_specialist_results", {}).values()
        texts = {result.step_id: result.text for result in results}
        await _tell(port, {"run": run_id, "outcome": state.get("outcome"), "texts": texts})


async def _answered(graph: Any, given: Any, run_id: str, port: int) -> Any:
    """Run to the end, and answer as a person would."""
    from langgraph.types import Command  # noqa: PLC0415

    from replan import run, waiting_for  # noqa: PLC0415

    state = (await run(graph, given, config=_thread(run_id), run_id=run_id)).state
    while asked := waiting_for(state):
        if asked[0].kind == "plan":
            await _tell(port, {"run": run_id, "asked": PLAN})
            answer: Any = {asked[0].key: "approve"}
        else:
            for question in asked:
                await _tell(port, {"run": run_id, "asked": question.key})
            answer = {question.key: _answer(question.text) for question in asked}
        given = Command(resume=answer)
        state = (await run(graph, given, config=_thread(run_id), run_id=run_id)).state
    return state


def _question(step: int) -> str:
    return f"How is step {step} to be done?"


def _answer(question: str) -> str:
    return f"Well: {question}"


def _thread(run_id: str) -> Any:
    return {"configurable": {"thread_id": run_id}}


async def _tell(port: int, told: Mapping[str, object]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{json.dumps(told)}\n".encode())
    await reader.readline()
    writer.close()


if __name__ == "__main__":
    publish("Torture", arguments().parse_args(), main)

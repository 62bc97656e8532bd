"""What a step costs beside its work: Replan over LangGraph alone, in memory and with SQLite.

The steps do nothing, so what is measured is the runtime, in CPU time of this process. With SQLite,
Replan has its own storage and LangGraph its `AsyncSqliteSaver`, with `durability="sync"`. Both take
turns, and a ratio is the median of the pairs. Calls of functions are those of the event loop's
thread alone; they are the same on every machine. What a result takes in the file is counted after a
run with long results. A turn is one of a session that keeps nothing, next to a graph of one node
that asks the same model.
"""

import asyncio
import gc
import sqlite3
import statistics
import tempfile
import time
import zlib
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, closing
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from agents_at_once import graph_turn
from critical_path import wave_run, worker_team
from http_runs import REQUEST
from plans import Shape, chain, flat
from profiling import functions_called
from reporting import Row, judged, options, publish
from stored import fresh_saver

from replan import Host, Specialist, Team, build_graph, open_runtime, run
from replan.sessions import AgentContext, build_agent
from replan.testing import ScriptedModel, always

MOST_CPU = {("flat", "SQLite"): 7.0}
MOST_COPIES = 3
MOST_SIZE = 6
SHAPES = {"flat": flat, "chain": chain}

_ANSWERED = "---\ncomplexity: simple\nnext_action: direct_answer\n---\nThey grew."
_MARK = "result of step {}: "
_WORDS = 500  # of a result: 2.3 kB
_STEPS_KEPT = 24
_TURNS = 20

Begin = Callable[[], Awaitable[object]]
Sides = dict[str, Begin]
"""Begins a run of LangGraph alone, and one of Replan."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--steps", type=int, nargs="+", help="steps of the plans (default 50)")
    parser.add_argument("--repeat", type=int, help="pairs of runs (default 7)")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure each shape in memory and with SQLite, what is stored, and a turn."""
    args.steps = args.steps or ([10, 50, 200] if args.long else [50])
    args.repeat = args.repeat or (15 if args.long else 7)
    return asyncio.run(_rows(args))


async def _rows(args: Namespace) -> list[Row]:
    rows = [
        await _row_of_steps(name, steps, kept, args.repeat)
        for kept in KEPT
        for name in SHAPES
        for steps in args.steps
    ]
    return [*rows, *await _rows_of_file(), await _row_of_turn(args.repeat)]


async def _row_of_steps(name: str, steps: int, kept: str, repeat: int) -> Row:
    async with aclosing(KEPT[kept](SHAPES[name](steps))) as opened:
        sides = await anext(opened)
        row = {"table": "CPU of a step over a bare node", "plan": name, "steps": steps}
        most = MOST_CPU.get((name, kept))
        return {**row, "kept in": kept, **await _compared(sides, repeat, most)}


async def _compared(sides: Sides, repeat: int, most: float | None = None) -> Row:
    """Both sides in turn, after a first run of each that pays for what is loaded once."""
    taken: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(repeat + 1):
        for side, begin in sides.items():
            gc.collect()
            began = time.process_time()
            await begin()
            if turn:
                taken[side].append(time.process_time() - began)
    called = {side: await functions_called(begin) for side, begin in sides.items()}
    ratios = [b / a for a, b in zip(taken["LangGraph"], taken["Replan"], strict=True)]
    return {
        "lowest": min(ratios),
        "highest": max(ratios),
        "function calls": called["Replan"] / called["LangGraph"],
        **judged(statistics.median(ratios), most=most),
    }


async def _in_memory(shape: Shape) -> AsyncGenerator[Sides]:
    graph = build_graph(worker_team(shape, _nothing))
    yield {"LangGraph": wave_run(shape, _nothing), "Replan": partial(run, graph, _given(shape))}


async def _in_sqlite(shape: Shape) -> AsyncGenerator[Sides]:
    numbers = count()
    team = worker_team(shape, _nothing)
    async with (
        fresh_saver() as (saver, path),
        open_runtime(team, storage=path.with_name("runs.sqlite")) as runtime,
    ):

        async def bare() -> object:
            return await wave_run(shape, _nothing, saver=saver, thread=str(next(numbers)))()

        yield {"LangGraph": bare, "Replan": partial(runtime.run, _given(shape))}


KEPT: Mapping[str, Callable[[Shape], AsyncGenerator[Sides]]] = {
    "memory": _in_memory,
    "SQLite": _in_sqlite,
}


async def _rows_of_file() -> list[Row]:
    """What a chain of steps with long results leaves, each result with a beginning of its own."""
    words = Path(__file__).with_name("README.md").read_text(encoding="utf-8").split()

    async def work(step: int) -> str:
        # Words in another order for each step: as compressible as any text.
        return _MARK.format(step) + " ".join(Random(step).choices(words, k=_WORDS))  # noqa: S311 - no secret

    shape = chain(_STEPS_KEPT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        async with open_runtime(worker_team(shape, work), storage=path) as runtime:
            result = await runtime.run(_given(shape))
        texts = sum(len(each.text) for each in result.results.values())
        copies = _copies(path, _MARK.format(_STEPS_KEPT // 2))
        size = path.stat().st_size
    row = {"table": f"What {_STEPS_KEPT} results take in the SQLite file"}
    return [
        {**row, "what": "copies of a result", **judged(copies, most=MOST_COPIES)},
        {**row, "what": "size of the file over the texts", **judged(size / texts, most=MOST_SIZE)},
    ]


def _copies(path: Path, text: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("select name from sqlite_master where type = 'table'").fetchall()
        values = [
            value if isinstance(value, bytes) else str(value).encode()
            for (table,) in tables
            for row in database.execute(f"select * from {table}")  # noqa: S608 - the file's own
            for value in row
        ]
    return sum(_unpacked(value).count(text.encode()) for value in values)


def _unpacked(value: bytes) -> bytes:
    """A value as it was before the storage compressed it."""
    return zlib.decompress(value) if value.startswith(b"x\x01") else value


async def _row_of_turn(repeat: int) -> Row:
    model = ScriptedModel({"think": always(_ANSWERED)})
    worker = Specialist("worker", "Looks into parts.", run=lambda _: "Done.")
    agent = build_agent(Team(Host(model), [worker]))
    turn, new = graph_turn("simple", "", model_of=lambda *_: model)

    async def ours() -> None:
        for _ in range(_TURNS):
            context = AgentContext(session_id="benchmark")
            context.apply((await agent.process(REQUEST, context)).context_updates)

    async def bare() -> None:
        for _ in range(_TURNS):
            await turn(new)

    row = {"table": "CPU of a turn in memory over a graph of one node"}
    return {**row, **await _compared({"LangGraph": bare, "Replan": ours}, repeat)}


def _given(shape: Shape) -> dict[str, Any]:
    return {"messages": [("user", REQUEST)], "plan": shape.document}


async def _nothing(step: int) -> str:
    return f"text {step}"


if __name__ == "__main__":
    publish("step_cost", arguments().parse_args(), main)

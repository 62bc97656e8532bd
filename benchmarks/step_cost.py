"""What a step costs beside its work: Replan over LangGraph alone, in memory and with SQLite.

The steps do nothing, so what is measured is the runtime, in CPU time. With SQLite, Replan has its
own storage and LangGraph its `AsyncSqliteSaver`, with `durability="sync"`. Calls of functions are
those of the event loop's thread alone; they are the same on every machine. A turn is one of a
session that keeps nothing, next to a graph of one node that asks the same model.
"""

import asyncio
import operator
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

from at_once import graph_turn
from harness import Row, cpu_over, functions_called, in_turns, judged, options, publish
from http_runs import REQUEST
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from plans import Shape, chain, flat

from replan import ExecutionContext, Host, Limits, Specialist, Team, build_graph, open_runtime, run
from replan.sessions import AgentContext, build_agent
from replan.testing import ScriptedModel, always

MOST_CPU = {("flat", "SQLite"): 7.0}
SHAPES = {"flat": flat, "chain": chain}

_ANSWERED = "---\ncomplexity: simple\nnext_action: direct_answer\n---\nThey grew."
_COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
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
    """Measure each shape in memory and with SQLite, and a turn."""
    args.steps = args.steps or ([10, 50, 200] if args.long else [50])
    args.repeat = args.repeat or (15 if args.long else 7)
    return asyncio.run(_rows(args))


async def _rows(args: Namespace) -> list[Row]:
    rows: list[Row] = []
    for kept, opened in KEPT.items():
        for name, shape in SHAPES.items():
            for steps in args.steps:
                async with aclosing(opened(shape(steps))) as sides:
                    compared = await _compared(
                        await anext(sides), args.repeat, MOST_CPU.get((name, kept))
                    )
                row = {"table": "CPU of a step over a bare node", "plan": name, "steps": steps}
                rows.append({**row, "kept in": kept, **compared})
    row = {"table": "CPU of a turn in memory over a graph of one node"}
    return [*rows, {**row, **await _compared(_turns(), args.repeat)}]


async def _compared(sides: Sides, repeat: int, most: float | None = None) -> Row:
    taken = await in_turns(sides, repeat)
    called = {side: await functions_called(begin) for side, begin in sides.items()}
    pairs = list(zip(taken["Replan"], taken["LangGraph"], strict=True))
    ratios = [ours.cpu / bare.cpu for ours, bare in pairs]
    return {
        "lowest": min(ratios),
        "highest": max(ratios),
        "function calls": called["Replan"] / called["LangGraph"],
        **judged(cpu_over(taken["Replan"], taken["LangGraph"]), most=most),
    }


async def _in_memory(shape: Shape) -> AsyncGenerator[Sides]:
    graph = build_graph(worker_team(shape, _nothing))
    yield {"LangGraph": wave_run(shape), "Replan": partial(run, graph, given(shape))}


async def _in_sqlite(shape: Shape) -> AsyncGenerator[Sides]:
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        async with (
            AsyncSqliteSaver.from_conn_string(str(path / "checkpoints.sqlite")) as saver,
            open_runtime(worker_team(shape, _nothing), storage=path / "runs.sqlite") as runtime,
        ):
            await saver.setup()

            async def bare() -> object:
                return await wave_run(shape, saver=saver, thread=str(next(numbers)))()

            yield {"LangGraph": bare, "Replan": partial(runtime.run, given(shape))}


KEPT: Mapping[str, Callable[[Shape], AsyncGenerator[Sides]]] = {
    "memory": _in_memory,
    "SQLite": _in_sqlite,
}


def worker_team(shape: Shape, work: Callable[[int], Awaitable[str]]) -> Team:
    """A team that does the steps of a plan, all at once if it may; the host only judges."""

    async def do(context: ExecutionContext) -> str:
        return await work(context.plan_step.id)

    steps = len(shape.waits)
    return Team(
        host=Host(model=ScriptedModel({"feedback": always(_COMPLETE)})),
        specialists=[Specialist("worker", "Looks into parts.", run=do, effects="pure")],
        limits=Limits(max_steps=steps, max_parallel_steps=steps),
    )


def given(shape: Shape) -> dict[str, Any]:
    """The input of a run whose plan is handed in."""
    return {"messages": [("user", REQUEST)], "plan": shape.document}


async def _nothing(step: int) -> str:
    return f"text {step}"


class Waves(TypedDict):
    """The state of a plan in waves: the results by step."""

    results: Annotated[dict[int, str], operator.or_]


class Sent(TypedDict):
    """One step of a wave, with the results that it waited for."""

    step: int
    inputs: dict[int, str]


def wave_run(shape: Shape, *, saver: Any = None, thread: str = "") -> Begin:
    """A run of the plan on LangGraph alone: one `Send` per ready step, then a join, then the next.

    The join is a node of its own, as in LangGraph's own guides: an edge from the steps themselves
    would be followed once for each of them.
    """

    def next_wave(state: Waves) -> list[Send] | str:
        results = state["results"]
        sends = [
            Send("work", Sent(step=step, inputs={other: results[other] for other in waits}))
            for step, waits in shape.waits.items()
            if step not in results and all(other in results for other in waits)
        ]
        return sends or END

    async def work(sent: Sent) -> dict[str, dict[int, str]]:
        return {"results": {sent["step"]: await _nothing(sent["step"])}}

    def join(_: Waves) -> dict[str, Any]:
        return {}

    graph = StateGraph(Waves)
    graph.add_node("work", work)
    graph.add_node("join", join)
    graph.add_conditional_edges(START, next_wave, ["work", END])
    graph.add_edge("work", "join")
    graph.add_conditional_edges("join", next_wave, ["work", END])
    compiled = graph.compile(checkpointer=saver)
    durability = {} if saver is None else {"durability": "sync"}
    config: Any = {
        "recursion_limit": 2 * len(shape.waits) + 2,
        "configurable": {"thread_id": thread},
    }
    return partial(compiled.ainvoke, {"results": {}}, config, **durability)


def _turns() -> Sides:
    model = ScriptedModel({"think": always(_ANSWERED)})
    worker = Specialist("worker", "Looks into parts.", run=lambda _: "Done.")
    agent = build_agent(Team(Host(model), [worker]))
    turn = graph_turn(model)

    async def ours() -> None:
        for _ in range(_TURNS):
            context = AgentContext(session_id="benchmark")
            context.apply((await agent.process(REQUEST, context)).context_updates)

    async def bare() -> None:
        for _ in range(_TURNS):
            await turn([])

    return {"LangGraph": bare, "Replan": ours}


if __name__ == "__main__":
    publish("step_cost", arguments().parse_args(), main)

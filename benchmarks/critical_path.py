"""How long a plan takes next to its critical path: Replan, LangGraph in waves, asyncio alone.

The steps sleep, since sleep is the work that is simulated here. Every time is divided by the
critical path of its plan, so 1.00 is the bound that nothing can go below.
"""

import asyncio
import gc
import operator
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from plans import Shape, latencies, random_dag
from reporting import Row, options, publish

from replan import ExecutionContext, Host, Limits, Specialist, Team, build_graph, run
from replan.testing import ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
TABLE = "Wall time over the critical path"

Work = Callable[[int], Awaitable[str]]
Start = Callable[[], Awaitable[Mapping[Any, Any]]]


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--seeds", type=int, nargs="+", help="one plan for each (default 1 to 6)")
    parser.add_argument("--steps", type=int, default=50, help="steps of each plan")
    parser.add_argument("--scale", type=float, default=1.0, help="makes all steps slower or faster")
    parser.add_argument("--repeat", type=int, help="runs of each kind per plan (default 1)")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure each plan, all kinds in turn, and end with the medians."""
    args.seeds = args.seeds or list(range(1, 21 if args.long else 7))
    args.repeat = args.repeat or (3 if args.long else 1)
    return asyncio.run(_rows(args))


async def _rows(args: Namespace) -> list[Row]:
    await _measured(random_dag(5, 0), {}, repeat=1)
    rows = [await _row(seed, args) for seed in args.seeds]
    measured = [key for key in rows[0] if isinstance(rows[0][key], float)]
    medians = {key: statistics.median(row[key] for row in rows) for key in measured}
    return [*rows, {"table": TABLE, "seed": "median", "edges": None, "waves": None, **medians}]


async def _row(seed: int, args: Namespace) -> Row:
    shape = random_dag(args.steps, seed)
    seconds = latencies(shape, seed, scale=args.scale)
    bound = shape.critical_path(seconds)
    times = await _measured(shape, seconds, repeat=args.repeat)
    return {
        "table": TABLE,
        "seed": seed,
        "edges": sum(map(len, shape.waits.values())),
        "waves": len(shape.waves),
        "waves at best": shape.wave_time(seconds) / bound,
        "LangGraph in waves": times["waves"] / bound,
        "Replan": times["replan"] / bound,
        "asyncio alone": times["asyncio"] / bound,
    }


async def _measured(shape: Shape, seconds: Mapping[int, float], *, repeat: int) -> dict[str, float]:
    """The median time of each kind, which take turns so that a slow moment hits all of them."""

    async def work(step: int) -> str:
        await asyncio.sleep(seconds.get(step, 0.0))
        return f"text {step}"

    starts = {
        "waves": wave_run(shape, work),
        "replan": replan_run(shape, work),
        "asyncio": asyncio_run(shape, work),
    }
    times: dict[str, list[float]] = {kind: [] for kind in starts}
    for _ in range(repeat):
        for kind, start in starts.items():
            times[kind].append(await timed(start, len(shape.waits)))
    return {kind: statistics.median(taken) for kind, taken in times.items()}


async def timed(start: Start, steps: int) -> float:
    """The seconds of one run that must bring a result for each step.

    Raises:
        RuntimeError: It did not.
    """
    gc.collect()
    began = time.perf_counter()
    results = await start()
    took = time.perf_counter() - began
    if len(results) != steps:
        msg = f"{len(results)} of {steps} steps have a result."
        raise RuntimeError(msg)
    return took


def worker_team(shape: Shape, work: Work) -> Team:
    """A team that does the steps of a plan, all at once if it may; the host only judges."""

    async def specialist(context: ExecutionContext) -> str:
        return await work(context.plan_step.id)

    steps = max(1, len(shape.waits))
    return Team(
        host=Host(model=ScriptedModel({"feedback": always(COMPLETE)})),
        specialists=[Specialist("worker", "Looks into parts.", run=specialist, effects="pure")],
        limits=Limits(max_steps=steps, max_parallel_steps=steps),
    )


def replan_run(shape: Shape, work: Work) -> Start:
    """A run of the plan by Replan, handed in as a document."""
    graph = build_graph(worker_team(shape, work))
    given = {"messages": [("user", "Look into all parts.")], "plan": shape.document}

    async def start() -> Mapping[Any, Any]:
        return (await run(graph, given)).state["current_specialist_results"]

    return start


class Waves(TypedDict):
    """The state of a plan in waves: the results by step."""

    results: Annotated[dict[int, str], operator.or_]


class Sent(TypedDict):
    """One step of a wave, with the results that it waited for."""

    step: int
    inputs: dict[int, str]


def wave_run(shape: Shape, work: Work, *, saver: Any = None, thread: str = "") -> Start:
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

    async def work_node(sent: Sent) -> dict[str, dict[int, str]]:
        return {"results": {sent["step"]: await work(sent["step"])}}

    def join(_: Waves) -> dict[str, Any]:
        return {}

    graph = StateGraph(Waves)
    graph.add_node("work", work_node)
    graph.add_node("join", join)
    graph.add_conditional_edges(START, next_wave, ["work", END])
    graph.add_edge("work", "join")
    graph.add_conditional_edges("join", next_wave, ["work", END])
    compiled = graph.compile(checkpointer=saver)
    durability = {} if saver is None else {"durability": "sync"}
    config = {
        "recursion_limit": 2 * len(shape.waves) + 2,
        "configurable": {"thread_id": thread},
    }

    async def start() -> Mapping[Any, Any]:
        state = await compiled.ainvoke({"results": {}}, config, **durability)
        return state["results"]

    return start


def asyncio_run(shape: Shape, work: Work) -> Start:
    """The steps as bare tasks: what is over 1.00 here is the machine's, not a framework's."""

    async def start() -> Mapping[Any, Any]:
        tasks: dict[int, asyncio.Task[str]] = {}

        async def step(number: int) -> str:
            for other in shape.waits[number]:
                await tasks[other]
            return await work(number)

        for number in shape.waits:
            tasks[number] = asyncio.ensure_future(step(number))
        return {number: await task for number, task in tasks.items()}

    return start


if __name__ == "__main__":
    publish("critical_path", arguments().parse_args(), main)

"""What a run costs over HTTP, next to LangGraph alone making the same calls in the same run.

The model is the project's own test server, in a process of its own, which takes 0.2 s a call.
LangGraph alone has LangChain's `ChatOpenAI` as it comes; where it says so, it has the client that
Replan makes of a model's name, which takes less CPU. "Unheard" is `replan.run` next to `ainvoke`;
"heard" is `replan.stream`, whose events have every token, next to LangGraph's `messages` mode. The
group `many` needs Linux.
"""

import asyncio
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import nullcontext

import at_once
import http_workloads
from harness import (
    Row,
    busy,
    child,
    cpu_over,
    functions_called,
    in_turns,
    judged,
    options,
    publish,
    serving,
)
from http_runs import OUR_CLIENT, SIDES, Begin, Ran
from http_workloads import WORKLOADS, Workload

MOST_CPU = {("fan-out", "unheard"): 2.0, ("fan-out", "heard"): 1.2}
MOST_WALL_BUSY = {"dag": 1.05}
MOST_WALL_BUSY_ELSE = 1.08
LEAST_RATE = 0.8
MOST_KB_AT_ONCE = 500
SPINNING = 2

HOW = ("unheard", "heard")


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups (default all)")
    add("--workloads", nargs="+", choices=WORKLOADS, help="workloads (default all)")
    add("--repeat", type=int, help="turns (default 5)")
    add("--at-once", type=int, help="runs at once in the group many (default 100)")
    add("--fast", action="store_true", help="a smoke run: one turn, few runs, one workload")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure the groups that are asked for."""
    args.repeat = args.repeat or (1 if args.fast else 11 if args.long else 5)
    args.workloads = args.workloads or (["fan-out"] if args.fast else list(WORKLOADS))
    args.at_once = args.at_once or (10 if args.fast else 100)
    with serving(http_workloads.__file__) as base_url:
        return [row for group in args.only for row in GROUPS[group](base_url, args)]


def _cpu(base_url: str, args: Namespace) -> list[Row]:
    workloads = [WORKLOADS[name] for name in args.workloads]
    return [
        row for each in workloads for row in asyncio.run(_cpu_rows(each, base_url, args.repeat))
    ]


async def _cpu_rows(workload: Workload, base_url: str, repeat: int) -> list[Row]:
    kinds = {
        (side, how): _checked(workload, make(workload, base_url, heard=how == "heard"))
        for how in HOW
        for side, make in SIDES.items()
    }
    taken = await in_turns(kinds, repeat)
    called = {kind: await functions_called(begin) for kind, begin in kinds.items()}
    rows: list[Row] = []
    for how in HOW:
        bare, ours = taken["LangGraph", how], taken["Replan", how]
        most = MOST_CPU.get((workload.model, how))
        rows.append(
            {
                "table": "CPU of a run over LangGraph alone",
                "workload": workload.name,
                "tokens are": how,
                "calls": workload.calls,
                "tokens heard: LangGraph": bare[0].value.tokens,
                "tokens heard: Replan": ours[0].value.tokens,
                "function calls": called["Replan", how] / called["LangGraph", how],
                "over one with Replan's client": cpu_over(ours, taken[OUR_CLIENT, how]),
                **judged(cpu_over(ours, bare), most=most),
            }
        )
    return rows


def _checked(workload: Workload, begin: Begin) -> Begin:
    """A run that must make exactly the calls of its workload.

    Raises:
        RuntimeError: It made others.
    """

    async def checked() -> Ran:
        ran = await begin()
        if ran.calls != workload.calls:
            msg = f"{ran.calls} instead of the {workload.calls} calls of {workload.name}."
            raise RuntimeError(msg)
        return ran

    return checked


def _wall(base_url: str, args: Namespace) -> list[Row]:
    rows: list[Row] = []
    for machine, spinning in (("quiet", 0), ("busy", SPINNING)):
        with busy(spinning) if spinning else nullcontext():
            for name in args.workloads:
                row = asyncio.run(_wall_row(WORKLOADS[name], base_url, machine, args.repeat))
                rows.append(row)
    return rows


async def _wall_row(workload: Workload, base_url: str, machine: str, repeat: int) -> Row:
    kinds = {
        side: _checked(workload, SIDES[side](workload, base_url))
        for side in ("LangGraph", "Replan")
    }
    taken = await in_turns(kinds, repeat)
    times = {
        side: statistics.median(each.seconds for each in runs) / workload.critical_path
        for side, runs in taken.items()
    }
    most = MOST_WALL_BUSY.get(workload.model, MOST_WALL_BUSY_ELSE) if machine == "busy" else None
    return {
        "table": "Wall time over the critical path",
        "machine": machine,
        "workload": workload.name,
        "critical path, s": workload.critical_path,
        "LangGraph": times["LangGraph"],
        **judged(times["Replan"], name="Replan", most=most),
    }


def _many(base_url: str, args: Namespace) -> list[Row]:
    """Let the sides make many runs at once in turn, each time in a new process."""
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(args.repeat):
        for side in SIDES:
            words = (side, "fan-out", str(args.at_once), base_url)
            taken[side].append(child(at_once.__file__, *words))
    table = f"{args.at_once} runs of the fan-out at once"
    rows: list[Row] = []
    for side in ("LangGraph", OUR_CLIENT):
        rate, cpu = (
            statistics.median(
                a[of] / b[of] for a, b in zip(taken["Replan"], taken[side], strict=True)
            )
            for of in ("a second", "CPU")
        )
        least = LEAST_RATE if side == "LangGraph" else None
        row = {"table": f"{table}, over those of {side}"}
        rows += [
            {**row, "what": "runs a second", **judged(rate, least=least)},
            {**row, "what": "CPU of a run", **judged(cpu)},
        ]
    for side, each in taken.items():
        kilobytes = statistics.median(one["kB"] for one in each)
        most = MOST_KB_AT_ONCE if side == "Replan" else None
        told = judged(kilobytes, name="kB", most=most)
        rows.append({"table": f"Memory of each of {table}", "side": side, **told})
    return rows


GROUPS: dict[str, Callable[[str, Namespace], list[Row]]] = {
    "cpu": _cpu,
    "wall": _wall,
    "many": _many,
}


if __name__ == "__main__":
    publish("over_http", arguments().parse_args(), main)

"""What a run costs over HTTP, next to LangGraph alone making the same calls in the same run.

The model is the project's own test server, in a process of its own, which takes 0.2 s a call. All
kinds that are compared take turns, and a figure is the median of the turns. CPU is that of this
process alone. LangGraph alone has LangChain's `ChatOpenAI` as it comes; where it says so, it has
the client that Replan makes of a model's name, which takes less CPU. "Unheard" is `replan.run` next
to `ainvoke`; "heard" is `replan.stream`, whose events have every token, next to LangGraph's
`messages` mode. The groups `many` and `memory` need Linux.
"""

import asyncio
import gc
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TypeVar

from busy import busy
from http_many import ALL_SIDES, OUR_CLIENT, SIDES, many
from http_model import serving
from http_runs import Begin, bare_run, calls_alone, replan_run
from http_workloads import WORKLOADS, Workload
from profiling import functions_called, profiled
from reporting import Row, judged, options, publish
from starting import IMPORT, starting

K = TypeVar("K")

MOST_CPU = {"fan-out": 2.0}
MOST_LISTENING = 1.2
MOST_IMPORT = 1.5
MOST_WALL_BUSY = {"dag": 1.05}
MOST_WALL_BUSY_ELSE = 1.08
LEAST_RATE = 0.8
MOST_KB_AT_ONCE = 500
MOST_KB_FINISHED = 10
SPINNING = 2

LISTENING = ("fan-out",)
HOW = ("unheard", "heard")


@dataclass(frozen=True)
class Taken:
    """What one run took.

    Attributes:
        seconds: Of the clock.
        cpu: Seconds of this process, all threads.
        tokens: Tokens that were heard.
    """

    seconds: float
    cpu: float
    tokens: int


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups (default all)")
    add("--workloads", nargs="+", choices=WORKLOADS, help="workloads (default all)")
    add("--repeat", type=int, help="turns (default 5)")
    add("--at-once", type=int, help="runs at once in the group many (default 100)")
    add("--finished", type=int, help="runs in the group memory (default 1,000)")
    add("--fast", action="store_true", help="a smoke run: one turn, few runs, one workload")
    add("--profile", type=int, metavar="RUNS", help="only show where the CPU of so many runs goes")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure the groups that are asked for."""
    args.repeat = args.repeat or (1 if args.fast else 11 if args.long else 5)
    args.workloads = args.workloads or (list(LISTENING) if args.fast else list(WORKLOADS))
    args.at_once = args.at_once or (10 if args.fast else 100)
    args.finished = args.finished or (40 if args.fast else 1_000)
    with serving() as base_url:
        if args.profile:
            return asyncio.run(_profiles(base_url, args))
        return [row for group in args.only for row in GROUPS[group](base_url, args)]


def _cpu(base_url: str, args: Namespace) -> list[Row]:
    return asyncio.run(_cpu_rows(base_url, args))


async def _cpu_rows(base_url: str, args: Namespace) -> list[Row]:
    rows: list[Row] = []
    for workload in _asked(args):
        kinds = _sides(workload, base_url, ALL_SIDES)
        taken = await in_turns(workload, kinds, args.repeat)
        called = {kind: await functions_called(begin) for kind, begin in kinds.items()}
        for how in HOW:
            bare, ours = taken["LangGraph", how], taken["Replan", how]
            rows.append(
                {
                    "table": "CPU of a run over LangGraph alone",
                    "workload": workload.name,
                    "tokens are": how,
                    "calls": workload.calls,
                    "tokens heard: LangGraph": bare[0].tokens,
                    "tokens heard: Replan": ours[0].tokens,
                    "function calls": called["Replan", how] / called["LangGraph", how],
                    "over one with Replan's client": _over(ours, taken[OUR_CLIENT, how], _cpu_of),
                    **judged(_over(ours, bare, _cpu_of), most=MOST_CPU.get(workload.model)),
                }
            )
    return rows


def _listening(base_url: str, args: Namespace) -> list[Row]:
    return asyncio.run(_listening_rows(base_url, args))


async def _listening_rows(base_url: str, args: Namespace) -> list[Row]:
    rows: list[Row] = []
    for workload in (WORKLOADS[name] for name in LISTENING):
        taken = await in_turns(workload, _sides(workload, base_url), args.repeat)
        added = {side: _difference(taken[side, "heard"], taken[side, "unheard"]) for side in SIDES}
        row = {"table": "CPU with every token heard", "workload": workload.name}
        whole = _over(taken["Replan", "heard"], taken["LangGraph", "heard"], _cpu_of)
        what = "a whole run over one in `messages` mode"
        rows.append({**row, "what": what, **judged(whole, most=MOST_LISTENING)})
        what = "what listening adds over what `messages` mode adds"
        rows.append({**row, "what": what, **judged(added["Replan"] / added["LangGraph"])})
        for side in SIDES:
            ratio = _over(taken[side, "heard"], taken[side, "unheard"], _cpu_of)
            rows.append({**row, "what": f"{side}: heard over unheard", **judged(ratio)})
    return rows


def _wall(base_url: str, args: Namespace) -> list[Row]:
    rows: list[Row] = []
    for machine, spinning in (("quiet", 0), ("busy", SPINNING)):
        with busy(spinning) if spinning else nullcontext():
            rows += [asyncio.run(_wall_row(each, base_url, machine, args)) for each in _asked(args)]
    return rows


async def _wall_row(workload: Workload, base_url: str, machine: str, args: Namespace) -> Row:
    kinds = {
        "calls alone": calls_alone(workload, base_url),
        "LangGraph": bare_run(workload, base_url, heard=False),
        "Replan": replan_run(workload, base_url, heard=False),
    }
    taken = await in_turns(workload, kinds, args.repeat)
    times = {
        kind: statistics.median(each.seconds for each in runs) / workload.critical_path
        for kind, runs in taken.items()
    }
    most = MOST_WALL_BUSY.get(workload.model, MOST_WALL_BUSY_ELSE) if machine == "busy" else None
    ours = times.pop("Replan")
    return {
        "table": "Wall time over the critical path",
        "machine": machine,
        "workload": workload.name,
        "critical path, s": workload.critical_path,
        **times,
        **judged(ours, name="Replan", most=most),
    }


def _many(base_url: str, args: Namespace) -> list[Row]:
    taken = _in_processes("together", args.at_once, args.repeat, base_url, tuple(ALL_SIDES))
    rows: list[Row] = []
    for side in ("LangGraph", OUR_CLIENT):
        row = {"table": f"{args.at_once} runs of the fan-out at once, over those of {side}"}
        rate, cpu = (
            statistics.median(
                ours[what] / bare[what]
                for bare, ours in zip(taken[side], taken["Replan"], strict=True)
            )
            for what in ("runs a second", "cpu of a run")
        )
        least = LEAST_RATE if side == "LangGraph" else None
        rows += [
            {**row, "what": "runs a second", **judged(rate, least=least)},
            {**row, "what": "CPU of a run", **judged(cpu)},
        ]
    # Of further tries, only Replan's are known: those of a bare client are its own.
    calls = {"what": "calls over those of the workload", **judged(taken["Replan"][-1]["calls"])}
    rows.append({"table": f"{args.at_once} runs of the fan-out at once", **calls})
    return rows + _memory_rows("Memory that each of them takes", taken, MOST_KB_AT_ONCE)


def _memory(base_url: str, args: Namespace) -> list[Row]:
    taken = _in_processes("finished", args.finished, 1, base_url, tuple(SIDES))
    table = f"Memory that stays of each of {args.finished:,} finished runs, without storage"
    return _memory_rows(table, taken, MOST_KB_FINISHED)


def _memory_rows(table: str, taken: Mapping[str, list[dict[str, float]]], most: float) -> list[Row]:
    kilobytes = {
        side: statistics.median(one["kB of a run"] for one in runs) for side, runs in taken.items()
    }
    return [
        {
            "table": table,
            "side": side,
            **judged(each, name="kB", most=most if side == "Replan" else None),
        }
        for side, each in kilobytes.items()
    ]


def _in_processes(
    kind: str, count: int, repeat: int, base_url: str, sides: Sequence[str]
) -> dict[str, list[dict[str, float]]]:
    """Let the sides make many runs in turn, each time in a new process."""
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(repeat):
        for side in sides:
            taken[side].append(many(side, kind, count, base_url))
    return taken


def _runs(_: str, args: Namespace) -> list[Row]:
    return [
        {
            "table": "CPU of a command over `import langgraph.graph`",
            "command": name,
            **judged(over, most=MOST_IMPORT if IMPORT in name else None),
        }
        for name, over in starting(args.repeat).items()
    ]


async def _profiles(base_url: str, args: Namespace) -> list[Row]:
    rows: list[Row] = []
    for workload in _asked(args):
        for (side, how), begin in _sides(workload, base_url).items():
            profile = await profiled(begin, args.profile)
            rows += profile.rows(f"{workload.name}, {side}, {how}", most=25)
    return rows


async def in_turns(
    workload: Workload, kinds: Mapping[K, Begin], repeat: int
) -> dict[K, list[Taken]]:
    """Make all kinds of runs in turn, so that a slow moment hits all of them.

    Raises:
        RuntimeError: One of them made other calls than those of its workload.
    """
    taken: dict[K, list[Taken]] = {kind: [] for kind in kinds}
    for turn in range(repeat + 1):
        for kind, begin in kinds.items():
            gc.collect()
            cpu, began = time.process_time(), time.perf_counter()
            ran = await begin()
            one = Taken(time.perf_counter() - began, time.process_time() - cpu, ran.tokens)
            if ran.calls != workload.calls:
                msg = f"{kind} made {ran.calls} of the {workload.calls} calls of {workload.name}."
                raise RuntimeError(msg)
            # The first turn pays for what is loaded and opened once.
            if turn:
                taken[kind].append(one)
    return taken


def _sides(
    workload: Workload, base_url: str, sides: Mapping[str, Callable[..., Begin]] = SIDES
) -> dict[tuple[str, str], Begin]:
    return {
        (side, how): make(workload, base_url, heard=how == "heard")
        for how in HOW
        for side, make in sides.items()
    }


def _asked(args: Namespace) -> list[Workload]:
    return [WORKLOADS[name] for name in args.workloads]


def _cpu_of(taken: Taken) -> float:
    return taken.cpu


def _over(ours: Sequence[Taken], bare: Sequence[Taken], of: Callable[[Taken], float]) -> float:
    return statistics.median(of(a) / of(b) for a, b in zip(ours, bare, strict=True))


def _difference(heard: Sequence[Taken], unheard: Sequence[Taken]) -> float:
    return statistics.median(a.cpu - b.cpu for a, b in zip(heard, unheard, strict=True))


GROUPS: dict[str, Callable[[str, Namespace], list[Row]]] = {
    "cpu": _cpu,
    "listening": _listening,
    "wall": _wall,
    "many": _many,
    "memory": _memory,
    "runs": _runs,
}


if __name__ == "__main__":
    publish("over_http", arguments().parse_args(), main)

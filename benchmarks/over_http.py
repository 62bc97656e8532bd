"""What a run costs over HTTP, next to bare LangGraph making the same calls in the same run.

The model is the project's own test server, in a process of its own, 0.2 s a call. All kinds that
are compared take turns; a figure is the median of the turns. CPU is that of this process alone.
"""

import asyncio
import gc
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass

from http_model import serving
from http_runs import Begin, bare_run, replan_run
from http_workloads import WORKLOADS, Workload
from reporting import Row, options, publish

MOST_CPU = 2.0


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
    parser.add_argument("--repeat", type=int, default=5, help="turns (default 5)")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure."""
    with serving() as base_url:
        return asyncio.run(_cpu(base_url, args))


async def _cpu(base_url: str, args: Namespace) -> list[Row]:
    rows = []
    for name in args.workloads:
        workload = WORKLOADS[name]
        kinds = {
            f"{side} {how}": make(workload, base_url, heard=how == "heard")
            for side, make in (("bare", bare_run), ("Replan", replan_run))
            for how in ("unheard", "heard")
        }
        taken = await in_turns(kinds, args.repeat)
        rows += [_cpu_row(workload, how, taken) for how in ("unheard", "heard")]
    return rows


def _cpu_row(workload: Workload, how: str, taken: Mapping[str, list[Taken]]) -> Row:
    ours, bare = taken[f"Replan {how}"], taken[f"bare {how}"]
    ratio = statistics.median(a.cpu / b.cpu for a, b in zip(ours, bare, strict=True))
    return {
        "table": "CPU of a run over LangGraph alone",
        "workload": workload.name,
        "tokens are": how,
        "calls": workload.calls,
        "LangGraph, ms": 1000 * statistics.median(each.cpu for each in bare),
        "Replan, ms": 1000 * statistics.median(each.cpu for each in ours),
        "tokens heard: LangGraph": bare[0].tokens,
        "Replan": ours[0].tokens,
        "ratio": ratio,
    }


async def in_turns(kinds: Mapping[str, Begin], repeat: int) -> dict[str, list[Taken]]:
    """Make all kinds of runs in turn, so that a slow moment hits all of them."""
    taken: dict[str, list[Taken]] = {kind: [] for kind in kinds}
    for turn in range(repeat + 1):
        for kind, begin in kinds.items():
            gc.collect()
            cpu, began = time.process_time(), time.perf_counter()
            tokens = await begin()
            one = Taken(time.perf_counter() - began, time.process_time() - cpu, tokens)
            # The first turn pays for what is loaded and opened once.
            if turn:
                taken[kind].append(one)
    return taken


if __name__ == "__main__":
    publish("over_http", arguments().parse_args(), main)

"""What a step costs beside its work: Replan next to LangGraph alone, with and without SQLite.

The steps take no time at all, so what is measured is the runtime: planning, sending, waiting,
recording, judging. A ratio of 5 means that Replan takes five times as long as bare LangGraph does
for the same number of tasks, which for steps that call a model is five times very little.
"""

import asyncio
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field

from critical_path import Start, replan_run, timed, wave_run
from plans import Shape, chain, flat
from reporting import Row, options, publish
from stored import Stored, fresh_saver, stored

SHAPES = {"flat": flat, "chain": chain}
KINDS: dict[str, Callable[..., Start]] = {"LangGraph": wave_run, "Replan": replan_run}


@dataclass
class Taken:
    """What the runs of one kind took.

    Attributes:
        seconds: The time of each run.
        left: What the last run left in SQLite.
    """

    seconds: list[float] = field(default_factory=list[float])
    left: Stored | None = None

    def per_step(self, steps: int) -> float:
        """The median time of a step."""
        return statistics.median(self.seconds) / steps


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--steps", type=int, nargs="+", help="steps (default 10, 50, 200)")
    parser.add_argument("--repeat", type=int, help="pairs of runs (default 7)")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure each shape and size, without a saver and with SQLite."""
    args.steps = args.steps or [10, 50, 200, *([400] if args.long else [])]
    args.repeat = args.repeat or (11 if args.long else 7)
    return asyncio.run(_rows(args))


async def _rows(args: Namespace) -> list[Row]:
    await _pairs(flat(5), "none", 1)
    return [
        row
        for saver in ("none", "SQLite")
        for shape in SHAPES
        for row in await _rows_of(shape, saver, args)
    ]


async def _rows_of(name: str, saver: str, args: Namespace) -> list[Row]:
    """The rows of one shape, which tell also how the cost of a step grows with the plan."""
    rows: list[Row] = []
    first: dict[str, float] = {}
    for steps in args.steps:
        taken = await _pairs(SHAPES[name](steps), saver, args.repeat)
        bare, ours = taken["LangGraph"], taken["Replan"]
        for kind, each in taken.items():
            first.setdefault(kind, each.per_step(steps))
        ratios = [b / a for a, b in zip(bare.seconds, ours.seconds, strict=True)]
        row: Row = {
            "table": f"Replan over LangGraph alone, saver: {saver}",
            "shape": name,
            "steps": steps,
            "ratio": statistics.median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        }
        for kind, each in taken.items():
            row[f"{kind} per step, first row = 1"] = each.per_step(steps) / first[kind]
        rows.append(row | (_stored(taken) if saver == "SQLite" else {}))
    return rows


def _stored(taken: dict[str, Taken]) -> Row:
    return {
        f"{kind}: {rows}": getattr(each.left, rows)
        for kind, each in taken.items()
        for rows in ("checkpoints", "writes")
    }


async def _pairs(shape: Shape, saver: str, repeat: int) -> dict[str, Taken]:
    """Run both kinds in turn, so that a slow moment hits both."""
    taken = {kind: Taken() for kind in KINDS}
    for _ in range(repeat):
        for kind, run in KINDS.items():
            if saver == "none":
                taken[kind].seconds.append(await timed(run(shape, _work), len(shape.waits)))
            else:
                await _stored_run(shape, run, taken[kind])
    return taken


async def _stored_run(shape: Shape, run: Callable[..., Start], taken: Taken) -> None:
    async with fresh_saver() as (saver, path):
        start = run(shape, _work, saver=saver, thread="benchmark")
        taken.seconds.append(await timed(start, len(shape.waits)))
        taken.left = stored(path)


async def _work(step: int) -> str:
    return f"text {step}"


if __name__ == "__main__":
    publish("step_cost", arguments().parse_args(), main)

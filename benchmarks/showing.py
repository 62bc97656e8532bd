"""How long `replan show` takes for a run of many steps: to its first screen, and in all.

The run is real: a plan of random dependencies, each step a call of a scripted model, kept in a
SQLite file. `replan show` is a process of its own each time. Its times are given in seconds and as
multiples of `import langgraph.graph` in turn with it, since seconds are the machine's. The first
screen of plain `show` has a target, so it is timed alone: its process ends when the screen is full.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from itertools import islice
from pathlib import Path

from plans import random_dag
from reporting import Row, options, publish

from replan import Host, Limits, Specialist, Team, open_runtime
from replan.testing import ScriptedModel, always

View = tuple[str, ...]
"""The options of `replan show`."""

SCREEN = 24
"""Lines of the first screen."""

TARGET = 1.0
"""Seconds at most to the first screen of `show`, on a machine that does nothing else."""

_COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
_REPLAN = ("-c", "from replan.cli.main import main; main()")
_YARDSTICK = "import langgraph.graph"
_PLAIN: View = ()
_VIEWS = (_PLAIN, ("--timeline",), ("--step", "250", "--attempts"), ("--json",), ("--markdown",))


def arguments() -> ArgumentParser:
    """The options."""
    parser = options("How long replan show takes.")
    parser.add_argument("--steps", type=int, default=500, help="steps of the run")
    parser.add_argument("--repeat", type=int, default=3, help="processes for each figure")
    return parser


def main(args: Namespace) -> list[Row]:
    """Make the run, then time the first screen, and each view in turn."""
    repeat = 3 * args.repeat if args.long else args.repeat
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "runs.db")
        asyncio.run(_made(where, args.steps))
        screens = [_seconds(*_show(where, _PLAIN), lines=SCREEN) for _ in range(repeat)]
        turns = [_turn(where) for _ in range(repeat)]
    return [_row(view, turns, screens) for view in _VIEWS]


async def _made(where: str, steps: int) -> None:
    model = ScriptedModel({"feedback": _COMPLETE, "specialist": always("Found it. " * 60)})
    worker = Specialist("worker", "Works.", chat_model=model, effects="pure")
    limits = Limits(max_steps=steps, max_model_calls=2 * steps)
    team = Team(Host(model=model), [worker], limits=limits)
    async with open_runtime(team, storage=where) as runtime:
        result = await runtime.run({"plan": random_dag(steps, seed=1).document})
    if result.outcome != "completed":
        raise RuntimeError(f"The run of the benchmark ended {result.outcome}.")


def _show(where: str, view: View) -> tuple[str, ...]:
    return sys.executable, *_REPLAN, "show", "last", *view, "--storage", where


def _turn(where: str) -> dict[View | None, float]:
    """Seconds of each view from start to end; under None, those of the yardstick."""
    whole = {view: _seconds(*_show(where, view)) for view in _VIEWS}
    return {None: _seconds(sys.executable, "-c", _YARDSTICK), **whole}


def _row(view: View, turns: list[dict[View | None, float]], screens: list[float]) -> Row:
    row: Row = {
        "table": "Seconds of a process",
        "view": " ".join(("show", *view)),
        "whole": statistics.median(turn[view] for turn in turns),
        "whole / import LangGraph": statistics.median(turn[view] / turn[None] for turn in turns),
    }
    if view == _PLAIN:
        first = statistics.median(screens)
        row |= {"first screen": first, "at most": TARGET, "met": "yes" if first <= TARGET else "no"}
    return row


def _seconds(*command: str, lines: int | None = None) -> float:
    """How long a process takes to its end, or until it has written so many lines."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        written = sum(1 for _ in islice(process.stdout or (), lines))
        passed = time.perf_counter() - began
        if lines is not None:
            process.kill()
    if written < (lines or 0) or (lines is None and process.returncode):
        raise RuntimeError(f"{command} wrote {written} lines and ended with {process.returncode}.")
    return passed


if __name__ == "__main__":
    args = arguments().parse_args()
    publish("showing", args, main)

"""How long `replan show` takes for a run of many steps: to its first screen, and in all.

The run is real: a plan of random dependencies, each step a call of a scripted model, kept in a
SQLite file. `replan show` is a process of its own each time. Its times are given in seconds and as
multiples of `import langgraph.graph` in turn with it, since seconds are the machine's.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from plans import random_dag
from reporting import Row, options, publish

from replan import Host, Limits, Specialist, Team, open_runtime
from replan.testing import ScriptedModel, always

SCREEN = 24
"""Lines of the first screen."""

_COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
_REPLAN = ("-c", "from replan.cli.main import main; main()")
_YARDSTICK = "import langgraph.graph"
_VIEWS = ((), ("--timeline",), ("--step", "250", "--attempts"), ("--json",), ("--markdown",))


def arguments() -> ArgumentParser:
    """The options."""
    parser = options("How long replan show takes.")
    parser.add_argument("--steps", type=int, default=500, help="steps of the run")
    parser.add_argument("--repeat", type=int, default=5, help="processes for each row")
    return parser


def main(args: Namespace) -> list[Row]:
    """Make the run, then time each view of it."""
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "runs.db")
        asyncio.run(_made(where, args.steps))
        return [_row(where, view, args.repeat) for view in _VIEWS]


async def _made(where: str, steps: int) -> None:
    model = ScriptedModel({"feedback": _COMPLETE, "specialist": always("Found it. " * 60)})
    worker = Specialist("worker", "Works.", chat_model=model, effects="pure")
    limits = Limits(max_steps=steps, max_model_calls=2 * steps)
    team = Team(Host(model=model), [worker], limits=limits)
    async with open_runtime(team, storage=where) as runtime:
        result = await runtime.run({"plan": random_dag(steps, seed=1).document})
    if result.outcome != "completed":
        raise RuntimeError(f"The run of the benchmark ended {result.outcome}.")


def _row(where: str, view: tuple[str, ...], repeat: int) -> Row:
    command = (sys.executable, *_REPLAN, "show", "last", *view, "--storage", where)
    turns = [
        (_seconds(sys.executable, "-c", _YARDSTICK), _seconds(*command)) for _ in range(repeat)
    ]
    first, whole = zip(*(shown for _, shown in turns), strict=True)
    return {
        "table": "Seconds of a process",
        "view": " ".join(("show", *view)),
        "first screen": statistics.median(first),
        "whole": statistics.median(whole),
        "first screen / import LangGraph": statistics.median(
            shown[0] / one[1] for one, shown in turns
        ),
    }


def _seconds(*command: str) -> tuple[float, float]:
    """How long a process takes to its first screen of lines, and to its end."""
    began, first = time.perf_counter(), None
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        for number, _ in enumerate(process.stdout or (), 1):
            if number == SCREEN:
                first = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}.")
    whole = time.perf_counter() - began
    return whole if first is None else first, whole


if __name__ == "__main__":
    args = arguments().parse_args()
    publish("showing", args, main)

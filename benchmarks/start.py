"""What it takes to begin: an import, commands of the terminal, a first screen, a first request.

Each command is a process of its own, in turn with one that only does `import langgraph.graph`; what
it takes is its CPU from start to end. The first screen is that of `replan show` for a run of 500
steps: its process ends when the screen is full, and its time is that of the clock. The walk is a
request that becomes one step, without storage: which functions of Replan run for it, and in how
many files, which are the same on every machine.
"""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from itertools import islice
from pathlib import Path
from statistics import median
from types import CodeType, FrameType

from harness import Row, judged, options, publish
from plans import random_dag

from replan import Host, Limits, Specialist, Team, open_runtime, run_sync
from replan.testing import ScriptedModel, always

MOST_IMPORT = 1.5
MOST_SCREEN = 1.0
SCREEN = 24
"""Lines of the first screen."""

_IMPORT = "from replan import Team, run_sync"
_REPLAN = ("-c", "from replan.cli.main import main; main()")
_COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
_OURS = "/src/replan/"


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--steps", type=int, default=500, help="steps of the run that is shown")
    parser.add_argument("--repeat", type=int, default=5, help="processes for each figure")
    return parser


def main(args: Namespace) -> list[Row]:
    """Make the run that is shown, then start the processes in turn."""
    with tempfile.TemporaryDirectory() as folder:
        storage = ("--storage", str(Path(folder) / "runs.db"))
        asyncio.run(_made(storage[-1], args.steps))
        show = (*_REPLAN, "show", "last")
        commands = {
            f"`{_IMPORT}`": ("-c", _IMPORT),
            "`replan --version`": (*_REPLAN, "--version"),
            "`replan runs`": (*_REPLAN, "runs", *storage),
            "`replan show last`": (*show, *storage),
            "`replan show last --timeline`": (*show, "--timeline", *storage),
        }
        turns = [
            (
                _cpu_of("-c", "import langgraph.graph"),
                [_cpu_of(*each) for each in commands.values()],
            )
            for _ in range(args.repeat)
        ]
        screens = [_first_screen(*show, *storage) for _ in range(args.repeat)]
    rows: list[Row] = []
    for number, name in enumerate(commands):
        over = median(taken[number] / base for base, taken in turns)
        told = judged(over, most=MOST_IMPORT if _IMPORT in name else None)
        table = "CPU of a command over `import langgraph.graph`"
        rows.append({"table": table, "command": name, **told})
    screen = judged(median(screens), name="s", most=MOST_SCREEN)
    rows.append({"table": f"First screen of a run of {args.steps} steps", **screen})
    return [*rows, _walk()]


async def _made(where: str, steps: int) -> None:
    model = ScriptedModel({"feedback": _COMPLETE, "specialist": always("Found it. " * 60)})
    worker = Specialist("worker", "Works.", chat_model=model, effects="pure")
    limits = Limits(max_steps=steps, max_model_calls=2 * steps)
    team = Team(Host(model=model), [worker], limits=limits)
    async with open_runtime(team, storage=where) as runtime:
        result = await runtime.run({"plan": random_dag(steps, seed=1).document})
    if result.outcome != "completed":
        raise RuntimeError(f"The run of the benchmark ended {result.outcome}.")


def _cpu_of(*command: str) -> float:
    """The seconds of CPU of a Python process that ends well."""
    before = _of_children()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)  # noqa: S603 - ours
    return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first_screen(*command: str) -> float:
    """The seconds until a process has written so many lines."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE) as process:  # noqa: S603 - ours
        written = sum(1 for _ in islice(process.stdout or (), SCREEN))
        passed = time.perf_counter() - began
        process.kill()
    if written < SCREEN:
        raise RuntimeError(f"The screen has {written} lines.")
    return passed


def _walk() -> Row:
    """The functions that run for a request with one step, after one that loads what it needs."""
    plan = "---\ncomplexity: complex\n---\n- [ ] 1. Look into it @worker\n"
    model = ScriptedModel(
        {"think": always(plan), "feedback": always(_COMPLETE), "specialist": always("Found it.")}
    )
    team = Team(Host(model), [Specialist("worker", "Looks into parts.", chat_model=model)])
    seen, calls = set[CodeType](), 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event == "call" and _OURS in frame.f_code.co_filename:
            seen.add(frame.f_code)
            calls += 1

    run_sync(team, "Look into it.")
    sys.setprofile(look)
    run_sync(team, "Look into it.")
    sys.setprofile(None)
    files = {code.co_filename for code in seen}
    return {
        "table": "A walk: Replan's own for a request with one step",
        "functions": len(seen),
        "files": len(files),
        "calls": calls,
    }


if __name__ == "__main__":
    publish("start", arguments().parse_args(), main)

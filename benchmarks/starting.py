"""The CPU that a command of the terminal takes from its start to its end."""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_PLAN = "- [ ] 1. calculate 2 + 2 @calculator\n"
_REPLAN = ("-c", "from replan.cli.main import main; main()")
_YARDSTICK = "import langgraph.graph"

IMPORT = "from replan import Team, run_sync"


def starting(repeat: int) -> dict[str, float]:
    """The commands' CPU over that of importing LangGraph, in turn, the median."""
    with tempfile.TemporaryDirectory() as folder:
        storage = ("--storage", str(Path(folder) / "runs.db"))
        plan = Path(folder) / "plan.md"
        plan.write_text(_PLAN)
        _cpu_of(*_REPLAN, "run", str(plan), "--dir", folder, *storage)
        commands = {
            "`python -c pass`": ("-c", "pass"),
            "`import replan`": ("-c", "import replan"),
            f"`{IMPORT}`": ("-c", IMPORT),
            "`replan --version`": (*_REPLAN, "--version"),
            "`replan runs`": (*_REPLAN, "runs", *storage),
            "`replan show last`": (*_REPLAN, "show", "last", *storage),
        }
        turns = [
            (_cpu_of("-c", _YARDSTICK), {name: _cpu_of(*one) for name, one in commands.items()})
            for _ in range(repeat)
        ]
    return {name: statistics.median(took[name] / one for one, took in turns) for name in commands}


def _cpu_of(*command: str) -> float:
    """The seconds of CPU of a Python process that ends well."""
    before = _of_children()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)  # noqa: S603 - the commands above
    return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""The specialists of the sample runs; what they do is counted in a file outside of Replan."""

import os
import signal
from pathlib import Path

from langgraph.config import get_store

from replan import ask_user


def work(context):
    """Do one step; the one of `DIE_AT` takes its process with it."""
    step = str(context.plan_step.id)
    if step == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
    if effects := os.environ.get("EFFECTS"):
        with Path(effects).open("a") as file:
            file.write(f"{step}\n")
    get_store().put(("done", "steps"), context.task_description, {"text": f"Step {step} is done."})
    return f"Result {step} from {sorted(context.inputs.values())}."


def ask(context):
    """Ask before the work."""
    colour = ask_user("Which colour?")
    return f"{colour}: {work(context)}"

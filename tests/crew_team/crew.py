"""Steps that leave a line with the id of their process when they begin, and wait at gates."""

import os
import time
from pathlib import Path

from replan import ask_user

HERE = Path(__file__).parent
IN = f" in {os.environ['PLACE']}" if "PLACE" in os.environ else ""


def work(context):
    words = context.plan_step.description.split()[0]
    with (HERE / "begun").open("a") as begun:
        begun.write(f"{words} {os.getpid()} {context.idempotency_key}\n")
    while (HERE / f"gate-{words}").exists():
        time.sleep(0.02)
    return f"Done {words}{IN}."


def ask(context):
    return f"It is {ask_user('Which colour?')}{IN}."

"""Specialists whose work can be counted from outside, held up at gates, and broken."""

from pathlib import Path

from replan import ask_user

HERE = Path(__file__).parent


def work(context):
    step = context.plan_step.id
    with (HERE / "effects").open("a") as effects:
        effects.write(f"{step}\n")
    if (HERE / f"gate-{step}").exists():
        (HERE / f"gate-{step}").read_text()
    if (HERE / f"broken-{step}").exists():
        raise ValueError("out of paper")
    return f"Result {step}."


def ask(context):
    return f"It is {ask_user('Which year?')} in {ask_user('Which city?')}."


def once(context):
    return f"Thanks, {ask_user('Who are you?')}."

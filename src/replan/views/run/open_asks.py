"""What a waiting run asks, in the terms of the terminal."""

import json
from collections.abc import Sequence

from replan.state.questions import PLAN, Question
from replan.views.cells import counted, one_line


def waiting_lines(asks: Sequence[Question], run: str, resume: str) -> list[str]:
    """Describe what a run waits for, and in the last line how to continue."""
    lines = [f"the answer could not be taken: {ask.problem}" for ask in asks if ask.problem]
    if [ask.kind for ask in asks] == [PLAN]:
        lines.append(f"run {run} waits for your approval of its plan")
        ways = [
            f'reject it with: {resume} --answer "reject: WHY"',
            f"change it with: {resume} --plan FILE",
            f"continue with: {resume} --answer approve",
        ]
    else:
        lines.append(f"run {run} waits for {counted(len(asks), 'answer')}:")
        lines += [f"  {ask.key}: {ask_line(ask)}" for ask in asks]
        ways = [f"continue with: {resume}{''.join(_option(ask, len(asks)) for ask in asks)}"]
    return [*lines, *(ways if resume else ())]


def _option(ask: Question, many: int) -> str:
    word = "approve" if ask.kind in ("approval", PLAN) else "TEXT"
    return f" --answer {word}" if many == 1 else f" --answer {ask.key}={word}"


def ask_line(ask: Question) -> str:
    """A question in one line; of a tool call, with its arguments."""
    if ask.kind == "approval" and ask.details is not None:
        return f"{one_line(ask.text)} {one_line(json.dumps(ask.details, ensure_ascii=False))}"
    return one_line(ask.text)

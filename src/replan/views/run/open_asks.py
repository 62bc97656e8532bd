"""What a waiting run asks, in the terms of the terminal."""

from collections.abc import Sequence

from replan.state.questions import PLAN, Question
from replan.views.cells import counted, one_line
from replan.views.run.evidence import (
    Evidence,
    argument_text,
    before_lines,
    failed_lines,
    ground_lines,
)


def waiting_lines(
    asks: Sequence[Question], evidence: Sequence[Evidence], run: str, resume: str
) -> list[str]:
    """Describe what a run waits for and why, and in the last line how to continue."""
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
        own = zip(asks, evidence, strict=True)
        lines += [f"  {line}" for ask, known in own for line in named_lines(ask, known)]
        lines += [f"  {line}" for known in evidence[:1] for line in failed_lines(known)]
        ways = [f"continue with: {resume}{''.join(_option(ask, len(asks)) for ask in asks)}"]
    return [*lines, *(ways if resume else ())]


def _option(ask: Question, many: int) -> str:
    word = "approve" if ask.kind in ("approval", PLAN) else "TEXT"
    return f" --answer {word}" if many == 1 else f" --answer {ask.key}={word}"


def named_lines(ask: Question, known: Evidence) -> list[str]:
    """A question as `ask_lines` writes it, with its key in front, and what it rests on."""
    first, *rest = ask_lines(ask, known)
    why = [*before_lines(known), *ground_lines(known)]
    return [f"{ask.key}: {first}", *rest, *(f"  {line}" for line in why)]


def ask_lines(ask: Question, known: Evidence) -> list[str]:
    """A question in one line, and below it what it is about: the arguments of a call."""
    rows = known.arguments if ask.kind == "approval" else ()
    return [one_line(ask.text), *(f"  {argument_text(each)}" for each in rows)]

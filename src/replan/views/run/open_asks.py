"""What a waiting run asks, in the terms of the terminal."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from replan.state.questions import PLAN, Question
from replan.views.cells import counted, one_line

_LONGEST = 300
"""Characters of an argument that are shown."""


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
        lines += [f"  {line}" for ask in asks for line in named_lines(ask)]
        ways = [f"continue with: {resume}{''.join(_option(ask, len(asks)) for ask in asks)}"]
    return [*lines, *(ways if resume else ())]


def _option(ask: Question, many: int) -> str:
    word = "approve" if ask.kind in ("approval", PLAN) else "TEXT"
    return f" --answer {word}" if many == 1 else f" --answer {ask.key}={word}"


def named_lines(ask: Question) -> list[str]:
    """A question as `ask_lines` writes it, with its key in front."""
    first, *rest = ask_lines(ask)
    return [f"{ask.key}: {first}", *rest]


def ask_lines(ask: Question) -> list[str]:
    """A question in one line, and below it what it is about: the arguments of a call."""
    details = ask.details if ask.kind == "approval" and isinstance(ask.details, dict) else {}
    given = details.get("arguments")
    rows = given.items() if isinstance(given, dict) else ()
    return [one_line(ask.text), *(f"  {one_line(name)}: {_shown(value)}" for name, value in rows)]


def _shown(value: JsonValue) -> str:
    """A value in one line; of a long one, the beginning and what shows the rest."""
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text):,} characters; `replan show RUN --json` has all)"

"""What a waiting run asks, in the terms of the terminal."""

from collections.abc import Sequence

from replan.state.questions import PLAN, Question
from replan.texts.signs import harmless
from replan.views.cells import counted, one_line
from replan.views.run.evidence import (
    Evidence,
    argument_text,
    before_lines,
    failed_lines,
    ground_lines,
)

_MOST_LINES = 40  # of the difference that a revision makes


def waiting_lines(
    asks: Sequence[Question], evidence: Sequence[Evidence], run: str, resume: str
) -> list[str]:
    """Describe what a run waits for and why, and in the last line how to continue."""
    lines = [f"the answer could not be taken: {ask.problem}" for ask in asks if ask.problem]
    if [ask.kind for ask in asks] == [PLAN]:
        lines.append(f"run {run} waits for your approval of its plan")
        _, *rest = pending_lines(asks, evidence)
        lines += rest
    else:
        lines.append(f"run {run} waits for {counted(len(asks), 'answer')}:")
        lines += [f"  {line}" for line in pending_lines(asks, evidence)]
    return [*lines, *(ways_to_answer(asks, resume) if resume else ())]


def pending_lines(asks: Sequence[Question], evidence: Sequence[Evidence]) -> list[str]:
    """What is asked, each with what it rests on, and once what failed so far."""
    own = zip(asks, evidence, strict=True)
    lines = [line for ask, known in own for line in named_lines(ask, known)]
    return [*lines, *(line for known in evidence[:1] for line in failed_lines(known))]


def ways_to_answer(asks: Sequence[Question], resume: str) -> list[str]:
    """The commands that answer; the last one lets the work go on."""
    kinds = [ask.kind for ask in asks]
    others = _OTHER_WAYS.get(kinds[0], {}) if len(asks) == 1 else {}
    if len(asks) > 1:
        named = (each for each in asks if each.kind == "approval")
        others = {f"reject {each.key}": f'--answer "{each.key}=reject: WHY"' for each in named}
    options = "".join(_option(ask, len(asks)) for ask in asks)
    ways = [f"{what} with: {resume} {option}" for what, option in others.items()]
    return [*ways, f"continue with: {resume}{options}"]


_REJECT = {"reject it": '--answer "reject: WHY"'}
_OTHER_WAYS = {
    PLAN: {**_REJECT, "change it": "--plan FILE"},
    "approval": _REJECT,
    "unknown_outcome": {
        "if it did not happen, do it again": '--answer "run again"',
        "say that it failed": '--answer "fail: REASON"',
    },
}
_WORDS = {"approval": "approve", PLAN: "approve", "unknown_outcome": "it is done: RESULT"}


def _option(ask: Question, many: int) -> str:
    word = _WORDS.get(ask.kind, "TEXT")
    answer = word if many == 1 else f"{ask.key}={word}"
    return f' --answer "{answer}"' if " " in answer else f" --answer {answer}"


def named_lines(ask: Question, known: Evidence) -> list[str]:
    """A question as `ask_lines` writes it, with its key in front, and what it rests on."""
    first, *rest = ask_lines(ask, known)
    is_named = any(each.name == "task" for each in known.arguments)
    task = [f"  step {ask.step_id}: {known.task}"] if known.task and not is_named else []
    why = [*before_lines(known), *ground_lines(known)]
    return [f"{ask.key}: {first}", *task, *rest, *(f"  {line}" for line in why)]


def ask_lines(ask: Question, known: Evidence) -> list[str]:
    """A question in one line, and below it what it is about: of a call, its arguments."""
    if ask.kind == PLAN:
        told = [line for text in ask.remarks for line in _remark(text)]
        return ["May this plan run?", *(f"  {line}" for line in told)]
    does = [f"  it does: {known.does}"] if known.does else []
    return [one_line(ask.text), *does, *(f"  {argument_text(each)}" for each in known.arguments)]


def _remark(text: str) -> list[str]:
    """The lines of what is told beside a plan; of a long difference, the beginning."""
    lines = [harmless(line.rstrip()) for line in text.splitlines()]
    more = len(lines) - _MOST_LINES
    return lines if more <= 0 else [*lines[:_MOST_LINES], f"({counted(more, 'more line')})"]

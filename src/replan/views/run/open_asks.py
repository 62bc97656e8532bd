"""What a waiting run asks, in the terms of the terminal."""

from collections.abc import Iterator, Sequence

from replan.base.texts.signs import harmless
from replan.state.person.answers import is_in_doubt, leads_to, question_shown
from replan.state.questions import PLAN, Question
from replan.views.cells import counted, one_line
from replan.views.run.evidence import Evidence, argument_text, failed_lines, ground_lines

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
    asks_with_evidence = zip(asks, evidence, strict=True)
    lines = [line for ask, known in asks_with_evidence for line in named_lines(ask, known)]
    return [*lines, *(line for known in evidence[:1] for line in failed_lines(known))]


def ways_to_answer(
    asks: Sequence[Question], resume: str, others: int = 0, *, is_noted: bool = True
) -> list[str]:
    """The commands that answer; the last one lets the work go on.

    Of several things that are asked, each decision is one command: none is made in passing.

    Args:
        asks: What is asked.
        resume: The command that resumes the run.
        others: How many others are answered; beside them each is named.
        is_noted: Whether it is noted that the person is shown them; else a decision takes its key.
    """
    many = len(asks) + others
    keys = ["" if many == 1 and (is_noted or not ask.is_decision) else ask.key for ask in asks]
    options = "".join(_option(ask, key) for ask, key in zip(asks, keys, strict=True))
    more = [
        way
        for ask, key in zip(asks, keys, strict=True)
        for way in _other_ways(ask, key, "it" if many == 1 else key)
    ]
    ways = [f"{what} with: {resume} {option}" for what, option in more]
    if len(asks) > 1 and any(ask.is_decision for ask in asks):
        own_ways = [f"{_verb(ask)} {ask.key} with: {resume}{_option(ask, ask.key)}" for ask in asks]
        return [*ways, *own_ways]
    is_told = len(asks) == 1 and asks[0].kind == "unknown_outcome"
    when = ("if it happened, " if is_in_doubt(asks[0]) else "if not, ") if is_told else ""
    return [*ways, f"{when}continue with: {resume}{options}"]


def _other_ways(ask: Question, key: str, named: str) -> Iterator[tuple[str, str]]:
    """What else can be answered, and the option of the terminal that does."""
    key = f"{key}=" if key else ""
    match ask.kind:
        case "approval":
            yield f"reject {named}", f'--answer "{key}reject: WHY"'
        case "unknown_outcome":
            when = f"if {named} did not happen" if is_in_doubt(ask) else f"if {named} is to happen"
            yield f"{when}, do it again", f'--answer "{key}run again"'
            yield f"say that {named} failed", f'--answer "{key}fail: REASON"'
        case _ if ask.kind == PLAN:
            yield f"reject {named}", f'--answer "{key}reject: WHY"'
            yield "change it", "--plan FILE"
        case _:
            pass


def _leads(ask: Question) -> list[str]:
    """What each answer about work in doubt leads to; nothing for other questions."""
    if ask.kind != "unknown_outcome":
        return []
    leads = leads_to(ask.details)
    words = {"run again": "run again", "fail": "fail: REASON", "done": "it is done: RESULT"}
    return [f"{words[action]!r}: {leads[action]}" for action in words]


_WORDS = {"approval": "approve", PLAN: "approve", "unknown_outcome": "it is done: RESULT"}


def _option(ask: Question, key: str) -> str:
    word = _WORDS.get(ask.kind, "") or _text_for(ask)
    answer = f"{key}={word}" if key else word
    return f' --answer "{answer}"' if " " in answer else f" --answer {answer}"


def _verb(ask: Question) -> str:
    return {"approval": "approve", "unknown_outcome": "if it happened, settle"}.get(
        ask.kind, "answer"
    )


def _text_for(ask: Question) -> str:
    """What to write as an answer: to a job, each thing that it needs, with its name."""
    missing = ask.fields.get("missing") if "phase" in ask.fields else None
    names = [one_line(str(name)) for name in missing] if isinstance(missing, list) else []
    return ", ".join(f"{name}: TEXT" for name in names) if len(names) > 1 else "TEXT"


def named_lines(ask: Question, evidence: Evidence) -> list[str]:
    """A question as `ask_lines` writes it, with its key in front, and what it rests on."""
    first, *rest = ask_lines(ask, evidence)
    is_named = any(change.name == "task" for change in evidence.arguments)
    task = [f"  step {ask.step_id}: {evidence.task}"] if evidence.task and not is_named else []
    why = [*ground_lines(evidence), *_leads(ask)]
    answered = f"  {evidence.answered}; it counts when the run continues"
    on_record = [answered] if evidence.answered else []
    return [f"{ask.key}: {first}", *on_record, *task, *rest, *(f"  {line}" for line in why)]


def ask_lines(ask: Question, evidence: Evidence) -> list[str]:
    """A question in one line, and below it what it is about: of a call, its arguments."""
    if ask.kind == PLAN:
        told = [line for text in ask.remarks for line in _remark(text)]
        return ["May this plan run?", *(f"  {line}" for line in told)]
    does = [f"  it does: {evidence.does}"] if evidence.does else []
    question_line = one_line(question_shown(ask))
    return [question_line, *does, *(f"  {argument_text(change)}" for change in evidence.arguments)]


def _remark(text: str) -> list[str]:
    """The lines of what is told beside a plan; of a long difference, the beginning."""
    lines = [harmless(line.rstrip()) for line in text.splitlines()]
    more = len(lines) - _MOST_LINES
    return lines if more <= 0 else [*lines[:_MOST_LINES], f"({counted(more, 'more line')})"]

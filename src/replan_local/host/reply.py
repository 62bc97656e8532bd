"""What the offline model says to each node of the host, written by rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from replan.plan.dependencies import ready_steps
from replan.plan.markdown.document import PlanDocument
from replan.plan.statuses import excerpt
from replan.prompts.sections import Call, Caller, call_of, sections_of
from replan_local.commands import Calculate
from replan_local.expressions import calculated
from replan_local.grammar import parse
from replan_local.host.facts import is_about_facts
from replan_local.host.planning import planned
from replan_local.host.progress import first_of, progress_in, revise
from replan_local.refusals import CannotAnswerError

_WITH_A_MODEL = (
    "It plans commands, plan documents and steps for somebody by @name. For anything else, take a "
    "model: `--model openai:NAME --base-url URL`, with the key in OPENAI_API_KEY."
)
_MEMBER = re.compile(r"^-\s+@(?P<name>[^\s:]+):", re.MULTILINE)
_SIMPLE = {"complexity": "simple"}
_LINE, _SUMMARY = 120, 1_500  # characters
_CANNOT = "The offline model cannot do this"
_QUOTED = 4
_SOURCE = re.compile(r"\[\[(?P<source>.+?)(?::\d+)?\]\]")
_NUMBERED = re.compile(r"(?P<line>\d*)\| ?(?P<text>.*)")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class _Prompt:
    """What this model reads in the messages of a call."""

    call: Call | None
    system: str
    human: str

    def told(self, tag: str) -> str:
        """What is marked as data of a kind."""
        return first_of(sections_of(self.human), tag)

    @property
    def request(self) -> str:
        """The request: its own section, or else the whole last human message."""
        return self.told("request") or self.human

    @property
    def team(self) -> Sequence[str]:
        return _MEMBER.findall(first_of(sections_of(self.system), "team") or self.told("team"))


def reply_to(messages: Sequence[BaseMessage]) -> str:
    """Write the reply to a prompt of the host, or to any other prompt."""
    texts = [(message.type, _HALF_CHARACTER.sub("\ufffd", message.text)) for message in messages]
    system = "\n".join(text for kind, text in texts if kind == "system")
    human = next((text for kind, text in reversed(texts) if kind == "human"), "")
    try:
        call = call_of(messages)
    except ValidationError:
        call = None
    write = _WRITERS[call.node if call else "direct_answer"]
    return write(_Prompt(call=call, system=system, human=human))


def refusal_of(reply: str) -> str:
    """The words of a reply that refuses the request; empty for any other reply."""
    body = reply.rpartition("---\n")[2]
    return body.strip() if body.startswith(_CANNOT) else ""


def _think(prompt: _Prompt) -> str:
    """Answer a calculation or refuse at once, or plan the request."""
    if is_about_facts(prompt.request, prompt.system):
        return _document("", **_SIMPLE, reasoning="This is about facts.")
    try:
        answer = _calculation(prompt.request)
        plan = "" if answer else planned(prompt.request, prompt.team)
    except CannotAnswerError as refusal:
        answer, plan = _quotes(prompt) or _refusal(refusal), ""
    if not plan:
        return _document(answer, **_SIMPLE, reasoning="This needs no plan, or has none.")
    count = len(PlanDocument.recover(plan).plan.steps)
    return _document(
        plan,
        complexity="complex" if count > 1 else "moderate",
        reasoning=f"The request has {count} {'parts' if count > 1 else 'part'} for the team.",
    )


def _answer_or_plan(prompt: _Prompt) -> str:
    try:
        return _calculation(prompt.request) or planned(prompt.request, prompt.team)
    except CannotAnswerError as refusal:
        return _refusal(refusal)


def _feedback(prompt: _Prompt) -> str:
    """Judge a round: revise once what failed, continue with what can run, or join what there is."""
    progress = progress_in(prompt.human)
    # A run that has to end now gets its answer, whatever else could be tried.
    document, changes = ("", ()) if progress.missing else revise(progress)
    if changes:
        return _document(
            document,
            verdict="continue",
            update=" ".join(changes),
            feedback="A step failed, and its error says which name it needs.",
        )
    if not progress.missing and ready_steps(progress.plan):
        told = "There are open steps that can run."
        return _document("", verdict="continue", feedback=told)
    failed = ", ".join(str(step.id) for step in progress.failed())
    told = f"Failed for good: step {failed}." if failed else "Every step is done."
    return _document(progress.joined(), verdict="complete", feedback=told)


def _revised(prompt: _Prompt) -> str:
    progress = progress_in(prompt.human)
    return revise(progress)[0] or progress.plan.content


def _summary(prompt: _Prompt) -> str:
    """The beginning of each message, the newest ones as far as there is room."""
    said = f"{prompt.told('memory')}\n{prompt.told('conversation')}"
    kept = [excerpt(line, _LINE) for line in said.splitlines() if line.strip()]
    while len("\n".join(kept)) > _SUMMARY:
        kept.pop(0)
    return "\n".join(kept)


def _calculation(request: str) -> str:
    """The answer to a calculation that needs no step; empty for anything else."""
    try:
        command = parse(request)
    except CannotAnswerError:
        return ""
    if isinstance(command, Calculate) and not command.steps:
        return calculated(command.expression, {})
    return ""


def _refusal(refusal: CannotAnswerError) -> str:
    return f"{_CANNOT}. {refusal}\n\n{_WITH_A_MODEL}"


def _quotes(prompt: _Prompt) -> str:
    """The lines of knowledge that fit best, each with the mark that cites it."""
    quoted, source = list[str](), ""
    for line in prompt.told("knowledge").splitlines():
        if head := _SOURCE.match(line):
            source = head["source"]
        elif (told := _NUMBERED.match(line)) and told["text"].strip():
            mark = f"{source}:{told['line']}" if told["line"] else source
            quoted.append(f"- {told['text'].strip()} [[{mark}]]")
    return "\n".join(quoted[:_QUOTED])


def _step(prompt: _Prompt) -> str:
    """Quote what the knowledge has; a step that has none needs a language model."""
    if quotes := _quotes(prompt):
        return quotes
    name = prompt.call.specialist if prompt.call else None
    who = f"The specialist '{name}'" if name else "This specialist"
    told = f"{who} needs a language model; the offline model cannot do its work. {_WITH_A_MODEL}"
    return _document(told, status="failed", retry="no")


def _document(body: str, **head: object) -> str:
    lines = [f"{key}: {value}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", body.rstrip("\n")]) + "\n"


_WRITERS: Mapping[Caller, Callable[[_Prompt], str]] = {
    "think": _think,
    "direct_answer": _answer_or_plan,
    "plan_creation": _answer_or_plan,
    "specialist": _step,
    "feedback": _feedback,
    "plan_update": _revised,
    "final_answer": lambda prompt: progress_in(prompt.human).joined(),
    "knowledge": lambda prompt: _quotes(prompt) or "none",
    "memory_summary": _summary,
}

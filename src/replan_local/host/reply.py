"""What the offline model says to each node of the host, written by rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage
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
_LINE, _SUMMARY = 120, 1_500  # characters
_QUOTED = 4
_SOURCE = re.compile(r"\[\[(?P<source>.+?)(?::\d+)?\]\]")
_NUMBERED = re.compile(r"(?P<line>\d*)\| ?(?P<text>.*)")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class _Prompt:
    """What this model reads in the messages of a call."""

    call: Call
    system: str
    human: str

    def data(self, tag: str) -> str:
        """What is marked as data of a kind."""
        return first_of(sections_of(self.human), tag)

    @property
    def request(self) -> str:
        """The request: its own section, or else the whole last human message."""
        return self.data("request") or self.human

    def planned(self) -> str:
        team = first_of(sections_of(self.system), "team") or self.data("team")
        return planned(self.request, _MEMBER.findall(team))


def reply_to(messages: Sequence[BaseMessage]) -> AIMessage:
    """Write the reply to a prompt of the host, or to any other prompt."""
    texts = [(message.type, _HALF_CHARACTER.sub("\ufffd", message.text)) for message in messages]
    try:
        call = call_of(messages)
    except ValidationError:
        call = None
    prompt = _Prompt(
        call=call or Call(node="direct_answer"),
        system="\n".join(text for kind, text in texts if kind == "system"),
        human=next((text for kind, text in reversed(texts) if kind == "human"), ""),
    )
    try:
        return AIMessage(_WRITERS[prompt.call.node](prompt))
    except CannotAnswerError as refusal:
        words = f"The offline model cannot do this. {refusal}\n\n{_WITH_A_MODEL}"
        text = _answered(words) if prompt.call.node == "think" else words
        return AIMessage(text, additional_kwargs={"refusal": words})


def _think(prompt: _Prompt) -> str:
    """Answer at once what needs no plan, or plan the request."""
    if is_about_facts(prompt.request, prompt.system):
        return _answered("")
    try:
        answer = _calculation(prompt.request)
        plan = "" if answer else prompt.planned()
    except CannotAnswerError:
        answer, plan = _quotes(prompt), ""
        if not answer:
            raise
    if answer:
        return _answered(answer)
    count = len(PlanDocument.recover(plan).plan.steps)
    return _document(
        plan,
        complexity="complex" if count > 1 else "moderate",
        reasoning=f"The request has {count} {'parts' if count > 1 else 'part'} for the team.",
    )


def _answer_or_plan(prompt: _Prompt) -> str:
    return _calculation(prompt.request) or prompt.planned()


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
        return _document("", verdict="continue", feedback="There are open steps that can run.")
    failed = ", ".join(str(step.id) for step in progress.failed())
    told = f"Failed for good: step {failed}." if failed else "Every step is done."
    return _document(progress.joined(), verdict="complete", feedback=told)


def _revised(prompt: _Prompt) -> str:
    progress = progress_in(prompt.human)
    return revise(progress)[0] or progress.plan.content


def _summary(prompt: _Prompt) -> str:
    """The beginning of each message, the newest ones as far as there is room."""
    said = f"{prompt.data('memory')}\n{prompt.data('conversation')}"
    lines = [excerpt(line, _LINE) for line in said.splitlines() if line.strip()]
    return "\n".join(lines)[-_SUMMARY:]


def _calculation(request: str) -> str:
    """The answer to a calculation that needs no step; empty for anything else."""
    try:
        command = parse(request)
    except CannotAnswerError:
        return ""
    if isinstance(command, Calculate) and not command.steps:
        return calculated(command.expression, {})
    return ""


def _quotes(prompt: _Prompt) -> str:
    """The lines of knowledge that fit best, each with the mark that cites it."""
    quoted, source = list[str](), ""
    for line in prompt.data("knowledge").splitlines():
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
    who = f"The specialist '{prompt.call.specialist}'"
    told = f"{who} needs a language model; the offline model cannot do its work. {_WITH_A_MODEL}"
    return _document(told, status="failed", retry="no")


def _answered(answer: str) -> str:
    return _document(answer, complexity="simple", reasoning="This needs no plan, or has none.")


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

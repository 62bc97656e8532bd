"""What the offline model says to each node of the host, written by rules."""

import re
from collections.abc import Callable, Mapping, Sequence

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from replan.adapters.offline.answer import gaps_in_one_line, join_results
from replan.adapters.offline.plan import PlanDraft, draft_plan, forced_plan
from replan.adapters.offline.progress import Progress, progress_in
from replan.adapters.offline.revision import revise
from replan.adapters.offline.team import team_in
from replan.arithmetic import compute
from replan.plan.model import Value
from replan.prompts.sections import Call, Node, call_of, sections_of
from replan.state.team import SpecialistCard

HOW_TO_CONFIGURE = (
    "For a real model, run again with `--model openai:NAME --base-url URL` "
    "and the key in OPENAI_API_KEY."
)
"""How a person gets from the offline model to a real one."""

OFFLINE_NOTICE = (
    "Offline model: plans by fixed rules and joins results; it understands no free text and writes "
    f"no prose. {HOW_TO_CONFIGURE}"
)
"""What this model is, in one line."""

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good\s+(?:morning|day|afternoon|evening)|你好|您好)(?:\s+there)?\W*$",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"^\W*(?:thanks|thank\s+you|谢谢)(?:\s+(?:a\s+lot|very\s+much|so\s+much))?\W*$", re.IGNORECASE
)
_ABOUT = re.compile(
    r"^\W*(?:help|who\s+are\s+you|what\s+(?:are\s+you|can\s+you\s+do|do\s+you\s+do)"
    r"|how\s+do\s+you\s+work|你是谁|你能做什么)\W*$",
    re.IGNORECASE,
)
_CANNOT = "The offline model cannot do this"
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


class _Prompt(Value):
    """What this model reads in the messages of a call."""

    call: Call | None
    human: str
    team: tuple[SpecialistCard, ...]

    @property
    def request(self) -> str:
        """The request: its own section, or else the whole last human message."""
        for part in sections_of(self.human):
            if part.tag == "request":
                return part.text
        return self.human

    @property
    def progress(self) -> Progress:
        """What the run has come to."""
        return progress_in(self.human, self.team)


def reply_to(messages: Sequence[BaseMessage]) -> str:
    """Write the reply to a prompt of the host, or to any other prompt."""
    prompt = _read(messages)
    node = prompt.call.node if prompt.call else "direct_answer"
    return _WRITERS[node](prompt)


def refusal_of(reply: str) -> str:
    """The words of a reply that refuses the request; empty for any other reply."""
    body = reply.rpartition("---\n")[2]
    return body.strip() if body.startswith(_CANNOT) else ""


def _read(messages: Sequence[BaseMessage]) -> _Prompt:
    texts = [(message.type, _HALF_CHARACTER.sub("\ufffd", message.text)) for message in messages]
    system = "\n".join(text for kind, text in texts if kind == "system")
    human = next((text for kind, text in reversed(texts) if kind == "human"), "")
    return _Prompt(call=_caller(messages), human=human, team=team_in(system, human))


def _caller(messages: Sequence[BaseMessage]) -> Call | None:
    try:
        return call_of(messages)
    except ValidationError:
        return None


def _think(prompt: _Prompt) -> str:
    """Judge a request: answer or refuse it at once, or plan it."""
    draft = PlanDraft(title="")
    if _known_answer(prompt) is None:
        draft = draft_plan(prompt.request, prompt.team)
    if not draft.steps:
        return _document(
            _answer(prompt),
            complexity="simple",
            score=0.1,
            reasoning="This needs no plan, or there is nobody who could carry one out.",
            next_action="direct_answer",
        )
    count = len(draft.steps)
    return _document(
        draft.document(),
        complexity="complex" if count > 1 else "moderate",
        score=0.8 if count > 1 else 0.6,
        reasoning=f"The request has {count} {'parts' if count > 1 else 'part'} for the team.",
        next_action="create_plan",
    )


def _plan(prompt: _Prompt) -> str:
    draft = draft_plan(prompt.request, prompt.team)
    return (draft if draft.steps else forced_plan(prompt.request, prompt.team)).document()


def _revised(prompt: _Prompt) -> str:
    progress = prompt.progress
    revision = revise(progress)
    return revision.document if revision else progress.plan.content


def _feedback(prompt: _Prompt) -> str:
    """Judge a round: revise once what failed, go on with what can run, or join what there is."""
    progress = prompt.progress
    # A run that has to end now gets its answer, whatever else could be tried.
    revision = None if progress.missing else revise(progress)
    if revision is not None:
        change = " ".join(revision.changes)
        return _document(
            revision.document,
            verdict="continue",
            suggested_action="update_plan",
            update=change,
            feedback="A step failed and can be tried in another way.",
        )
    if progress.can_go_on() and not progress.missing:
        return _document(
            "",
            verdict="continue",
            suggested_action="execute_step",
            feedback="There are open steps that can run.",
        )
    return _document(
        join_results(progress),
        verdict="complete",
        feedback=gaps_in_one_line(progress) or "Every step is done.",
    )


def _answer(prompt: _Prompt) -> str:
    return _known_answer(prompt) or _refusal(prompt)


def _known_answer(prompt: _Prompt) -> str | None:
    """The answer to arithmetic and small talk; none for anything else."""
    request = prompt.request
    if _GREETING.match(request):
        return f"Hello. {_self_description(prompt.team)}"
    if _ABOUT.match(request):
        return _self_description(prompt.team)
    if _THANKS.match(request):
        return "You are welcome."
    computed = compute(request)
    return str(computed) if computed else None


def _self_description(team: Sequence[SpecialistCard]) -> str:
    lines = [OFFLINE_NOTICE]
    if team:
        lines += ["", "I can plan work for:", ""]
        lines += [f"- **{card.name}**: {card.intended_use}" for card in team]
    return "\n".join(lines)


def _refusal(prompt: _Prompt) -> str:
    names = ", ".join(card.name for card in prompt.team)
    team = f"nobody in its team ({names}) does what the request asks" if names else "it has no team"
    return f"{_CANNOT}: it has no language model behind it, and {team}. {HOW_TO_CONFIGURE}"


def _refuse_step(prompt: _Prompt) -> str:
    name = prompt.call.specialist if prompt.call else None
    who = f"The specialist '{name}'" if name else "This specialist"
    return _document(
        f"{who} needs a real language model; the offline model cannot do its work. "
        f"{HOW_TO_CONFIGURE}",
        status="failed",
        retry="no",
    )


def _document(body: str, **head: object) -> str:
    lines = [f"{key}: {value}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", body.rstrip("\n")]) + "\n"


_WRITERS: Mapping[Node, Callable[[_Prompt], str]] = {
    "think": _think,
    "direct_answer": _answer,
    "plan_creation": _plan,
    "specialist": _refuse_step,
    "feedback": _feedback,
    "plan_update": _revised,
    "final_answer": lambda prompt: join_results(prompt.progress),
}

"""Tell the events of a run as plain lines for a terminal."""

import re
from collections.abc import Callable
from pathlib import Path

from replan.events.types import (
    AnswerRestarted,
    AnswerToken,
    Event,
    FeedbackGenerated,
    LimitReached,
    PlanCreated,
    PlanUpdated,
    ReplyUnreadable,
    RunStarted,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistParked,
    SpecialistRetried,
    SpecialistToken,
    StepEvent,
    TaskCompleted,
    ThinkingCompleted,
    ThinkingStarted,
)
from replan.plan.model import PlanStep
from replan.state.results import Artifact, ExecutionStatus

_MARKS = {
    ExecutionStatus.SUCCESS: "[x]",
    ExecutionStatus.PARTIAL: "[~]",
    ExecutionStatus.FAILED: "[!]",
}
# What models and files say may hold signs that steer a terminal.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Lines:
    """Turns one run's events into text, in their order."""

    def __init__(self, *, workspace: Path, clock: Callable[[], float], quiet: bool = False) -> None:
        """Begin a run.

        Args:
            workspace: The folder that the paths of artifacts are relative to.
            clock: Seconds; told at the start and at the end of the run.
            quiet: Give nothing but the answer.
        """
        self._workspace = workspace
        self._clock = clock
        self._quiet = quiet
        self._started = clock()
        self._artifacts: dict[str, Artifact] = {}
        self._answer = ""

    def lines_of(self, event: Event) -> str:
        """The text that an event adds to the terminal, with its line ends; often empty."""
        match event:
            case AnswerToken() | AnswerRestarted():
                text = self._answering(event)
            case TaskCompleted():
                text = self._ended(event)
            case _ if self._quiet:
                text = ""
            case SpecialistInvoked() | SpecialistRetried() | SpecialistParked():
                text = f"{_of_try(event)}\n"
            case SpecialistCompleted():
                text = f"{self._finished(event)}\n"
            case PlanCreated() | PlanUpdated():
                text = _of_plan(event)
            case _:
                text = _of_course(event)
        return _STEERING.sub("\ufffd", text)

    def broken_off(self) -> str:
        """The text that closes a run which ended without its last event."""
        return "\n" if self._answer and not self._answer.endswith("\n") else ""

    def _answering(self, event: AnswerToken | AnswerRestarted) -> str:
        if isinstance(event, AnswerRestarted):
            end, self._answer = self.broken_off(), ""
            return f"{end}(the answer begins again)\n"
        before = "" if self._answer or self._quiet else "\n"
        self._answer += event.text
        return before + event.text

    def _ended(self, event: TaskCompleted) -> str:
        """What is left to say: the answer if it was not streamed, files, and the account."""
        text = self._rest_of_answer(event.answer.text)
        if self._quiet:
            return text
        files = "".join(f"file: {self._place(each)}\n" for each in self._artifacts.values())
        usage = event.usage
        seconds = self._clock() - self._started
        return (
            f"{text}\n{files}{event.outcome}: {_count(usage.calls, 'model call')}, "
            f"{_count(usage.total_tokens, 'token')}, {seconds:.1f} s\n"
        )

    def _rest_of_answer(self, answer: str) -> str:
        if self._answer.strip() and answer.startswith(self._answer.rstrip()):
            answer = answer[len(self._answer) :]
            return answer if (self._answer + answer).endswith("\n") else f"{answer}\n"
        # Nothing was streamed, or something else than what counts in the end.
        before = self.broken_off() if self._quiet else f"{self.broken_off()}\n"
        return before + answer.rstrip("\n") + "\n"

    def _finished(self, event: SpecialistCompleted) -> str:
        result = event.result
        self._artifacts |= {artifact.path: artifact for artifact in result.artifacts}
        error = f": {_one_line(result.error)}" if result.error else ""
        return f"{_MARKS[result.status]} {_who(event)}{error} ({result.duration:.1f} s)"

    def _place(self, artifact: Artifact) -> str:
        title = f" ({_one_line(artifact.title)})" if artifact.title else ""
        path = (self._workspace / artifact.path).resolve()
        here = Path.cwd()
        return f"{path.relative_to(here) if path.is_relative_to(here) else path}{title}"


def _of_try(event: SpecialistInvoked | SpecialistRetried | SpecialistParked) -> str:
    match event:
        case SpecialistInvoked():
            return f"-> {_who(event)}: {_one_line(event.task)}"
        case SpecialistRetried():
            return f"[~] {_who(event)}: {_one_line(event.error)}; trying again"
        case SpecialistParked():
            steps = ", ".join(map(str, event.waiting_for)) or "another round"
            return f"[ ] {_who(event)}: waits for {steps}"


def _of_plan(event: PlanCreated | PlanUpdated) -> str:
    """A new plan in full, a revised one by its open steps; new statuses have had their lines."""
    if isinstance(event, PlanCreated):
        return f"\n{event.markdown.strip()}\n\n"
    if not event.changes:
        return ""
    steps = "".join(f"    {_open_step(step)}\n" for step in event.plan.open_steps())
    return f"plan revised (version {event.plan.version}, by {event.by}); open steps:\n{steps}"


def _of_course(
    event: RunStarted
    | ThinkingStarted
    | ThinkingCompleted
    | SpecialistToken
    | FeedbackGenerated
    | LimitReached
    | ReplyUnreadable,
) -> str:
    match event:
        case ThinkingStarted():
            return "thinking\n"
        case FeedbackGenerated(feedback=said) if said.should_continue:
            return f"feedback: {_one_line(said.feedback)}\n"
        case LimitReached():
            return f"limit reached: {event.limit}={event.value:g}\n"
        case ReplyUnreadable():
            complaint = f"{_one_line(event.complaint)} {_one_line(event.fallback)}"
            return f"unreadable reply of {event.node}: {complaint}\n"
        case RunStarted() | ThinkingCompleted() | SpecialistToken() | FeedbackGenerated():
            return ""


def _open_step(step: PlanStep) -> str:
    names = "".join(f" @{name}" for name in step.specialists)
    after = f" (after {', '.join(map(str, step.awaits))})" if step.awaits else ""
    return f"[ ] {step.id} {_one_line(step.description)}{names}{after}"


def _who(event: StepEvent) -> str:
    return f"step {event.step_id} {event.specialist}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

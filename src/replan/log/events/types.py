"""Everything that happens in a run, as a closed union of frozen events.

An event is the same live and when it is read from the log, and its JSON is the same at every door.
What is live only (a whole plan, a result, the text of a prompt) is in no JSON, and empty in an
event that is read: the state has it, or the log by a reference.
"""

from datetime import datetime
from functools import cached_property
from operator import not_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, JsonValue, field_serializer

from replan.base.declared.part import Effects
from replan.base.secrets.masking import KNOWN
from replan.base.values import Value
from replan.plan.markdown.overlooked import ParseWarning
from replan.plan.model import Author, PlanStep, StepStatus, TaskPlan
from replan.plan.rerun import Rerun
from replan.state.knowledge import RagMode, Source
from replan.state.options import Mode
from replan.state.outcomes import AttemptOutcome, ExecutionStatus, Outcome, TaskComplexity
from replan.state.questions import Question, QuestionKind
from replan.state.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from replan.state.results import FeedbackResult, SpecialistResult, ThinkingResult
else:
    # Whoever only reads events loads no framework for what is in none of them.
    AIMessage = FeedbackResult = SpecialistResult = ThinkingResult = Any

_CONTENT: Any = Field(default=None, exclude=True, repr=False)


class BaseEvent(Value):
    """What all events share.

    Attributes:
        seq: Its number in the run, from 1 and without a gap, given where it is appended to the
            run's log; None before, and for a piece of text, which is not kept.
        at: When it was appended; None where `seq` is.
        run_id: The run.
        round: The round; 0 before there is a plan.
        refs: The references to whole texts of which the log has only the beginning here, by the
            names of their fields.
    """

    seq: int | None = None
    at: datetime | None = None
    run_id: str
    round: int = 0
    refs: dict[str, str] = Field(
        default_factory=dict[str, str], exclude_if=lambda refs: not refs, repr=False
    )

    @cached_property
    def written(self) -> str:
        """The event as JSON; written once, however many follow the run."""
        return self.model_dump_json()


class StepEvent(BaseEvent):
    """What all events of a step share; `attempt` counts from 1."""

    step_id: int
    specialist: str
    attempt: int = 1


class WorkEvent(BaseEvent):
    """What all events share that happen in a step or outside the plan's steps.

    Attributes:
        step_id: The step; None where the host is at work, and outside a plan.
        specialist: Who does the step; empty where `step_id` is None.
    """

    step_id: int | None = None
    specialist: str = ""


class CallEvent(WorkEvent):
    """The fields that all events of one call of a model or a tool share.

    Attributes:
        call: Names the call among those of its node or attempt.
        node: The node that is at work.
        attempt: The attempt of the step, from 1; None where the host calls.
    """

    call: str
    node: str
    attempt: int | None = None

    @property
    def call_key(self) -> tuple[str, int | None, int | None, str]:
        """What the events of one call of a model or a tool have in common."""
        return self.node, self.step_id, self.attempt, self.call


class MessageText(Value):
    """A message to or from a model, as text; what is not text is named in brackets.

    Attributes:
        role: Who said it.
        length: The characters of the text.
        ref: The reference to the text in the log; empty where none is kept.
        text: The text, live only.
    """

    role: str
    length: int = 0
    ref: str = ""
    text: str = Field(default="", exclude=True, repr=False)

    def model_post_init(self, _: Any, /) -> None:
        if self.text:
            vars(self)["length"] = len(self.text)


class RunStarted(BaseEvent):
    """A run begins; `request` is the text of its last message."""

    type: Literal["run_started"] = "run_started"
    request: str


class StepsInvalidated(BaseEvent):
    """Settled steps run again, of a handed-in plan or after a change of results, and why."""

    type: Literal["steps_invalidated"] = "steps_invalidated"
    reruns: tuple[Rerun, ...]


class ThinkingStarted(BaseEvent):
    """The host begins to judge `request`."""

    type: Literal["thinking_started"] = "thinking_started"
    request: str = ""


class MemoryApplied(WorkEvent):
    """A part of a long conversation is not seen as it was said.

    `think` reports it for the host and all specialists that see the same. A specialist that sees
    something else reports it for each of its steps.

    Attributes:
        node: `think` or `specialist`.
        mode: The mode of the memory.
        visible: Messages that are seen.
        summarised: Messages that a summary replaces.
        omitted: Messages that were left out without a summary.
        truncated: Messages among those that are seen of which only the beginning is.
    """

    type: Literal["memory_applied"] = "memory_applied"
    node: str
    mode: Mode
    visible: int
    summarised: int = 0
    omitted: int = 0
    truncated: int = 0


class ThinkingCompleted(BaseEvent):
    """The host has judged the request.

    Attributes:
        complexity: The judgement.
        reasoning: Why.
        thinking: All of it, live only.
    """

    type: Literal["thinking_completed"] = "thinking_completed"
    complexity: TaskComplexity = TaskComplexity.COMPLEX
    reasoning: str = ""
    thinking: ThinkingResult | None = _CONTENT

    def model_post_init(self, _: Any, /) -> None:
        if (thought := self.thinking) is not None:
            vars(self).update(complexity=thought.complexity, reasoning=thought.reasoning)


class PlanEvent(BaseEvent):
    """What the events of a plan share.

    Attributes:
        version: The version of the plan.
        steps: The number of its steps.
        plan: The plan, live only.
        markdown: Its document, live only.
    """

    version: int = 0
    steps: int = 0
    plan: TaskPlan | None = _CONTENT
    markdown: str = Field(default="", exclude=True, repr=False)

    def model_post_init(self, _: Any, /) -> None:
        if self.plan is not None:
            vars(self).update(version=self.plan.version, steps=self.plan.total_steps)


class PlanCreated(PlanEvent):
    """There is a plan.

    Attributes:
        title: Its title.
        outline: Its steps as planned: the line of each, who does it, and what it waits for.
    """

    type: Literal["plan_created"] = "plan_created"
    title: str = ""
    outline: tuple[PlanStep, ...] = ()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self.plan is not None:
            outline = tuple(map(_outlined, self.plan.steps))
            vars(self).update(title=KNOWN.masked(self.plan.title), outline=outline)

    @field_serializer("outline")
    def _without_defaults(self, outline: tuple[PlanStep, ...]) -> list[dict[str, Any]]:
        return [step.model_dump(mode="json", exclude_defaults=True) for step in outline]


def _outlined(step: PlanStep) -> PlanStep:
    """A step without its work and its marks, and without known secrets."""
    return PlanStep(
        id=step.id,
        description=KNOWN.masked(step.description),
        assigned_to=step.assigned_to,
        joined_by=step.joined_by,
        dependencies=step.dependencies,
        condition=step.condition,
    )


class PlanParseWarning(BaseEvent):
    """A plan contains text that was read as something else than it looks like, or was ignored."""

    type: Literal["plan_parse_warning"] = "plan_parse_warning"
    parse_warnings: tuple[ParseWarning, ...]


class PlanUpdated(PlanEvent):
    """The plan changed: a revision (`changes` says what) or new statuses (`changes` is empty)."""

    type: Literal["plan_updated"] = "plan_updated"
    changes: dict[str, JsonValue] = Field(default_factory=dict)
    by: Author = "model"


class StepsRouted(BaseEvent):
    """Steps without a specialist go to those whose cards fit; `assignments` has them by step."""

    type: Literal["steps_routed"] = "steps_routed"
    assignments: dict[int, str]


class SpecialistInvoked(StepEvent):
    """An attempt of a step starts: its dependencies are done and there is a free place.

    `idempotency_key` is what the services that it calls are handed.
    """

    type: Literal["specialist_invoked"] = "specialist_invoked"
    task: str
    idempotency_key: str = ""


class SpecialistToken(StepEvent):
    """A piece of a specialist's text."""

    type: Literal["specialist_token"] = "specialist_token"
    text: str


class SpecialistRetried(StepEvent):
    """An attempt failed, and another attempt follows."""

    type: Literal["specialist_retried"] = "specialist_retried"
    error: str

    @property
    def outcome(self) -> AttemptOutcome:
        """How the attempt ended."""
        return "failed"


class AttemptEnded(StepEvent):
    """An attempt ended, and neither with a result of the step nor so that another one follows.

    Attributes:
        outcome: `waiting` if it asked a person, `cancelled` if it was cut off, `failed` if a limit
            of the run ended it.
        error: Why it failed, or was cut off.
    """

    type: Literal["attempt_ended"] = "attempt_ended"
    outcome: AttemptOutcome
    error: str = ""


class StepDeferred(StepEvent):
    """A step cannot start in this round and stays pending."""

    type: Literal["step_deferred"] = "step_deferred"
    waiting_for: tuple[int, ...]


class EarlyStepDropped(StepEvent):
    """A step that began before its plan was complete is not in the plan, so it was cancelled."""

    type: Literal["early_step_dropped"] = "early_step_dropped"
    task: str


class SpecialistCompleted(StepEvent):
    """A step ended at a specialist, with success or not.

    Attributes:
        status: How it ended.
        seconds: How long the last attempt took.
        error: Why it failed.
        cut: Why its result is incomplete; empty if it is complete.
        step_seconds: The time at work since its first attempt, where a log of events takes it.
        result: The result, live only.
    """

    type: Literal["specialist_completed"] = "specialist_completed"
    status: ExecutionStatus = ExecutionStatus.FAILED
    seconds: float = 0.0
    error: str = ""
    cut: str = ""
    step_seconds: float | None = None
    result: SpecialistResult | None = _CONTENT

    def model_post_init(self, _: Any, /) -> None:
        if (result := self.result) is not None:
            outcome_fields = {"status": result.status, "error": result.error, "cut": result.cut}
            vars(self).update(outcome_fields, seconds=round(result.duration, 3))

    @property
    def text(self) -> str:
        """The text of the result, live only."""
        return "" if self.result is None else self.result.text

    @property
    def outcome(self) -> AttemptOutcome:
        """How the last attempt ended: whatever is not a success has failed."""
        return "done" if self.status is ExecutionStatus.SUCCESS else "failed"

    @property
    def step_status(self) -> StepStatus:
        """The status in which the specialist leaves the step."""
        return StepStatus.COMPLETED if self.outcome == "done" else StepStatus.FAILED


AttemptEnd = SpecialistRetried | AttemptEnded | SpecialistCompleted
"""What ends an attempt; one without such an event is at work, or was cut off by a kill."""


class InputRequested(StepEvent):
    """A step asks a person and waits for the answer. Each question is one event.

    Attributes:
        key: The key of the question.
        text: The question.
        kind: Its kind.
        tool: The tool that a person decides about; else empty.
        arguments: The arguments of its call.
        question: All of it, live only.
    """

    type: Literal["input_requested"] = "input_requested"
    key: str = ""
    text: str = ""
    kind: QuestionKind = "question"
    tool: str = ""
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    question: Question | None = _CONTENT

    def model_post_init(self, _: Any, /) -> None:
        if (asked := self.question) is not None:
            call = asked.fields if asked.is_decision else {}
            call_fields = {name: call[name] for name in ("tool", "arguments") if name in call}
            vars(self).update(call_fields, key=asked.key, text=asked.text, kind=asked.kind)


class ApprovalRequested(BaseEvent):
    """A plan waits for a person's decision before it runs.

    Attributes:
        reason: Why the plan is as it is, or why it was revised.
        problem: Why the last decision could not be used; empty at first.
        question: All of it, live only.
    """

    type: Literal["approval_requested"] = "approval_requested"
    reason: str = ""
    problem: str = ""
    question: Question | None = _CONTENT

    def model_post_init(self, _: Any, /) -> None:
        if (asked := self.question) is not None:
            vars(self).update(reason=asked.fields.get("reason", ""), problem=asked.problem)


AnswerAction = Literal["answered", "approved", "edited", "rejected"]
"""How a person answered what a run asked."""


class AnswerReceived(WorkEvent):
    """A person answered what the run asked, and the run has taken it.

    Attributes:
        key: What was asked: the key of a question, or `plan`.
        kind: The kind of the question, or `plan`.
        action: What the person decided; `answered` where the answer is a text.
        by: Who it was, where the caller said it.
        text: The answer, the reason of a rejection, or the changed arguments of a call as JSON; of
            a changed plan, nothing.
    """

    type: Literal["answer_received"] = "answer_received"
    key: str
    kind: QuestionKind | Literal["plan"]
    action: AnswerAction
    by: str = ""
    text: str = ""


class ModelInvoked(CallEvent):
    """A model is called; each retry is a separate call.

    `provider` is what LangChain calls its provider; empty if that is not known. `prompt` is what it
    is sent; it is empty if prompts are not kept, or nothing listens. `is_reprompt`: its last reply
    could not be used as it was, and it is told why.
    """

    type: Literal["model_invoked"] = "model_invoked"
    model: str
    provider: str = ""
    is_reprompt: bool = False
    prompt: tuple[MessageText, ...] = Field(default=(), repr=False)


class ModelCompleted(CallEvent):
    """A call of a model is over: `error` says why if it failed.

    `cost` is what is charged for it, in the currency of the prices. Tokens that the server did not
    report, and the cost of a model without a price, are None. `cached_tokens` are those of the
    input tokens that came from a cache of the provider. `reply` is kept as `prompt` is.
    """

    type: Literal["model_completed"] = "model_completed"
    model: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float
    error: str = ""
    reply: MessageText | None = Field(default=None, repr=False)


class KnowledgeRetrieved(WorkEvent):
    """The team's knowledge was searched.

    Attributes:
        node: `think` or `specialist`.
        mode: What happens to what is found.
        sources: Where it is, the best first.
        skipped: What could not be searched, a sentence each.
        unused: What was found and is not given, since a model found no help in it or
            `map_max_chunks` kept it from being read, a sentence each.
        failed: What is missing or longer since a model failed, a sentence each.
        error: Why there is no knowledge; empty where the search came to an end.
        seconds: How long it took, calls of models included.
        attempt: The attempt of the step; None for the host.
    """

    type: Literal["knowledge_retrieved"] = "knowledge_retrieved"
    node: str
    mode: RagMode
    sources: tuple[Source, ...] = ()
    skipped: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    error: str = ""
    seconds: float = 0.0
    attempt: int | None = None


ToolDecision = Literal["approved", "edited", "rejected"]
"""What a person said about a tool's call: yes, yes with other arguments, or no."""

ToolStatus = Literal["success", "failed", "rejected", "waiting", "cancelled"]
"""How a tool's call ended; `waiting` means that it asks a person, and will be called again."""


class ToolEvent(CallEvent):
    """The fields that the events of a tool's call share; `approval` is None if nobody was asked.

    `tool_call_id` is the id that the model gave the call; empty where no model did.
    """

    tool: str
    tool_call_id: str = ""
    arguments: dict[str, JsonValue]
    effects: Effects
    approval: ToolDecision | None = None


class ToolInvoked(ToolEvent):
    """A tool is called."""

    type: Literal["tool_invoked"] = "tool_invoked"


class ToolCompleted(ToolEvent):
    """A tool's call is over, or a person did not allow it; `result` is what the model gets."""

    type: Literal["tool_completed"] = "tool_completed"
    status: ToolStatus
    result: str = ""
    seconds: float = 0.0


class FactEvent(WorkEvent):
    """What the events of a fact share.

    Attributes:
        fact_id: The fact.
        text: What it says.
        node: `direct_answer` or `specialist`.
    """

    fact_id: str
    text: str
    node: str


class FactRemembered(FactEvent):
    """A model remembered a fact of the run's user, for later conversations."""

    type: Literal["fact_remembered"] = "fact_remembered"


class FactForgotten(FactEvent):
    """A model forgot a fact of the run's user."""

    type: Literal["fact_forgotten"] = "fact_forgotten"


class PhaseEntered(WorkEvent):
    """A pipeline works in a phase.

    Attributes:
        phase: The phase.
        path: The path of the sub-thread; empty in the main thread.
    """

    type: Literal["phase_entered"] = "phase_entered"
    phase: str
    path: str = ""


class PlaceholderShown(WorkEvent):
    """A pipeline shows a text that its result replaces.

    Attributes:
        message_id: The message.
        text: What it says until then.
        path: The path of the sub-thread; empty in the main thread.
    """

    type: Literal["placeholder_shown"] = "placeholder_shown"
    message_id: str
    text: str
    path: str = ""


class FeedbackGenerated(BaseEvent):
    """A round was judged.

    Attributes:
        text: What the host says about it.
        should_continue: Whether another round follows.
        by: Whether a model, a rule or a person judged.
        round_seconds: Its time, where a log of events takes it.
        feedback: All of the judgement, live only.
    """

    type: Literal["feedback_generated"] = "feedback_generated"
    text: str = ""
    should_continue: bool = False
    by: Author = "model"
    round_seconds: float | None = None
    feedback: FeedbackResult | None = _CONTENT

    def model_post_init(self, _: Any, /) -> None:
        if (judged := self.feedback) is not None:
            vars(self).update(
                text=judged.feedback, should_continue=judged.should_continue, by=judged.by
            )


class LimitReached(BaseEvent):
    """A limit is reached.

    `scope` is the owner of the limit: `run`, `specialist/<name>` or `step/<id>`. At a limit of the
    run, the run ends with what it has. At another limit the step fails, and other steps continue.

    `reason` has the figures, where a call was refused for which there was no room: what is spent,
    what is kept for the answer, and what the call might have needed.

    If the answer is incomplete, `limit` is `reply_length`, `unfinished_reply` or `content_filter`,
    and `value` is the number of its tokens. If the host's model gave no answer, `limit` is
    `no_answer`, and `reason` is the error.
    """

    type: Literal["limit_reached"] = "limit_reached"
    limit: str
    value: float
    scope: str = "run"
    reason: str = ""


class AnswerToken(BaseEvent):
    """A piece of the answer."""

    type: Literal["answer_token"] = "answer_token"
    text: str


class AnswerReset(BaseEvent):
    """The answer tokens so far are void; the answer begins again."""

    type: Literal["answer_reset"] = "answer_reset"


class ReplyParseFailed(BaseEvent):
    """A reply of a model could not be read.

    Attributes:
        node: The node that asked for it.
        problem: Why it could not be read.
        fallback: What is done instead.
    """

    type: Literal["reply_parse_failed"] = "reply_parse_failed"
    node: str
    problem: str
    fallback: str


class WarningReported(BaseEvent):
    """Something unexpected that no other event reports."""

    type: Literal["warning"] = "warning"
    text: str


class RunStopped(BaseEvent):
    """The run is not over, and no process works on it.

    `reason` is `waiting` for a person, `interrupted` by a request to stop, or `failed`, with the
    `error`. `by` says who requested it, `seconds` the time at work since the run began.
    `is_imported` of a run that another process exported then: its events before are there.
    """

    type: Literal["run_stopped"] = "run_stopped"
    reason: Literal["waiting", "interrupted", "failed"]
    by: str = ""
    error: str = ""
    seconds: float = 0.0
    is_imported: bool = Field(default=False, exclude_if=not_)

    @property
    def outcome(self) -> Literal["waiting", "interrupted"]:
        """The status of the run; one whose work failed before its end can be resumed."""
        return "waiting" if self.reason == "waiting" else "interrupted"


class RunResumed(BaseEvent):
    """A process works on the run again; `by` says who resumed or answered it."""

    type: Literal["run_resumed"] = "run_resumed"
    by: str = ""

    @property
    def outcome(self) -> Literal["running"]:
        """The status of the run."""
        return "running"


class RunCorrected(BaseEvent):
    """A person has a step repeated or skipped; `by` says who.

    `origin` is the finished run whose document this run continues from; otherwise empty.
    """

    type: Literal["run_corrected"] = "run_corrected"
    action: Literal["retry", "skip"]
    step_id: int
    by: str = ""
    origin: str = ""


class RunSteered(BaseEvent):
    """A person edits the plan of a run at work, or sends its host a message.

    Attributes:
        kind: What the person did.
        status: `waits` once the run has noticed it: no step of the old plan begins any longer.
            `taken`: the plan is edited, or the host has judged with the message. `refused`:
            nothing was done with it.
        request: The name of the request, the same in all events about it.
        by: The person.
        text: The message; empty for an edit.
        waiting_for: The steps at work that it waits for.
        based_on: The version of the plan that an edit was made from.
        version: The version of the plan after it; 0 while it waits, and for a message.
        reason: Why it was refused.
    """

    type: Literal["run_steered"] = "run_steered"
    kind: Literal["edit", "message"]
    status: Literal["waits", "taken", "refused"]
    request: str
    by: str = ""
    text: str = ""
    waiting_for: tuple[int, ...] = ()
    based_on: int = 0
    version: int = 0
    reason: str = ""


class TaskCompleted(BaseEvent):
    """The run is over.

    Attributes:
        outcome: How it ended.
        warnings: Everything unexpected that it reported.
        run_seconds: The time at work since it began, where a log of events takes it.
        stats: The counts of all calls, and of what it continued in spite of, where a log has them.
        answer: The answer, live only.
        usage: What model calls used, live only.
        output: The value of the answer, where it is of a type; live only.
    """

    type: Literal["task_completed"] = "task_completed"
    outcome: Outcome
    warnings: tuple[str, ...] = ()
    run_seconds: float | None = None
    stats: dict[str, dict[str, int | float]] = Field(
        default_factory=dict[str, dict[str, int | float]]
    )
    answer: AIMessage | None = _CONTENT
    usage: Usage = Field(default=Usage(), exclude=True, repr=False)
    output: JsonValue = _CONTENT

    @property
    def text(self) -> str:
        """The text of the answer, live only."""
        return "" if self.answer is None else self.answer.text


class MemorySummary(BaseEvent):
    """A summary of the conversation was written after the answer, or could not be.

    Attributes:
        node: Who asked, as in `usage`; `task_completed` does not have what it took.
        covered: Messages that the summary covers now.
        model: The model that was asked.
        calls: The calls that it took.
        input_tokens: What the servers counted of the requests; None where they did not.
        output_tokens: What they counted of the replies.
        cost: What is charged for the calls; None for a model without a price.
        seconds: How long they took.
        error: Why there is no new summary; empty where there is one.
        prompt: What the model was sent, kept as that of other calls is.
        reply: What it said.
    """

    type: Literal["memory_summary"] = "memory_summary"
    node: Literal["memory_summary"] = "memory_summary"
    covered: int
    model: str = ""
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    error: str = ""
    prompt: tuple[MessageText, ...] = Field(default=(), repr=False)
    reply: MessageText | None = Field(default=None, repr=False)


Event = Annotated[
    RunStarted
    | StepsInvalidated
    | ThinkingStarted
    | MemoryApplied
    | ThinkingCompleted
    | PlanCreated
    | PlanParseWarning
    | PlanUpdated
    | StepsRouted
    | SpecialistInvoked
    | SpecialistToken
    | SpecialistRetried
    | AttemptEnded
    | StepDeferred
    | EarlyStepDropped
    | SpecialistCompleted
    | InputRequested
    | ApprovalRequested
    | AnswerReceived
    | ModelInvoked
    | ModelCompleted
    | KnowledgeRetrieved
    | ToolInvoked
    | ToolCompleted
    | FactRemembered
    | FactForgotten
    | PhaseEntered
    | PlaceholderShown
    | FeedbackGenerated
    | LimitReached
    | AnswerToken
    | AnswerReset
    | ReplyParseFailed
    | WarningReported
    | RunStopped
    | RunResumed
    | RunCorrected
    | RunSteered
    | TaskCompleted
    | MemorySummary,
    Field(discriminator="type"),
]
"""Any event of a run."""

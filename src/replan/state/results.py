"""What the nodes produce: thinking, execution contexts, results and their digest, feedback.

Whoever asks what the steps of a run came to asks here: prompts, nodes, steps, views.
The names follow the Eino host multi-agent design that this project grew from.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, AnyMessage
from pydantic import Field, JsonValue

from replan.base.texts.storable import storable_text, unstorable
from replan.base.values import Value
from replan.plan.model import Author, PlanStep, PlanUpdateType, StepStatus, TaskPlan
from replan.plan.statuses import excerpt
from replan.state.knowledge import Source
from replan.state.outcomes import Artifact, ExecutionStatus, TaskComplexity, with_cut
from replan.state.session.session import Session, check_project_state
from replan.state.usage import TokenCount


class ActionType(StrEnum):
    """What the host means to do next."""

    DIRECT_ANSWER = "direct_answer"
    CREATE_PLAN = "create_plan"
    EXECUTE_STEP = "execute_step"
    REFLECT = "reflect"
    UPDATE_PLAN = "update_plan"


class ThinkingResult(Value):
    """The host's judgement of a request.

    Attributes:
        thought: The body of the reply: an answer (simple) or a plan (complex).
        complexity: The judgement; it decides the route.
        reasoning: Why.
        next_action: What the host intends; shown, but `complexity` decides.
        original_messages: The messages of this request.
        score: The numeric complexity, if the model gave one.
        answer_step: The step of the plan whose result will be the answer, if the model named one.
        contradiction: A contradiction in the reply, or empty; `complexity` decided.
        timestamp: When.
    """

    thought: str
    complexity: TaskComplexity
    reasoning: str = ""
    next_action: ActionType | None = None
    original_messages: tuple[AnyMessage, ...] = ()
    score: float | None = None
    answer_step: int | None = None
    contradiction: str = ""
    timestamp: datetime


class ExecutionContext(Value):
    """Everything that a specialist sees of a run.

    Attributes:
        task_description: The step's line.
        plan_step: A snapshot of the step; the plan itself is changed by id only.
        messages: The conversation, bounded, with the request last.
        summary: What a summary says about earlier messages, or an empty text.
        parameters: The step's parameters.
        expected_format: The requested format of the answer.
        inputs: The result text of each dependency, by step id.
        knowledge_context: What the team's knowledge says about the step, with file and line, or
            an empty text.
        workspace: The folder that the specialist may read and write, or None.
        idempotency_key: The same for each attempt of the same work. It changes with the inputs, and
            when a person reopens a completed step.
        run_id: The run.
        round: The number of the round, from 1.
        attempt: The number of the attempt, from 1.
        session: The session that the step works for; None outside one.
    """

    task_description: str
    plan_step: PlanStep
    messages: tuple[AnyMessage, ...] = ()
    summary: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    expected_format: str = "markdown"
    inputs: dict[int, str] = Field(default_factory=dict[int, str])
    knowledge_context: str = ""
    workspace: str | None = None
    idempotency_key: str = ""
    run_id: str = ""
    round: int = 1
    attempt: int = 1
    session: Session | None = None

    @property
    def task(self) -> str:
        """The step's line and its brief; a brief that begins with the line is all of it."""
        line, brief = self.task_description, self.plan_step.brief
        if brief and " ".join(brief.split()).startswith(line):
            return brief
        return "\n\n".join(part for part in (line, brief) if part)


class MadeOf(Value):
    """What a result was made of, to see later whether it or its inputs were edited.

    Attributes:
        inputs: The digests of what the step was given, by the steps that gave it.
        text: The digest of the result's own text.
    """

    inputs: dict[int, str]
    text: str


if TYPE_CHECKING:
    Output = Any
else:
    Output = JsonValue  # what is stored; a `RunResult` has the value of its type


class SpecialistResult(Value):
    """The result of one step by one specialist.

    Attributes:
        specialist_name: The specialist; filled in if an output processor leaves it out.
        result: The answer, or None.
        status: success, failed or partial.
        error: Why the step failed.
        duration: Seconds, without the wait for dependencies.
        confidence: 0 to 1.
        step_id: The step.
        round: The round in which the step ran.
        retry_count: Attempts after the first that were made.
        replan_needed: Whether the host must revise the plan before anything else starts.
        retry: Whether another attempt can help; false ends the retries of a failed step.
        artifacts: Files left in the workspace.
        usage: What its model calls used.
        cut: Why the result is incomplete: `reply_length`, `unfinished_reply`, `content_filter`, or
            the limit that refused model calls of it; empty if the result is complete.
        output: The value of a specialist with an `output_type`: in the state as JSON, in a
            `RunResult` as a value of the type.
        made_of: The inputs of the result; filled in by the run, None if unknown.
        sources: The files and lines of the knowledge that the specialist was given.
        project_state: Changes of the session's project state, by names that are not Replan's own;
            None removes an entry. Those of a failed step do not count.
        excerpt: Whether this is the beginning of a longer result, which the log has whole: a state
            in a storage holds results so. `RunResult.results` has them whole.
        length: The characters of the whole text; 0 where this is not an excerpt.
        log_key: The key of the row in the run's log that has it whole; empty if none is needed.
    """

    specialist_name: str = ""
    result: AIMessage | None = None
    status: ExecutionStatus = ExecutionStatus.SUCCESS
    error: str = ""
    duration: float = 0.0
    confidence: float = Field(default=1.0, ge=0, le=1)
    step_id: int = 0
    round: int = 0
    retry_count: int = 0
    replan_needed: bool = False
    retry: bool = True
    artifacts: tuple[Artifact, ...] = ()
    usage: TokenCount = TokenCount()
    cut: str = ""
    output: Output = None
    made_of: MadeOf | None = None
    sources: tuple[Source, ...] = ()
    project_state: dict[str, JsonValue] = Field(default_factory=dict)
    excerpt: bool = False
    length: int = 0
    log_key: str = ""

    @property
    def key(self) -> str:
        """The key of this result in all mappings of results: `"<step id>/<specialist>"`."""
        return result_key(self.step_id, self.specialist_name)

    @property
    def text(self) -> str:
        """The text of the answer, empty without one."""
        if self.result is None:
            return ""
        # LangChain's `text` makes a copy of what is a text already.
        content = cast("str | list[Any]", self.result.content)
        return content if isinstance(content, str) else self.result.text

    @property
    def marked_text(self) -> str:
        """The text, with a mark if it is incomplete; empty without one."""
        text = self.text
        if self.excerpt and text:
            text = f"[The beginning of {self.length} characters; the rest is lost.]\n\n{text}"
        return with_cut(text, self.cut if text else "")

    @property
    def is_failed(self) -> bool:
        """Whether it failed."""
        return self.status is ExecutionStatus.FAILED


def storable_result(
    result: SpecialistResult, own: frozenset[str] = frozenset()
) -> SpecialistResult:
    """Return a result that every storage keeps; of a message with odd extras, what it says.

    Args:
        result: The result.
        own: The names of Replan in the project state that it may change.

    Raises:
        ContextError: It changes the project state in a way that is not allowed.
    """
    check_project_state(result.project_state, own)
    message = result.result
    if message is not None and unstorable(message):
        message = AIMessage(storable_text(message.text), id=message.id)
    error = storable_text(result.error)
    if message is result.result and error == result.error:
        return result
    return result.replace(result=message, error=error)


class CollectedResults(Value):
    """A digest of one round's results. The whole texts are in `current_specialist_results`.

    Attributes:
        results: The round's results by key, each text cut to an excerpt.
        successful_results: The keys of the results with status success.
        failed_results: The keys of all other results, including partial ones.
        summary: One line a result, for people and for the host.
    """

    results: dict[str, SpecialistResult] = Field(default_factory=dict)
    successful_results: tuple[str, ...] = ()
    failed_results: tuple[str, ...] = ()
    summary: str = ""


class FeedbackResult(Value):
    """The host's judgement of a round.

    Attributes:
        feedback: What the host says about the results.
        should_continue: Whether another round follows; rules can overrule it.
        suggested_action: What the host would do next.
        plan_update_suggestion: What should change in the plan.
        plan_update_type: The kind of change, if the host named one.
        revised_plan: The whole revised document, or empty.
        final_answer: The answer, only if the work is done.
        answer_step: The step whose result the host named as the answer; None if it wrote one.
        collected_results: What was judged.
        contradiction: A contradiction in the reply, or empty; the verdict decided.
        by: Whether a model, a rule or a person gave this judgement.
    """

    feedback: str = ""
    should_continue: bool
    suggested_action: ActionType | None = None
    plan_update_suggestion: str = ""
    plan_update_type: PlanUpdateType | None = None
    revised_plan: str = ""
    final_answer: AIMessage | None = None
    answer_step: int | None = None
    collected_results: CollectedResults | None = None
    contradiction: str = ""
    by: Author = "model"


class ExecutionRecord(Value):
    """One round in the history.

    Attributes:
        round: The round.
        results: The results of its steps.
        timestamp: When it was over.
    """

    round: int
    results: CollectedResults
    timestamp: datetime


class Assignment(Value):
    """One step at one specialist, to be dispatched in a round.

    Attributes:
        step_id: The step.
        specialist: Who does it.
        refused: Why nobody can do it; empty if somebody can.
        asked_by_edit: The keys of the questions of a step that began with an edited plan which is
            not merged yet; None of any other step.
    """

    step_id: int
    specialist: str
    refused: str = ""
    asked_by_edit: tuple[str, ...] | None = None

    @property
    def key(self) -> str:
        return result_key(self.step_id, self.specialist)


class UnreadableReply(Value):
    """A reply of a model that the host could not read, and what was done instead.

    Attributes:
        node: The node that asked for it.
        problem: Why it could not be read.
        fallback: What was done instead.
    """

    node: str
    problem: str
    fallback: str


def result_key(step_id: int, specialist: str) -> str:
    """The key of a result in all mappings of results: `"<step id>/<specialist>"`."""
    return f"{step_id}/{specialist}"


def result_as_json(result: SpecialistResult, *, is_short: bool = False) -> dict[str, JsonValue]:
    """Write a result as JSON; of messages of other classes, only their text.

    Args:
        result: The result.
        is_short: Whether fields are left out that are as in any other result.
    """
    message = result.result
    if message is not None and type(message) is not AIMessage:
        result = result.replace(result=AIMessage(message.text, id=message.id))
    try:
        written = result.model_dump(mode="json", exclude_defaults=is_short)
    except ValueError:
        result = result.replace(result=AIMessage(result.text))
        written = result.model_dump(mode="json", exclude_defaults=is_short)
    return cast("dict[str, JsonValue]", written)


def newest_results(state: Mapping[str, object]) -> dict[str, SpecialistResult]:
    """The newest results of this run, by their keys."""
    return _results_under("current_specialist_results", state)


def known_results(state: Mapping[str, object]) -> dict[str, SpecialistResult]:
    """The newest results by their keys, those of the run that a document came from too."""
    return {**_results_under("carried_results", state), **newest_results(state)}


def results_by_step(state: Mapping[str, object]) -> dict[int, list[SpecialistResult]]:
    """The known results, by step."""
    by_step: dict[int, list[SpecialistResult]] = {}
    for result in known_results(state).values():
        by_step.setdefault(result.step_id, []).append(result)
    return by_step


def _results_under(name: str, state: Mapping[str, object]) -> dict[str, SpecialistResult]:
    return cast("dict[str, SpecialistResult]", state.get(name, {}))


def round_results(state: Mapping[str, object]) -> dict[str, SpecialistResult]:
    """The results of the running round."""
    current = state.get("current_round", 0)
    return {key: result for key, result in newest_results(state).items() if result.round == current}


def sources_of_results(state: Mapping[str, object]) -> list[Source]:
    """The passages that results cite, those of an earlier run first."""
    earlier = _results_under("carried_results", state).values()
    return [s for result in (*earlier, *newest_results(state).values()) for s in result.sources]


def status_of(results: Iterable[SpecialistResult]) -> StepStatus:
    """The status of a step from all its results: one success is enough."""
    succeeded = any(result.status is ExecutionStatus.SUCCESS for result in results)
    return StepStatus.COMPLETED if succeeded else StepStatus.FAILED


def settled(step: PlanStep, results: Sequence[SpecialistResult]) -> PlanStep:
    """The step with its outcome, from all specialists that it was sent to."""
    status = status_of(results)
    errors = "; ".join(result.error for result in results if result.error) or "only a part is done"
    outcome = {
        "status": status,
        "result": excerpt(joined_texts(results)),
        "feedback": "" if status is StepStatus.COMPLETED else excerpt(errors),
        "actual_duration": max(result.duration for result in results),
        "retry_count": max(result.retry_count for result in results),
    }
    return step.model_copy(update=outcome)


def joined_texts(results: Iterable[SpecialistResult]) -> str:
    """The text of a step's results; those of several specialists are under their names."""
    with_text = [result for result in results if result.text]
    if len(with_text) == 1:
        return with_text[0].marked_text
    return "\n\n".join(
        f"### {result.specialist_name}\n\n{result.marked_text}" for result in with_text
    )


def own_results(step: PlanStep, results: Iterable[SpecialistResult]) -> list[SpecialistResult]:
    """The results of the specialists that a step names, in order; all if it names nobody."""
    if not step.specialists:
        return list(results)
    names = [name.strip().casefold() for name in step.specialists]
    named_results = (result for result in results if result.specialist_name.casefold() in names)
    return sorted(named_results, key=lambda result: names.index(result.specialist_name.casefold()))


def inputs_of(
    step: PlanStep,
    awaited: Mapping[int, PlanStep],
    results: Mapping[int, Iterable[SpecialistResult]],
) -> dict[int, str]:
    """The inputs of a step from its dependencies: the same in every round."""
    texts = {
        step_id: _input_from(awaited[step_id], results.get(step_id, ()))
        for step_id in step.awaits
        if step_id in awaited
    }
    return {step_id: text for step_id, text in texts.items() if text}


def _input_from(step: PlanStep, results: Iterable[SpecialistResult]) -> str:
    """The whole result of a step, else the excerpt in the plan; a failure is not a result."""
    step_results = own_results(step, results)
    # If a person settled the step, the results are from earlier attempts.
    whole = joined_texts(step_results) if status_of(step_results) is step.status else ""
    return whole or step.result


class Generation(Value):
    """How often a step of a run was settled before, so which records belong to it.

    Attributes:
        settled: How often it was settled, well or not. The record of an earlier generation
            does not answer for this one.
        done: How often it was completed. Services take it for other work then: who opens a
            completed step requests it again.
    """

    settled: int = 0
    done: int = 0


FIRST = Generation()
"""The generation of a step that was never settled."""


def after_round(
    known: Mapping[int, Generation], before: TaskPlan, after: TaskPlan
) -> dict[int, Generation]:
    """Return the generations of the steps that a round settled, if they are ever reopened."""
    was_open = {step.id for step in before.open_steps()} | (after.by_id.keys() - before.by_id)
    return {
        step.id: _next(known.get(step.id, FIRST), step)
        for step in after.steps
        if step.id in was_open and step.status in (StepStatus.COMPLETED, StepStatus.FAILED)
    }


def _next(last: Generation, step: PlanStep) -> Generation:
    is_done = step.status is StepStatus.COMPLETED
    return Generation(settled=last.settled + 1, done=last.done + is_done)


_LINE = 200  # characters of a result in the summary


def collect(results: Mapping[str, SpecialistResult]) -> CollectedResults:
    """Divide results into successes and all others, with texts cut to excerpts."""
    succeeded = {k for k, result in results.items() if result.status is ExecutionStatus.SUCCESS}
    return CollectedResults(
        results={key: _digest(result) for key, result in results.items()},
        successful_results=tuple(key for key in results if key in succeeded),
        failed_results=tuple(key for key in results if key not in succeeded),
        summary=generate_result_summary(results),
    )


def generate_result_summary(results: Mapping[str, SpecialistResult]) -> str:
    """Write a line for each result: its status, and how its error or its text begins."""
    return "\n".join(
        f"- {key}: {_status_words(result)}, confidence {result.confidence:g}: {_beginning(result)}"
        for key, result in results.items()
    )


def _digest(result: SpecialistResult) -> SpecialistResult:
    text = excerpt(result.text)
    if result.excerpt or result.result is None or text == result.text:
        return result
    message = AIMessage(text, id=result.result.id)
    beginning = {"result": message, "excerpt": True, "length": len(result.text)}
    return result.model_copy(update=beginning)


def _beginning(result: SpecialistResult) -> str:
    text = (result.error or result.text).strip().partition("\n")[0]
    if not text and result.excerpt:
        return f"{result.length} characters"
    return excerpt(text, _LINE)


def _status_words(result: SpecialistResult) -> str:
    return f"{result.status.value}, incomplete" if result.cut else result.status.value

"""One turn of a session: from the input and the context to the result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from langgraph.types import Overwrite, StateSnapshot
from pydantic import JsonValue

from replan.base.errors import UsageError
from replan.base.failures import describe
from replan.base.secrets.masking import MASK
from replan.log.events.types import Event, MemoryApplied
from replan.log.whole_results import whole_values
from replan.ports.run_context import using
from replan.runs.asked.asks import asks_in
from replan.runs.asked.pending import PendingQuestion, check_changed_plan
from replan.runs.calling.compiled import services_in, shapes_of
from replan.runs.result import RunResult, result_of
from replan.runs.travel.portable import PortableRun, portable_run
from replan.sessions.carried_run import RUN, RunCarrier, asks_of_run
from replan.sessions.history import message_of, visible_part, whole_summary
from replan.sessions.request import UserMessage, answers_to
from replan.sessions.run_place import RunPlace
from replan.sessions.session_work import KeptWork
from replan.sessions.step_changes import step_changes, with_changes
from replan.sessions.tool_calls import CompletedCalls
from replan.specialists.services import Services
from replan.state.conversation.conversation import MemoryPolicy, resolved
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.limits import RunSettings
from replan.state.options import Summary
from replan.state.outcomes import INCOMPLETE
from replan.state.person.answers import shown_in
from replan.state.questions import Question
from replan.state.results import newest_results
from replan.state.session.context import AgentContext, AgentResult, Content, Message, Stage
from replan.state.session.session import Seal, Session, SessionWork

PLAN = "plan"
"""The key of `project_state` that has the document of the newest plan."""

SUMMARY = "memory_summary"
"""The key of `project_state` that has the summary of the history's beginning."""


_SUMMARY = "summarise"


@dataclass(kw_only=True)
class Turn:
    """One call of an agent, with everything that lives as long."""

    clock: Callable[[], datetime]
    context: AgentContext
    message: UserMessage
    run: PortableRun | None  # that waits, or was stopped
    summary: Summary | None  # of the beginning of the history
    begins_anew: bool  # whether a new run begins, whatever waits
    run_id: str  # of a new run
    settings: RunSettings | None
    carrier: RunCarrier  # writes the run into the context
    work: KeptWork | None  # what the session keeps of a team without a host
    listener: Callable[[Event], None] | None  # receives the events of the run
    _place: RunPlace = field(init=False)
    _tools: CompletedCalls = field(init=False)
    _problem: str = ""  # why what was said could not be used
    _answered: frozenset[str] = frozenset()  # the keys of the questions that it answers
    _held_back: int = 0  # messages of the history that the graph is not given

    def __post_init__(self) -> None:
        self._tools = CompletedCalls(self.clock)

    def report_again(self, event: Event) -> None:
        """Take an event of the run that was reported before."""
        self._tools.take(event)

    def report(self, event: Event) -> None:
        """Take an event of the run."""
        self._tools.take(event)
        if self.listener is None:
            return
        if isinstance(event, MemoryApplied):
            # Of these the graph does not know.
            name = "summarised" if event.mode == "summary" else "omitted"
            event = event.replace(**{name: getattr(event, name) + self._held_back})
        self.listener(event)

    async def result(self, place: RunPlace) -> AgentResult:
        """Take the turn; if the work fails, the result has what was done so far.

        Raises:
            UsageError: The turn cannot be taken, and nothing of the session has changed.
        """
        self._place = place
        try:
            with using(session=Session.of(self.context), work=self._work()):
                state, error = await self._state(), ""
        except UsageError:
            raise
        except Exception as failed:
            snapshot = await place.snapshot()
            if not self._has_begun(snapshot):
                raise
            state, error = {**snapshot.values, "outcome": "interrupted"}, describe(failed)
        whole = await whole_values(cast("EnhancedState", state), place.log)
        result = result_of(whole, shapes=shapes_of(place.graph))
        response = "" if error else response_of(result, self._problem)
        before = None if self.begins_anew else self.run
        changes, overwritten = step_changes(result.state, before)
        after = await self._after(result, response, changes)
        error = error or self._failure(result)
        return AgentResult(
            success=not error and bool(response or result.outcome == "interrupted"),
            response=response,
            context_updates=self.context.updates_to(after),
            metadata={
                **metadata_of(result, self._problem),
                "stage": after.current_stage,
                "warnings": [*result.warnings, *overwritten],
                "summary_due": await self._is_summary_due(result),
            },
            error=error or (None if response else _why_no_answer(result)),
            tool_execution_results=self._tools.over,
        )

    @property
    def _session(self) -> AgentContext:
        """The session before the turn, without work that the user gave up."""
        if self.work is None or not self.begins_anew:
            return self.context
        state = self.work.given_up(self.context.project_state)
        return self.context.replace(project_state={**state})

    @property
    def _seal(self) -> Seal | None:
        """What closes what a person says to a specialist that takes secrets."""
        return None if self.work is None else self.work.seal(self.context.session_id)

    def _failure(self, result: RunResult) -> str:
        """Why there is no answer of a team without a host, if its one step failed."""
        results = newest_results(result.state).values()
        failed = [result for result in results if result.is_failed and not result.text]
        return "\n".join(result.error for result in failed) if self._services.is_direct else ""

    @property
    def _services(self) -> Services:
        return cast("Services", services_in(self._place.graph))

    async def _state(self) -> dict[str, Any]:
        """Work until the run rests, and return its state."""
        place = self._place
        if self.run is not None:
            await place.take_up(self.run)
        if self.run is None or self.begins_anew:
            return await self._begun()
        state, is_answered = await place.go_on(self.run, self.settings)
        asks = asks_in(state) if self.run.waits and not is_answered else ()
        if not asks or self.message.is_empty:
            return state
        try:
            shown = shown_in(asks_of_run(self.run))
            answers = answers_to(self.message, asks, shown)
            plan = plan_of(cast("EnhancedState", state))
            check_changed_plan(asks, answers, self._services, plan)
        except UsageError as error:
            self._problem = str(error)
            return state
        return await self._answer(state, asks, answers)

    async def _answer(
        self, state: Mapping[str, Any], asks: Sequence[Question], answers: Mapping[str, JsonValue]
    ) -> dict[str, Any]:
        """Answer what a run asks; secrets are on record as only this session can read them."""
        self._answered = frozenset(answers)
        seal, questions = self._seal, cast("Mapping[str, Question]", state.get("questions", {}))
        closed: dict[str, JsonValue] = {
            key: seal.closed(answer)
            if seal and key in questions and questions[key].secret
            else answer
            for key, answer in answers.items()
        }
        return await self._place.answer(state["run_id"], asks, closed, self.settings)

    def _work(self) -> SessionWork | None:
        """What the session has of the work of a team without a host."""
        if self.work is None:
            return None
        return SessionWork(
            session_id=self.context.session_id,
            state=self.work.before(self._session, None if self.begins_anew else self.run),
            goes_on=self.message.is_empty,
            seal=self._seal,
            said=message_of("user", self.message.content or "", 0).text,
        )

    async def _begun(self) -> dict[str, Any]:
        """Begin a new run, with the history that models may see."""
        history = self.context.dialogue_history
        messages, summary, self._held_back = visible_part(history, self.summary, self._memories())
        seen: dict[str, Any] | None = None
        if summary is not None:
            seen = {"messages": messages, "memory_summary": Overwrite(summary)}
            messages = []
        content, settings = self.message.content or _newest_request(history), self.settings
        if self._seal is not None:
            # What was said is handed over beside the run, and no prompt says it.
            content = self._services.names[0]
            settings = (settings or RunSettings()).replace(keep_prompts=False)
        run_input = {"messages": [*messages, message_of("user", content, len(history))]}
        return await self._place.begin(run_input, seen, settings, self.run_id)

    async def _is_summary_due(self, result: RunResult) -> bool:
        """Whether the summary after the answer has yet to be written."""
        memory = self._services.prompts.memory_in(result.state)
        is_over = result.outcome not in ("waiting", "interrupted")
        return (
            is_over and memory.mode == "summary" and _SUMMARY in (await self._place.snapshot()).next
        )

    def _memories(self) -> list[MemoryPolicy]:
        """What the host and the specialists see of a conversation."""
        wanted = [] if self.settings is None else [self.settings.memory]
        policies = (self._services.prompts.memory, *self._services.memory.values())
        return [resolved(options, *wanted) for options in policies]

    def _has_begun(self, snapshot: StateSnapshot) -> bool:
        """Whether there is a run of this turn to continue with."""
        found = snapshot.values.get("run_id")
        goes_on = self.run is not None and not self.begins_anew
        before = None if self.run is None else self.run.run_id
        return bool(found and snapshot.next) and (goes_on or found != before)

    def _messages(self, result: RunResult, at: str) -> tuple[Message, ...]:
        """The message for the history: an answer that may contain a secret is masked."""
        questions: Mapping[str, Question] = result.state.get("questions", {})
        messages = self.message.messages(at)
        is_secret = any(
            question.secret and key in self._answered for key, question in questions.items()
        )
        if not is_secret and self._seal is None:
            return messages
        return tuple(message.replace(content=MASK, metadata={}) for message in messages)

    async def _after(
        self, result: RunResult, response: str, changes: Mapping[str, JsonValue]
    ) -> AgentContext:
        """The session after the turn, with what its steps changed in the project state."""
        at, before = self.clock().isoformat(), self.context
        answered = [Message(role="assistant", content=response, timestamp=at)] if response else []
        kept, stage = with_changes(self._session.project_state, changes), stage_of(result)
        kept.pop(RUN, None)
        place, threads = self._place, self._services.threads
        if result.outcome in ("waiting", "interrupted"):
            snapshot = await place.snapshot_at_rest()
            run = await portable_run(snapshot, place.graph, place.log, threads, stays=place.is_kept)
            kept[RUN] = self.carrier.written(run, before.session_id, stays=place.is_kept)
            if self.work is not None and (copied := self.work.copied(run, before.session_id)):
                kept = {**self.work.given_up(kept), **copied}
        elif result.document:
            kept[PLAN] = result.document
        if self.work is not None and RUN not in kept:
            over = before.replace(project_state=kept)
            kept = {**await self.work.after(result.state, over, threads)}
            is_cut_off = self.work.is_unfinished(over.replace(project_state=kept))
            stage = "stopped" if is_cut_off else stage
        summary = whole_summary(before.dialogue_history, result.state.get("memory_summary"))
        if summary is not None:
            kept[SUMMARY] = summary.model_dump(mode="json")
        return before.replace(
            dialogue_history=(*before.dialogue_history, *self._messages(result, at), *answered),
            current_stage=stage,
            project_state=kept,
            tool_execution_history=(*before.tool_execution_history, *self._tools.over),
            session_metadata={**before.session_metadata, "last_updated": at},
        )


def _newest_request(history: Sequence[Message]) -> Content:
    """What the user said last, in a turn that says nothing and continues the work on it."""
    return next((message.content for message in reversed(history) if message.role == "user"), "")


def _why_no_answer(result: RunResult) -> str | None:
    if result.outcome == "interrupted":
        return None
    return f"The run {result.run_id} ended without an answer: {result.outcome}."


def stage_of(result: RunResult) -> Stage:
    """The status of a session after a run that has come to rest."""
    if result.outcome == "interrupted":
        return "stopped"
    if result.outcome != "waiting":
        return "done"
    return (
        "question"
        if all(ask.kind == "question" for ask in result.pending_questions)
        else "approval"
    )


def response_of(result: RunResult, problem: str) -> str:
    """The answer or the questions, and why the last message could not be used."""
    if result.outcome != "waiting":
        return result.text
    problems = [problem, *(ask.problem for ask in result.pending_questions)]
    open_questions = "\n".join(f"- {ask.key}: {ask.text}" for ask in result.pending_questions)
    if len(result.pending_questions) == 1:
        open_questions = "\n\n".join(
            [*result.pending_questions[0].remarks, result.pending_questions[0].text]
        )
    return "\n\n".join([*dict.fromkeys(problem for problem in problems if problem), open_questions])


def metadata_of(result: RunResult, problem: str) -> dict[str, JsonValue]:
    """The status of the run, as JSON."""
    failures = failures_of(result)
    plans, others = list[JsonValue](), list[JsonValue]()
    for question in map(PendingQuestion.of, result.pending_questions):
        (plans if question.kind == "plan" else others).append(question.model_dump(mode="json"))
    return {
        "outcome": result.outcome,
        "stage": stage_of(result),
        "run_id": result.run_id,
        "usage": cast("JsonValue", result.usage.model_dump(mode="json")),
        "questions": others,
        "approval": plans[0] if plans else None,
        "problem": problem,
        "degraded": result.outcome in INCOMPLETE or bool(failures),
        "failures": [*failures],
        "limit_reached": result.limit_reached,
        "warnings": list(result.warnings),
        "plan": result.document,
    }


def failures_of(result: RunResult) -> list[dict[str, JsonValue]]:
    """The steps that failed, and why."""
    return [
        {
            "step_id": other_result.step_id,
            "specialist": other_result.specialist_name,
            "error": other_result.error,
        }
        for other_result in newest_results(result.state).values()
        if other_result.is_failed
    ]

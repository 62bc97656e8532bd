"""The spans of one call of a graph: run, rounds, steps, attempts, and their calls.

Events open and close them, where and when they happen. The span of an attempt, and that of a call
in it, is the current one for what runs inside, so that what other libraries trace is below it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

from langgraph.errors import GraphDrained, GraphInterrupt
from opentelemetry.trace import Link, SpanKind

from replan.base.failures import describe
from replan.log.events import types as events
from replan.log.events.listeners import RUN, Tracing
from replan.traces import conventions as say
from replan.traces.conventions import AGENT, ERROR, OUTCOME, Attributes
from replan.traces.meters import Telemetry
from replan.traces.node import Node, root


class CallTrace:
    """The trace of one call of a graph; a run that continues has one for each call."""

    def __init__(
        self,
        tracing: Tracing,
        telemetry: Telemetry,
        team: str,
        thread_id: str,
        links: list[Link],
        worked: Mapping[object, float],
    ) -> None:
        """Begin the span of the run."""
        self._tracing = tracing
        self._telemetry = telemetry
        self._worked = dict(worked)  # seconds in earlier calls
        self._guard = Lock()
        self._team = say.one_line(team)
        about = say.of_call(self._team, thread_id)
        self._run = root(telemetry.tracer, f"invoke_workflow {self._team}", about, links)
        self._round_now: Node | None = None
        self._steps: dict[object, Node] = {}
        self._calls: dict[object, _Called] = {}
        self._is_heard = self._is_over = False
        self._outcome = ""

    @property
    def tracing(self) -> Tracing:
        """What made it."""
        return self._tracing

    @property
    def hears_texts(self) -> bool:
        """Whether it takes prompts and replies of models."""
        return self._telemetry.content

    @property
    def ref(self) -> str:
        """The span of the run as W3C's `traceparent` writes it."""
        its = self._run.span.get_span_context()
        return f"00-{its.trace_id:032x}-{its.span_id:016x}-{its.trace_flags:02x}"

    def take(self, event: events.BaseEvent) -> None:
        """Open or close the spans of an event, from whatever thread."""
        if self._is_over:
            return
        if not self._is_heard:
            self._is_heard = True
            self._run.span.set_attribute(say.RUN, event.run_id)
        takes = self._TAKES.get(type(event))
        if takes is not None:
            takes(self, event)
        elif (marks := say.span_event(event, content=self.hears_texts)) is not None:
            self._owner(event).span.add_event(f"replan.{getattr(event, 'type', '')}", marks)

    def end(self, error: BaseException | None) -> None:
        """Close what is still open; nothing is exported of a call without events."""
        self._is_over = True
        if not self._is_heard:
            return
        rest = "" if self._outcome else _rest(error)
        text = describe(error) if error is not None and _is_failure(error) else ""
        about = {AGENT: self._team, OUTCOME: self._outcome or rest}
        self._telemetry.meters.run_rested(self._run.seconds + self._worked.get(RUN, 0.0), about)
        for node in list(self._run.below.values()):
            self._close(node, rest, text)
        self._close(self._run, self._outcome or rest, text)

    def _run_started(self, event: events.RunStarted) -> None:
        if self.hears_texts:
            asked = say.input_messages([events.MessageText(role="human", text=event.request)])
            self._run.span.set_attributes(asked)

    def _task_completed(self, event: events.TaskCompleted) -> None:
        self._outcome = event.outcome
        if self.hears_texts:
            answer = say.output_messages(events.MessageText(role="ai", text=event.text))
            self._run.span.set_attributes(answer)

    def _attempt_began(self, event: events.SpecialistInvoked) -> None:
        about, of_attempt = say.of_step(event), say.of_attempt(event)
        step = self._step_of(event)
        if step is None:
            step = self._steps[_step_key(event)] = self._open(
                self._round(event.round), f"step {about[say.STEP]}", about
            )
        attempt = self._open(step, f"invoke_agent {about[AGENT]}", of_attempt, event.attempt)
        if self.hears_texts:
            attempt.span.set_attributes(
                say.input_messages([events.MessageText(role="human", text=event.task)])
            )
        attempt.enter()

    def _attempt_ended(self, event: events.AttemptEnded | events.SpecialistRetried) -> None:
        step = self._step_of(event)
        attempt = step and step.below.get(event.attempt)
        if step is None or attempt is None:
            return
        self._close(attempt, event.outcome, event.error)
        attempt.leave()
        # After a failure another attempt may follow.
        if event.outcome != "failed":
            self._close(step, event.outcome)

    def _step_completed(self, event: events.SpecialistCompleted) -> None:
        step = self._step_of(event)
        if step is None:
            return
        outcome = event.step_status.value
        about = {AGENT: say.one_line(event.specialist), OUTCOME: outcome}
        # A step that is done again later begins again.
        before = self._worked.pop((event.step_id, event.specialist), 0.0)
        self._telemetry.meters.step_completed(step.seconds + before, about)
        attempt = step.below.get(event.attempt)
        if attempt is not None:
            if self.hears_texts:
                attempt.span.set_attributes(
                    say.output_messages(events.MessageText(role="ai", text=event.text))
                )
            self._close(attempt, event.outcome, event.error)
            attempt.leave()
        self._close(step, outcome, event.error)

    def _model_invoked(self, event: events.ModelInvoked) -> None:
        about = {**say.of_model(event), **say.of_caller(event)}
        extra = say.input_messages(event.prompt) if self.hears_texts else {}
        name = f"chat {about[say.MODEL]}"
        self._call(event, name, about, extra, SpanKind.CLIENT)

    def _model_completed(self, event: events.ModelCompleted) -> None:
        called = self._calls.pop(event.call_key, None)
        if called is None:
            return
        failed = {ERROR: say.error_type(event.error)} if event.error else {}
        self._telemetry.meters.model_completed(event, called.about, failed)
        said = say.output_messages(event.reply) if self.hears_texts else {}
        called.node.span.set_attributes(say.of_reply(event) | said)
        self._close(called.node, "", event.error)
        called.node.leave()

    def _memory_applied(self, event: events.MemoryApplied) -> None:
        self._owner(event).span.add_event(f"replan.{event.type}", say.of_memory(event))

    def _knowledge_retrieved(self, event: events.KnowledgeRetrieved) -> None:
        """Its one event comes at the end of the search."""
        about = say.of_search(event) | (say.found_documents(event) if self.hears_texts else {})
        node = self._open(self._owner(event), "retrieval", about, object(), ago=event.seconds)
        self._close(node, "", event.error)

    def _fact_changed(self, event: events.FactRemembered | events.FactForgotten) -> None:
        about = say.of_fact(event, with_text=self.hears_texts)
        self._owner(event).span.add_event(f"replan.{event.type}", about)

    def _summary_written(self, event: events.MemorySummary) -> None:
        """Its one event tells the call of a model and the end of it."""
        who: dict[str, Any] = {"call": event.node, "node": event.node, "model": event.model}
        who |= {"run_id": event.run_id, "round": event.round}
        if event.calls:
            took = ("input_tokens", "output_tokens", "cost", "seconds", "error", "reply")
            self._model_invoked(events.ModelInvoked(**who, prompt=event.prompt))
            self._model_completed(
                events.ModelCompleted(**who, **{n: getattr(event, n) for n in took})
            )
        self._run.span.add_event(f"replan.{event.type}", say.of_memory(event))

    def _tool_invoked(self, event: events.ToolEvent) -> None:
        about = {**say.of_tool(event), **say.of_caller(event)}
        extra = say.of_tool_call(event)
        if self.hears_texts:
            extra |= say.arguments_of(event)
        self._call(event, f"execute_tool {about[say.TOOL]}", about, extra)

    def _tool_completed(self, event: events.ToolCompleted) -> None:
        if event.call_key not in self._calls:
            # A person did not allow it.
            self._tool_invoked(event)
        called = self._calls.pop(event.call_key)
        error = event.result if event.status == "failed" else ""
        failed = {ERROR: say.error_type(error)} if error else {}
        self._telemetry.meters.tool_completed(event.seconds, called.about | failed)
        if self.hears_texts:
            called.node.span.set_attributes(say.result_of(event))
        self._close(called.node, event.status, error)
        called.node.leave()

    def _call(
        self,
        event: events.CallEvent,
        name: str,
        about: Attributes,
        extra: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        key = event.call_key
        # Names of calls are given by models, too.
        node = self._open(self._owner(event), name, about | extra, object(), kind)
        self._calls[key] = _Called(node, about)
        node.enter()

    def _open(
        self,
        parent: Node,
        name: str,
        about: Attributes,
        key: object = None,
        kind: SpanKind = SpanKind.INTERNAL,
        ago: float = 0.0,
    ) -> Node:
        return parent.open_below(self._telemetry.tracer, key or name, name, about, kind, ago)

    def _close(self, node: Node, outcome: str, error: str = "") -> None:
        about: Attributes = {OUTCOME: outcome} if outcome else {}
        is_failed = outcome == "failed" or bool(error)
        if is_failed:
            about[ERROR] = say.error_type(error)
        text = say.error_text(error) if self.hears_texts else ""
        node.close(about, text if is_failed else None)

    def _round(self, number: int) -> Node:
        """The span of a round; those before end where it begins. What is in none is the run's."""
        if number == 0:
            return self._run
        name = f"round {number}"
        with self._guard:
            round_span = self._run.below.get(name)
            if round_span is None:
                if self._round_now is not None:
                    self._close(self._round_now, "")
                round_span = self._open(self._run, name, {"replan.round": number})
                self._round_now = round_span
        return round_span

    def _owner(self, event: events.BaseEvent) -> Node:
        """The span that an event belongs to: an attempt, else its step, else the round."""
        if isinstance(event, events.StepEvent | events.CallEvent) and event.step_id is not None:
            step = self._step_of(event)
            if step is not None and step.is_open:
                return step.below.get(event.attempt, step)
        return self._round(event.round)

    def _step_of(self, event: events.StepEvent | events.CallEvent) -> Node | None:
        found = self._steps.get(_step_key(event))
        return found if found is not None and found.is_open else None

    _TAKES: ClassVar[Mapping[type[events.BaseEvent], Callable[[Any, Any], None]]] = {
        events.RunStarted: _run_started,
        events.SpecialistInvoked: _attempt_began,
        events.SpecialistRetried: _attempt_ended,
        events.AttemptEnded: _attempt_ended,
        events.SpecialistCompleted: _step_completed,
        events.ModelInvoked: _model_invoked,
        events.ModelCompleted: _model_completed,
        events.ToolInvoked: _tool_invoked,
        events.ToolCompleted: _tool_completed,
        events.TaskCompleted: _task_completed,
        events.MemoryApplied: _memory_applied,
        events.KnowledgeRetrieved: _knowledge_retrieved,
        events.MemorySummary: _summary_written,
        events.FactRemembered: _fact_changed,
        events.FactForgotten: _fact_changed,
    }


@dataclass(frozen=True)
class _Called:
    """A call of a model or a tool that is on its way."""

    node: Node
    about: Attributes  # what its metrics say about it


def _step_key(event: events.StepEvent | events.CallEvent) -> tuple[int | None, str]:
    return event.step_id, event.specialist


def _rest(error: BaseException | None) -> str:
    """The status of a run that is not over."""
    if error is None or isinstance(error, GraphInterrupt):
        return "waiting"
    return "interrupted"


def _is_failure(error: BaseException) -> bool:
    is_rest = isinstance(error, GraphDrained | GraphInterrupt)
    return isinstance(error, Exception) and not is_rest

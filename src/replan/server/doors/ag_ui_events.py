"""The course of a run as AG-UI's events: texts, reasoning, steps, calls of tools, and the plan."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ag_ui import core as ag_ui

from replan.base.values import json_text
from replan.log.apply import apply
from replan.log.events import types as events
from replan.log.report import RunReport
from replan.plan.model import StepStatus
from replan.runs.asked.pending import PendingQuestion
from replan.runs.run import Run
from replan.server import response_schemas
from replan.server.exchange import place_of
from replan.server.exchange_texts import shown_text
from replan.state.questions import Question

_REASONS = {"question": "input_required", "approval": "tool_call"}
"""Why a run stopped, in the words that front ends know; else that it needs a confirmation."""


def interrupt_of(ask: Question, problem: str) -> ag_ui.Interrupt:
    """The question as an interrupt."""
    pending = PendingQuestion.of(ask)
    return ag_ui.Interrupt(
        id=place_of(ask),
        reason=_REASONS.get(ask.kind, "confirmation"),
        message=shown_text(ask, problem),
        response_schema=ask.response_schema,
        metadata={"replan": pending.model_dump(mode="json", exclude={"response_schema"})},
    )


def state_of(view: RunReport) -> dict[str, Any]:
    """What a front end is shown of the plan as its state."""
    run = response_schemas.Run.of(view)
    kept = {"id", "description", "specialist", "status"}
    steps = [step.model_dump(mode="json", include=kept) for step in run.steps]
    return {"plan": run.plan, "steps": steps}


class Course:
    """Reports a run, and keeps what is open, since AG-UI requires that all is closed in order."""

    def __init__(self, run: Run, after: int, now: datetime) -> None:
        self._run = run
        self._after = after  # the number of the last event that is known, other in each stream
        self._message = ""  # the id of the open message
        self._steps = dict[str, str]()  # the names of the steps at work, by their ids
        self._calls = dict[Any, str]()  # the ids of the calls of tools at work
        self._messages = 0  # messages that were begun
        self._report = RunReport.begun(run.run_id, now)  # by the events so far
        self._places = dict[str, int]()  # where each step is in the state

    async def events_for(self, event: events.Event) -> Sequence[ag_ui.BaseEvent]:
        """Return what an event of the run is in AG-UI."""
        if isinstance(event, events.AnswerToken):
            return [*self.text(event.text)]
        before, self._report = self._report, apply(self._report, event)
        if isinstance(event, events.PlanEvent):
            return [self._snapshot(await self._run.report())]
        return [*self._events_of(event), *self._status_change(event, before)]

    def end(self, view: RunReport, text: str, said: str) -> Iterator[ag_ui.BaseEvent]:
        """Close what is open, and send the answer if it was not sent yet.

        What was said cannot be taken back; if it is another answer, the whole one follows.
        """
        if not text.startswith(said):
            yield from self._close_message()
            said = ""
        yield from self.text(text.removeprefix(said))
        yield from self._close_message()
        for name in list(self._steps.values()):
            yield ag_ui.StepFinishedEvent(step_name=name)
        if view.plan is not None:
            yield self._snapshot(view)

    def _events_of(self, event: events.Event) -> Iterator[ag_ui.BaseEvent]:
        match event:
            case events.AnswerReset():
                yield from self._close_message()
            case events.ThinkingCompleted(reasoning=text) | events.FeedbackGenerated(text=text):
                yield from _reasoning_events(event, text)
            case events.SpecialistInvoked():
                yield from self._step_began(event)
            case (
                events.SpecialistCompleted()
                | events.SpecialistRetried()
                | events.InputRequested()
                | events.EarlyStepDropped()
            ):
                yield from self._step_stopped(event)
            case events.ToolInvoked() | events.ToolCompleted():
                yield from self._tool_called(event)
            case _:
                return

    def _snapshot(self, view: RunReport) -> ag_ui.StateSnapshotEvent:
        if view.plan is not None:
            # What is reported may be ahead of the events, which tell what becomes of its steps.
            steps = [step.replace(status=StepStatus.PENDING) for step in view.plan.steps]
            plan = view.plan.replace(steps=tuple(steps))
            self._report = self._report.model_copy(update={"plan": plan})
        state = state_of(view)
        self._places = {str(step["id"]): place for place, step in enumerate(state["steps"])}
        return ag_ui.StateSnapshotEvent(snapshot=state)

    def text(self, text: str) -> Iterator[ag_ui.BaseEvent]:
        """A piece of the answer."""
        if not text:
            return
        if not self._message:
            self._messages += 1
            self._message = f"{self._run.run_id}-text-{self._after}-{self._messages}"
            yield ag_ui.TextMessageStartEvent(message_id=self._message, role="assistant")
        yield ag_ui.TextMessageContentEvent(message_id=self._message, delta=text)

    def _close_message(self) -> Iterator[ag_ui.BaseEvent]:
        if self._message:
            yield ag_ui.TextMessageEndEvent(message_id=self._message)
        self._message = ""

    def _step_began(self, event: events.StepEvent) -> Iterator[ag_ui.BaseEvent]:
        step = str(event.step_id)
        if step not in self._steps:
            self._steps[step] = f"{step} {event.specialist}"
            yield ag_ui.StepStartedEvent(step_name=self._steps[step])

    def _step_stopped(self, event: events.StepEvent) -> Iterator[ag_ui.BaseEvent]:
        step = str(event.step_id)
        if name := self._steps.pop(step, None):
            yield ag_ui.StepFinishedEvent(step_name=name)

    def _status_change(self, event: events.Event, before: RunReport) -> Iterator[ag_ui.BaseEvent]:
        """What an event changes in the status of its step."""
        if not isinstance(event, events.StepEvent) or isinstance(event, events.SpecialistToken):
            return
        old, new = (report.by_id.get(event.step_id) for report in (before, self._report))
        place = self._places.get(str(event.step_id))
        if place is not None and old and new and old.status_text != new.status_text:
            path = f"/steps/{place}/status"
            change: Any = {"op": "replace", "path": path, "value": new.status_text}
            yield ag_ui.StateDeltaEvent(delta=[change])

    def _tool_called(
        self, event: events.ToolInvoked | events.ToolCompleted
    ) -> Iterator[ag_ui.BaseEvent]:
        call = event.call_key
        if call not in self._calls:
            # A person may have refused a call before it was made.
            name = self._calls[call] = _name(event)
            yield ag_ui.ToolCallStartEvent(tool_call_id=name, tool_call_name=event.tool)
            arguments = json_text(event.arguments)
            yield ag_ui.ToolCallArgsEvent(tool_call_id=name, delta=arguments)
            yield ag_ui.ToolCallEndEvent(tool_call_id=name)
        if isinstance(event, events.ToolCompleted):
            name = self._calls.pop(call)
            text = event.result or event.status
            ids: Any = {"message_id": f"{name}-result", "tool_call_id": name}
            yield ag_ui.ToolCallResultEvent(**ids, content=text, role="tool")


def _reasoning_events(event: events.BaseEvent, text: str) -> Iterator[ag_ui.BaseEvent]:
    """What the host thought of a request, or of a round."""
    if not text.strip():
        return
    name: Any = {"message_id": _name(event)}
    yield ag_ui.ReasoningStartEvent(**name)
    yield ag_ui.ReasoningMessageStartEvent(**name)
    yield ag_ui.ReasoningMessageContentEvent(**name, delta=text)
    yield ag_ui.ReasoningMessageEndEvent(**name)
    yield ag_ui.ReasoningEndEvent(**name)


def _name(event: events.BaseEvent) -> str:
    """What an event is called among all messages and calls of a thread."""
    return f"{event.run_id}-{event.seq}"

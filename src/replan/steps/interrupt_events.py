"""Questions of graphs that use LangGraph's `interrupt`: each is reported once."""

from collections.abc import Mapping
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from replan.events.types import InputRequested
from replan.ports.journal import TOLD
from replan.state.person.waiting import waiting_for
from replan.state.questions import Question, fingerprint_of
from replan.steps.answer_events import report_answer
from replan.steps.step_record import StepRecord
from replan.values import restored


async def report_interrupts(record: StepRecord, signal: GraphBubbleUp) -> None:
    """Record that a graph asks, and report each of its questions once."""
    await record.ended("waiting")
    interrupts = signal.args[0] if isinstance(signal, GraphInterrupt) else ()
    asked = waiting_for(interrupts)
    for question in asked if isinstance(asked, tuple) else ():
        note = TOLD + fingerprint_of(question.key, question.text)
        if not await record.is_noted(note):
            step_id = record.context.plan_step.id
            own = question.replace(step_id=step_id, specialist=record.specialist)
            value = own.model_dump(mode="json")
            await record.services.journal.note(record.context.run_id, note, value)
            record.emitter.stream(InputRequested, **record.names, question=question)


async def report_interrupt_answers(record: StepRecord, answers: Mapping[str, Any]) -> None:
    """Report the answers to what a graph asked."""
    if not answers:
        return
    journal = record.services.journal
    for note in (await journal.notes(record.context.run_id, TOLD)).values():
        if not isinstance(note, dict):
            continue
        question: Question = restored(Question, note)
        if question.key in answers and _is_own(record, question):
            await report_answer(question, answers[question.key], record.emitter, journal)


def _is_own(record: StepRecord, question: Question) -> bool:
    own = (record.context.plan_step.id, record.specialist)
    return (question.step_id, question.specialist) == own

"""Questions of graphs that use LangGraph's `interrupt`: each is reported once."""

from collections.abc import Mapping
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from replan.base.values import restored
from replan.log.events.types import InputRequested
from replan.log.run_log import TOLD
from replan.specialists.steps.answer_events import report_answer
from replan.specialists.steps.step_record import StepRecord
from replan.state.person.waiting import waiting_for
from replan.state.questions import Question, fingerprint_of


async def report_interrupts(record: StepRecord, signal: GraphBubbleUp) -> None:
    """Record that a graph asks, and report each of its questions once."""
    await record.ended("waiting")
    interrupts = signal.args[0] if isinstance(signal, GraphInterrupt) else ()
    # The team that a step runs reports its plan by itself.
    for question in (question for question in waiting_for(interrupts) if question.kind != "plan"):
        note = TOLD + fingerprint_of(question.key, question.text)
        step_id = record.context.plan_step.id
        own_question = question.replace(step_id=step_id, specialist=record.specialist)
        value = own_question.model_dump(mode="json")
        announced = record.emitter.announce(InputRequested, **record.names, question=question)
        await record.services.log.note(record.context.run_id, note, value, announced)


async def report_interrupt_answers(record: StepRecord, answers: Mapping[str, Any]) -> None:
    """Report the answers to what a graph asked."""
    if not answers:
        return
    log = record.services.log
    for note in (await log.notes(record.context.run_id, TOLD)).values():
        if not isinstance(note, dict):
            continue
        question: Question = restored(Question, note)
        if question.key in answers and _is_own(record, question):
            await report_answer(question, answers[question.key], record.emitter, log)


def _is_own(record: StepRecord, question: Question) -> bool:
    own = (record.context.plan_step.id, record.specialist)
    return (question.step_id, question.specialist) == own

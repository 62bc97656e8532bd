"""The questions of a waiting run."""

from collections.abc import Mapping
from typing import Any, cast

from langgraph.types import StateSnapshot

from replan.base.langgraph_inside.tasks import place_of_send
from replan.base.values import restored
from replan.log.run_log import RunLog
from replan.specialists.steps.board import QUESTIONS
from replan.specialists.steps.step_record import ANSWERS
from replan.state.enhanced import EnhancedState
from replan.state.person.waiting import Seats, ask_of, asks_of
from replan.state.questions import Question
from replan.state.rules import open_questions

SEATS = "__seats__"


def seats_of(snapshot: StateSnapshot) -> Seats:
    """Return which step's graph each interrupt is of."""
    dispatched = cast("EnhancedState", snapshot.values).get("dispatched", [])
    sent = [assignment for assignment in dispatched if not assignment.refused]
    places = ((place_of_send(task), task) for task in snapshot.tasks)
    return {
        interrupt.id: sent[place]
        for place, task in places
        if place is not None and place < len(sent)
        for interrupt in task.interrupts
    }


def state_at_rest(snapshot: StateSnapshot) -> dict[str, Any]:
    """The state of a waiting run as LangGraph returns it, with the graphs that ask."""
    if not snapshot.interrupts:
        return dict(snapshot.values)
    state = {**snapshot.values, "__interrupt__": list(snapshot.interrupts)}
    if seats := seats_of(snapshot):
        state[SEATS] = seats
    return state


def asks_in(state: Mapping[str, Any]) -> tuple[Question, ...]:
    """Read the questions of a run at rest."""
    return asks_of(state.get("__interrupt__") or (), state.get(SEATS) or {})


async def open_asks(snapshot: StateSnapshot, log: RunLog) -> tuple[Question, ...]:
    """The open questions: those that the run stopped for, and earlier ones of its steps."""
    state = cast("EnhancedState", snapshot.values)
    asks = {ask.key: ask for ask in asks_of(snapshot.interrupts, seats_of(snapshot))}
    run_id = state.get("run_id", "")
    noted = await log.notes(run_id, QUESTIONS)
    answered = await log.notes(run_id, ANSWERS)
    # After a round that was cut off, the questions are only in the log.
    logged = {q.key: q for q in (restored(Question, note) for note in noted.values())}
    questions = {**logged, **state.get("questions", {})}
    for question in open_questions(cast("EnhancedState", {**state, "questions": questions})):
        if question.key not in asks and ANSWERS + question.key not in answered:
            asks[question.key] = ask_of(question)
    return tuple(asks.values())

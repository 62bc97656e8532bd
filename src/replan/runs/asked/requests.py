"""Requests of other processes to a run, and how its owner handles them."""

from collections.abc import Sequence
from typing import Any, cast

from pydantic import JsonValue

from replan.ports.journal import Journal
from replan.ports.run_book import Request
from replan.runs.asked.asks import Ask
from replan.steps.step_record import ANSWERS

BEAT = 0.5  # seconds from one look at the rows of others to the next


def answer_row(ask: Ask, answer: JsonValue) -> JsonValue:
    """An answer as it is kept: with what was asked, for the run may ask again meanwhile."""
    return {"answer": answer, "bound": ask.bound(answer), "is_keyed": ask.is_keyed}


def answers_in(requests: Sequence[Request], asks: Sequence[Ask]) -> dict[str, JsonValue]:
    """The newest answers to the open questions, as LangGraph's interrupts take them."""
    asked = {ask.key for ask in asks}
    rows = {key: row for request in requests for key, row in request.answers.items()}
    return {key: cast("Any", row)["bound"] for key, row in rows.items() if key in asked}


async def note_answers(request: Request, journal: Journal) -> None:
    """Have answers on record for the steps, also of a run that is killed before it reads them."""
    # LangGraph gets the others when it asks.
    for key, row in request.answers.items():
        given = cast("Any", row)
        if given["is_keyed"]:
            await journal.note(request.run_id, ANSWERS + key, given["answer"])

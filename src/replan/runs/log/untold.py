"""Answers that a run took, but whose events are missing in its log because of a kill."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from replan.events.types import AnswerGiven
from replan.ports.journal import Journal
from replan.ports.run_book import RunBook
from replan.steps.answers_told import ANSWER_TOLD
from replan.values import restored


async def untold_answers(run_id: str, journal: Journal, book: RunBook) -> list[AnswerGiven]:
    """Return the events of answers that are on record and missing in the log."""
    noted = await journal.notes(run_id, ANSWER_TOLD)
    events = [
        restored(AnswerGiven, {**note, "run_id": run_id})
        for note in noted.values()
        if isinstance(note, dict)
    ]
    if not events:
        return []
    logged = [cast("Mapping[str, Any]", each.event) for each in await book.events(run_id)]
    # A plan may be decided about more than once in a round.
    told = Counter(_mark(each) for each in logged if each.get("type") == "answer_given")
    untold: list[AnswerGiven] = []
    for event in events:
        mark = _mark(event.model_dump())
        told[mark] -= 1
        if told[mark] < 0:
            untold.append(event)
    return untold


def _mark(event: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(event.get(name) for name in ("key", "action", "round"))

"""A person's answers to an interrupt: each is judged once, and only the newest counts."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from replan.base.errors import InputError
from replan.log.run_log import RunLog
from replan.state.person.reviews import interrupt_about, schema_of
from replan.state.questions import Question

T = TypeVar("T")

REFUSED = "refused/"
"""The prefix of notes that say why an answer could not be used."""


class RepeatedAnswerError(Exception):
    """An answer that was used before: an outer graph delivers it again with a newer one."""


async def newest_answer(
    log: RunLog,
    run_id: str,
    place: str,
    ask: Callable[[str, object], Sequence[Question]],
    judge: Callable[[object], T],
) -> T:
    """Ask until the newest answer can be used, and return its outcome.

    Each resumption delivers all answers again. A refused one stays refused, even if the team or
    the state has changed since.

    Args:
        log: Where refusals are on record.
        run_id: The run.
        place: What is asked, and at which checkpoint the answers are counted.
        ask: Gives what is asked, by the problem of the last answer and that answer.
        judge: Gives the outcome of an answer, or raises an error that says why it cannot be used,
            or that it was used before.
    """
    refused = await log.notes(run_id, place := f"{REFUSED}{place}/")
    newest, problem, last = list[T](), "", object()
    for number in count(1):
        questions = ask(problem, last)
        try:
            # The schema is for clients that draw a form: LangGraph checks nothing.
            last = interrupt(interrupt_about(questions), response_schema=schema_of(questions))
        except GraphInterrupt:
            if not newest:
                raise
            return newest[0]
        key = f"{place}{number}"
        before, newest, problem = newest, [], str(refused.get(key, ""))
        if problem:
            continue
        try:
            newest = [judge(last)]
        except RepeatedAnswerError:
            newest = before
        except InputError as error:
            # It may quote half of a character, which no storage takes.
            problem = str(error).encode("utf-8", "replace").decode()
            await log.note(run_id, key, problem)
    raise AssertionError("unreachable")  # pragma: no cover - counting does not end

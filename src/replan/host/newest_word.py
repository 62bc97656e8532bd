"""The words of a person at an interrupt: each is judged once, and only the newest one counts."""

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from replan.errors import InputError, PlanDocumentError
from replan.ports.journal import Journal

T = TypeVar("T")

REFUSED = "refused/"
"""What the notes begin with that say why a word could not be taken."""


class OldWordError(Exception):
    """A word that was taken before: a graph around this one brings it again with a newer one."""


async def newest_word(
    journal: Journal,
    run_id: str,
    place: str,
    show: Callable[[str, object], object],
    judge: Callable[[object], T],
    *,
    schema: dict[str, Any],
) -> T:
    """Ask until the newest word can be taken, and give what comes of it.

    Each resumption brings all words again. One that was refused stays refused, whatever the team
    or the state has become since.

    Args:
        journal: Where refusals are on record.
        run_id: The run.
        place: What is asked, and at which checkpoint the words are counted.
        show: Gives what the interrupt shows: with the problem of the last word, and that word.
        judge: Gives what comes of a word, or raises an error that says why it cannot be taken, or
            that it was taken before.
        schema: The JSON schema of a word, for clients that draw a form; LangGraph checks nothing.
    """
    refused = await journal.notes(run_id, place := f"{REFUSED}{place}/")
    newest, problem, last = list[T](), "", object()
    for number in count(1):
        try:
            last = interrupt(show(problem, last), response_schema=schema)
        except GraphInterrupt:
            if not newest:
                raise
            return newest[0]
        word = f"{place}{number}"
        before, newest, problem = newest, [], str(refused.get(word, ""))
        if problem:
            continue
        try:
            newest = [judge(last)]
        except OldWordError:
            newest = before
        except (InputError, PlanDocumentError) as error:
            # It may quote half of a character, which no storage takes.
            problem = str(error).encode("utf-8", "replace").decode()
            await journal.note(run_id, word, problem)
    raise AssertionError("unreachable")  # pragma: no cover - counting does not end

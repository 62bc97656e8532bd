"""Requests of other processes to a run, and how its owner handles them."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from replan.base.errors import InputError
from replan.log.rows import Request
from replan.log.run_log import RunLog
from replan.specialists.steps.step_record import ANSWERS
from replan.state.person.answers import shown_in
from replan.state.questions import Question

BEAT = 0.5  # seconds from one look at the rows of others to the next


def answer_rows(asks: Sequence[Question], answers: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Answers as they are kept: with what was asked, for the run may ask again meanwhile."""
    return {
        ask.key: {
            "answer": answers[ask.key],
            "fingerprint": ask.fingerprint,
            "is_keyed": ask.is_keyed,
        }
        for ask in asks
        if ask.key in answers
    }


def answers_in(requests: Sequence[Request], asks: Sequence[Question]) -> dict[str, JsonValue]:
    """The newest answers to exactly what is asked now."""
    shown = shown_in(asks)
    rows: dict[str, Any] = {
        key: row for request in requests for key, row in request.answers.items()
    }
    return {
        key: row["answer"]
        for key, row in rows.items()
        if key in shown and row["fingerprint"] == shown[key]
    }


def check_first_answer(request: Request, waiting: Sequence[Request]) -> None:
    """Refuse an answer if another one to exactly the same waits to be taken by the run.

    Raises:
        InputError: The other one says something else.
    """
    for earlier in waiting:
        for key in earlier.answers.keys() & request.answers.keys():
            first, row = cast("Any", earlier.answers[key]), cast("Any", request.answers[key])
            is_same = first["fingerprint"] == row["fingerprint"]
            if is_same and first["answer"] != row["answer"]:
                raise InputError(
                    f"Another answer to {key}, by {earlier.by or 'a person'}, came before this one "
                    "and counts. Look at what the run asks now."
                )


def check_same_words(request: Request, earlier: Request) -> None:
    """Refuse a request with the name of an earlier one that says something else."""
    if _words_of(request) != _words_of(earlier):
        raise _other_words(earlier)


def check_same_answers(said: str, earlier: Request) -> None:
    """Refuse answers that cannot be read any more and are not those that came under the name."""
    if earlier.kind != "answer" or earlier.said not in ("", said):
        raise _other_words(earlier)


def _other_words(earlier: Request) -> InputError:
    return InputError(f"Another {earlier.kind} has this name. Give this one a name of its own.")


def digest_of_answers(answers: object) -> str:
    """What tells answers apart as they came, whatever is asked."""
    plain = to_jsonable_python(answers, fallback=repr)
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _words_of(request: Request) -> object:
    answers = {key: cast("Any", row)["answer"] for key, row in request.answers.items()}
    return request.kind, request.text, request.version, answers


async def note_answers(request: Request, log: RunLog) -> None:
    """Record the answers to questions of steps, in case the run is killed before it reads them."""
    # LangGraph gets the others when it asks.
    for key, row in request.answers.items():
        answer = cast("Any", row)
        if answer["is_keyed"]:
            await log.note(request.run_id, ANSWERS + key, answer["answer"])

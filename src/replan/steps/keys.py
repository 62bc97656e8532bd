"""By what a piece of work is known: to the journal, and to the services that it calls."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from replan.plan.model import PlanStep
from replan.state.generations import FIRST, Generation


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a step at a specialist, with the inputs that it has now.

    How a step is run (timeout, retries, priority, writes) changes nothing that was done, so it
    stands in neither the result's key nor the services'; but what failed under it may succeed
    otherwise, so it stands in the attempt's.

    Attributes:
        result: What a success on record answers for: the work in this generation.
        attempt: What a failure on record answers for: the same, run in this way.
        idempotency: What services are handed: the work, whatever became of earlier attempts.
        inputs: The digests of the inputs, by the steps that gave them.
    """

    result: str
    attempt: str
    idempotency: str
    inputs: Mapping[int, str]


def keys_of(
    run_id: str,
    step: PlanStep,
    specialist: str,
    inputs: Mapping[int, str],
    generation: Generation = FIRST,
) -> Keys:
    """Give the keys of a step at a specialist.

    Args:
        run_id: The run.
        step: The step.
        specialist: Who does it.
        inputs: What the step is given by those that it waits for, by their ids.
        generation: How often it was settled before.
    """
    given = [(step_id, digest_of_text(text)) for step_id, text in sorted(inputs.items())]
    asked = (run_id, step.id, specialist, step.description, step.brief, step.parameters)
    work = _digest(*asked, given)
    how = (step.timeout, step.max_retries, step.priority, step.writes)
    return Keys(
        result=_digest("result", work, generation.settled),
        attempt=_digest("attempt", work, generation.settled, how),
        idempotency=_digest("idempotency", work, generation.done),
        inputs=dict(given),
    )


def former_key(run_id: str, step: PlanStep, specialist: str) -> str:
    """The one key that a step had before it had inputs and generations.

    Rows of runs that began then have it, and their services know it.
    """
    asked = (run_id, step.id, specialist, step.description, step.brief, step.parameters)
    return _digest(*asked, step.dependencies)


_encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True).encode


def _digest(*parts: object) -> str:
    return hashlib.sha256(_encode(parts).encode()).hexdigest()[:32]


def digest_of_text(text: str) -> str:
    """Give the digest by which a text is known in keys."""
    # Half a character is stored as a question mark, and must not change the key by that.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()

"""What the log has of the steps of a round: a record is valid for the same work only."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self

from replan.base.values import digest_of
from replan.log.rows import UNKNOWN_ENDS, LedgerEntry
from replan.log.run_log import RESULT
from replan.plan.dependencies import readiness
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.option_table import OPTIONS
from replan.plan.order import run_order
from replan.state.enhanced import EnhancedState
from replan.state.generations import FIRST, Generation
from replan.state.results import (
    Assignment,
    ExecutionStatus,
    SpecialistResult,
    inputs_of,
    newest_results,
    results_by_step,
    settled,
)


# How a step is run (the options that change its attempts) does not change what was done, so it is
# part of neither the result's key nor the services' key. What failed that way may succeed in
# another, so it is part of the attempt's key.
@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a step of a specialist, with its current inputs."""

    result: str  # a recorded success is valid for this: the work in this generation
    attempt: str  # a recorded failure is valid for this: the same, run in this way
    idempotency: str  # what services receive: the work, whatever happened to earlier attempts
    inputs: Mapping[int, str]  # the digests of the inputs, by the steps that they come from


def keys_of(
    run_id: str,
    step: PlanStep,
    specialist: str,
    inputs: Mapping[int, str],
    generation: Generation = FIRST,
) -> Keys:
    digests = [(step_id, digest_of_text(text)) for step_id, text in sorted(inputs.items())]
    identity = (run_id, step.id, specialist, step.description, step.brief, step.parameters)
    named = [(name, value) for name in _OF_TASK if (value := getattr(step, name))]
    work = digest_of(*identity, digests, *named)
    how = _of_attempt(step)
    return Keys(
        result=digest_of("result", work, generation.settled),
        attempt=digest_of("attempt", work, generation.settled, how),
        idempotency=digest_of("idempotency", work, generation.done),
        inputs=dict(digests),
    )


_OF_TASK = [option.field for option in OPTIONS if option.changes == "task"]
_of_attempt = attrgetter(*(option.field for option in OPTIONS if option.changes == "attempt"))


def digest_of_text(text: str) -> str:
    # Half a character is stored as a question mark, which must not change the key.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


@dataclass(frozen=True)
class RecordedResults:
    """The recorded results of a run, read for the current plan."""

    rows: Mapping[str, SpecialistResult]  # all of them, by the key that they are valid for
    # Those of open steps whose inputs are known from the state or from the record, by
    # `"<step id>/<specialist>"`.
    known: Mapping[str, SpecialistResult] = field(default_factory=dict[str, SpecialistResult])
    # The open steps whose condition does not hold, as far as is known.
    left_out: frozenset[int] = frozenset()

    @classmethod
    def of(cls, state: EnhancedState, rows: Mapping[str, SpecialistResult]) -> Self:
        """Find the records of the steps that the round sends, in the order of dependencies."""
        rows = {
            key: result.model_copy(update={"log_key": f"{RESULT}{key}"})
            for key, result in rows.items()
        }
        # A step's key holds its inputs, so it is known only when the steps before it are.
        return cls(rows, *_known_results(state, cls(rows))) if rows else cls(rows)

    def answer(
        self, state: EnhancedState, step: PlanStep, specialist: str, inputs: Mapping[int, str]
    ) -> SpecialistResult | None:
        """The recorded result of a step by a specialist with these inputs; None without."""
        if not self.rows:
            return None
        keys = keys_in(state, step, specialist, inputs)
        return self.rows.get(keys.result) or self.rows.get(keys.attempt)

    def before(self, state: EnhancedState, key: str) -> SpecialistResult | None:
        """The result of a step by a specialist when it was done before; None if it never was."""
        stated = newest_results(state).get(key)
        rows = [*self.rows.values(), *([] if stated is None else [stated])]
        done_results = [result for result in rows if result.key == key and not result.is_failed]
        return max(done_results, key=lambda result: result.round, default=None)


def keys_in(
    state: EnhancedState, step: PlanStep, specialist: str, inputs: Mapping[int, str]
) -> Keys:
    generation = state.get("generations", {}).get(step.id, FIRST)
    return keys_of(state.get("run_id", ""), step, specialist, inputs, generation)


def key_of_result(keys: Keys, result: SpecialistResult) -> str:
    return keys.result if _is_done(result) else keys.attempt


def _is_done(result: SpecialistResult) -> bool:
    return result.status is ExecutionStatus.SUCCESS


def _known_results(
    state: EnhancedState, recorded: RecordedResults
) -> tuple[dict[str, SpecialistResult], frozenset[int]]:
    plan = state.get("current_plan") or TaskPlan()
    sent: dict[int, list[Assignment]] = {}
    for assignment in state.get("dispatched", []):
        sent.setdefault(assignment.step_id, []).append(assignment)
    steps, results = dict(plan.by_id), results_by_step(state)
    recorded_results: dict[str, SpecialistResult] = {}
    left_out: set[int] = set()
    for step in run_order(plan.open_steps()):
        ready = readiness(step, steps)
        if ready == "skip":
            steps[step.id] = step.replace(status=StepStatus.SKIPPED)
            left_out.add(step.id)
        elif ready == "ready" and step.id in sent:
            inputs = inputs_of(step, steps, results)
            candidates = [
                _recorded_result(assignment, step, inputs, state, recorded)
                for assignment in sent[step.id]
            ]
            own = [result for result in candidates if result is not None]
            recorded_results |= {result.key: result for result in own}
            if len(own) == len(candidates):
                steps[step.id], results[step.id] = settled(step, own), own
    return recorded_results, frozenset(left_out)


def _recorded_result(
    sent: Assignment,
    step: PlanStep,
    inputs: Mapping[int, str],
    state: EnhancedState,
    recorded: RecordedResults,
) -> SpecialistResult | None:
    if sent.refused:
        # It failed when the round began, so the state has it.
        return newest_results(state).get(sent.key)
    return recorded.answer(state, step, sent.specialist, inputs)


def attempts_of(
    ledger: Sequence[LedgerEntry], step_id: int, specialist: str
) -> tuple[LedgerEntry, ...]:
    """The attempts of a step by a specialist, the newest last."""
    entries = (
        entry for entry in ledger if (entry.step_id, entry.specialist) == (step_id, specialist)
    )
    return tuple(sorted(entries, key=lambda entry: entry.number))


def newest_number(tried: Sequence[LedgerEntry]) -> int:
    return max((entry.number for entry in tried), default=0)


def failures(tried: Sequence[LedgerEntry], key: str) -> int:
    return sum(entry.outcome == "failed" and entry.key == key for entry in tried)


def done_before(tried: Sequence[LedgerEntry]) -> LedgerEntry | None:
    """The newest attempt that took effect, for work that is to be done again; None without."""
    return next((entry for entry in reversed(tried) if entry.outcome == "done"), None)


def left_in_doubt(tried: Sequence[LedgerEntry]) -> LedgerEntry | None:
    """The newest attempt, if its end is unknown: its process ended, or it was cancelled."""
    newest = tried[-1] if tried else None
    return newest if newest is not None and newest.outcome in UNKNOWN_ENDS else None

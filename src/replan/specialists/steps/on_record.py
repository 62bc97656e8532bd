"""What the log has of steps: valid for the same work only, carried into a new run, out of date."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self

from replan.base.values import digest_of, restored
from replan.log.rows import UNKNOWN_ENDS, LedgerEntry
from replan.log.run_log import RESULT, RunLog
from replan.log.whole_results import whole_results
from replan.plan.dependencies import readiness
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.option_table import OPTIONS
from replan.plan.order import run_order
from replan.plan.rerun import Rerun
from replan.plan.statuses import excerpt
from replan.state.enhanced import EnhancedState
from replan.state.results import (
    FIRST,
    Assignment,
    ExecutionStatus,
    Generation,
    MadeOf,
    SpecialistResult,
    inputs_of,
    joined_texts,
    known_results,
    newest_results,
    own_results,
    result_as_json,
    results_by_step,
    settled,
    status_of,
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


def stale_steps(state: EnhancedState) -> tuple[Rerun, ...]:
    """Return the settled steps of a running run that are to be done again, and why."""
    # This happens if somebody edited a result in the state. It is unknown what results of persons
    # were made of: they stay.
    plan = state.get("current_plan")
    if plan is None or state.get("is_completed"):
        return ()
    return tuple(_find_stale(plan, results_by_step(state)))


def _find_stale(
    plan: TaskPlan, results: Mapping[int, Sequence[SpecialistResult]]
) -> Iterator[Rerun]:
    steps, again = plan.by_id, set[int]()
    may_be_stale = results and any(step.awaits for step in plan.steps)
    for step in run_order(plan) if may_be_stale else ():
        if step.status.is_open or not step.awaits:
            continue
        inputs = _known_inputs(step, results.get(step.id, ()))
        after = tuple(other for other in step.awaits if other in again)
        whole = tuple(step_id for step_id in step.awaits if _is_whole(steps[step_id], results))
        changed = (
            tuple(_changed_inputs(step, inputs, inputs_of(step, steps, results), whole))
            if inputs
            else ()
        )
        if changed or (
            after and (inputs or (step.status is StepStatus.SKIPPED and step.condition))
        ):
            is_after = after or any(steps[other].status.is_open for other in changed)
            reason = "dependency" if is_after else "input_changed"
            yield Rerun(step=step.id, reason=reason, causes=after or changed)
            again.add(step.id)


def _known_inputs(step: PlanStep, results: Sequence[SpecialistResult]) -> list[MadeOf]:
    """The inputs that a step was made of; None if unknown, or if a person settled it."""
    step_results = own_results(step, results)
    if status_of(step_results) is not step.status:
        return []
    return [
        result.made_of
        for result in step_results
        if result.made_of is not None
        # An excerpt that somebody edits is none from then on.
        and (result.excerpt or result.made_of.text == digest_of_text(result.text))
    ]


def _is_whole(step: PlanStep, results: Mapping[int, Sequence[SpecialistResult]]) -> bool:
    """Whether the results of a step are here; a branch has the beginning of a long one only."""
    return not any(result.excerpt for result in own_results(step, results.get(step.id, ())))


def _changed_inputs(
    step: PlanStep,
    made_of_before: Sequence[MadeOf],
    inputs: Mapping[int, str],
    whole: Sequence[int],
) -> Iterator[int]:
    """The steps whose whole results differ from those that a completed step was made of."""
    if step.status is not StepStatus.COMPLETED:
        return
    now = {other: digest_of_text(text) for other, text in inputs.items()}
    for other in whole:
        if any(made_of.inputs.get(other) != now.get(other) for made_of in made_of_before):
            yield other


KEPT = "kept/"  # the prefix of notes that hold results of an earlier run; their key follows


TENANT = "tenant"
"""The key of the note that says whose run it is."""


async def carried_results(
    plan: TaskPlan, origin: str, tenant: str, state: EnhancedState, log: RunLog
) -> dict[str, SpecialistResult]:
    """Find the whole results of which a document has excerpts.

    Args:
        plan: The plan of the document.
        origin: The run that the document names: anybody may write any name.
        tenant: Whose run asks; for one of a tenant, another's run looks as if it did not exist.
        state: The state of the thread.
        log: The log of all runs.
    """
    # The document counts: a result that a person has changed in it is theirs.
    steps = [s for s in plan.steps if s.status is StepStatus.COMPLETED and s.is_cut]
    if not origin or not steps:
        return {}
    if tenant and (await log.notes(origin, TENANT)).get(TENANT) != tenant:
        return {}
    noted = await log.notes(origin, KEPT)
    results: list[SpecialistResult] = [
        restored(SpecialistResult, value) for value in noted.values()
    ]
    results += (await log.results(origin)).values()
    if state.get("run_id") == origin:
        state = await whole_results(state, log)
        results += known_results(state).values()
    carried = [result for step in steps for result in _results_of(step, results)]
    return {
        result.key: result.replace(round=0, made_of=None, log_key=KEPT + result.key)
        for result in carried
    }


async def note_kept(run_id: str, kept: Iterable[SpecialistResult], log: RunLog) -> None:
    """Record the results that a run took over, for runs of the documents that it writes."""
    for result in kept:
        await log.note(run_id, KEPT + result.key, result_as_json(result.replace(log_key="")))


def _results_of(step: PlanStep, candidates: Iterable[SpecialistResult]) -> list[SpecialistResult]:
    """The newest results of a step, if their text is the one of which the step has an excerpt."""
    newest: dict[str, SpecialistResult] = {}
    for result in candidates:
        before = newest.get(result.key)
        if result.step_id == step.id and (before is None or before.round <= result.round):
            newest[result.key] = result
    results = own_results(step, newest.values())
    is_same = excerpt(joined_texts(results)).split() == step.result.split()
    return results if is_same else []

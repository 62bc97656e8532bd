"""The results of steps in the state and in the log.

Where a log outlives the process, the state holds the beginning of a long result, and the log has it
whole. A node sees whole results, whichever way they are held: its door makes them whole on the way
in, and short on the way out.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.types import Overwrite

from replan.log.run_log import RunLog
from replan.plan.statuses import EXCERPT, excerpt
from replan.state.enhanced import EnhancedState
from replan.state.results import (
    CollectedResults,
    ExecutionRecord,
    FeedbackResult,
    SpecialistResult,
    collect,
)

RESULTS = ("current_specialist_results", "carried_results")
"""The keys of the state with the results of steps."""

Change = Callable[[SpecialistResult], SpecialistResult]


def short_results(update: Mapping[str, Any], log: RunLog) -> dict[str, Any]:
    """What a node writes, with the results as the state holds them."""
    return _changed(update, _shortened, _referred) if log.outlives_process else {**update}


async def whole_results(state: EnhancedState, log: RunLog) -> EnhancedState:
    """The state with whole results, for nodes; one that the log lost stays an excerpt."""
    named = [result for key in RESULTS for result in _results_of(state, key).values()]
    if not any(result.excerpt for result in named):
        return state
    whole = await _restorer(state, named, log)
    results = {key: value for key, value in state.items() if key in RESULTS}
    return cast("EnhancedState", {**state, **_changed(results, whole, whole)})


async def whole_values(state: EnhancedState, log: RunLog) -> EnhancedState:
    """The state with whole results and digests that have texts, for who reads it."""
    named = [*_every_result(state)]
    if not any(result.excerpt and result.log_key for result in named):
        return state
    whole = await _restorer(state, named, log)

    return cast("EnhancedState", _changed(state, lambda result: _without_key(whole(result)), whole))


async def _restorer(
    state: EnhancedState, results_in_state: Iterable[SpecialistResult], log: RunLog
) -> Change:
    wanted = {result.log_key for result in results_in_state if result.excerpt and result.log_key}
    recorded_by_key = await log.results_at(state.get("run_id", ""), wanted)

    def whole(result: SpecialistResult) -> SpecialistResult:
        recorded = recorded_by_key.get(result.log_key) if result.excerpt else None
        if recorded is None:
            return result
        # What a later round says of it is the state's word.
        later_fields = {"round": result.round, "usage": result.usage, "made_of": result.made_of}
        return recorded.model_copy(update=later_fields)

    return whole


def _shortened(result: SpecialistResult) -> SpecialistResult:
    """What the state holds of a result: its beginning, if it is long and on record."""
    message, output = result.result, result.output
    is_long = output is not None and len(json.dumps(output)) > EXCERPT
    if not result.log_key or not (len(result.text) > EXCERPT or is_long):
        return result if result.excerpt else _without_key(result)
    return result.model_copy(
        update={
            "result": message and AIMessage(excerpt(message.text), id=message.id),
            "output": None if is_long else output,
            "excerpt": True,
            "length": len(result.text),
        }
    )


def _referred(digest: SpecialistResult) -> SpecialistResult:
    """What a digest holds of a result of which the state has the beginning: no text."""
    if not digest.excerpt:
        return _without_key(digest)
    return digest.model_copy(update={"result": None}) if digest.log_key else digest


def _without_key(result: SpecialistResult) -> SpecialistResult:
    return result.model_copy(update={"log_key": ""}) if result.log_key else result


def _changed(state: Mapping[str, Any], change: Change, digest: Change) -> dict[str, Any]:
    """The state with its results changed, and those in its digests."""

    def results(by_key: Mapping[str, SpecialistResult]) -> dict[str, SpecialistResult]:
        return {key: change(result) for key, result in by_key.items()}

    def collected(value: CollectedResults | None) -> CollectedResults | None:
        return value and collect({key: digest(result) for key, result in value.results.items()})

    def judged(value: FeedbackResult | None) -> FeedbackResult | None:
        about = value and value.collected_results
        return (value and about and value.replace(collected_results=collected(about))) or value

    def records(entries: list[ExecutionRecord]) -> list[ExecutionRecord]:
        return [record.replace(results=collected(record.results)) for record in entries]

    changes: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(RESULTS, results),
        "current_collected_results": collected,
        "current_feedback_result": judged,
        "execution_history": records,
    }
    changed = dict(state)
    for key in changes.keys() & state.keys():
        value, replaced = state[key], changes[key]
        is_whole = isinstance(value, Overwrite)
        changed[key] = Overwrite(replaced(value.value)) if is_whole else replaced(value)
    return changed


def _every_result(state: EnhancedState) -> Iterable[SpecialistResult]:
    for key in RESULTS:
        yield from _results_of(state, key).values()
    digests: list[CollectedResults | None] = [state.get("current_collected_results")]
    judged = state.get("current_feedback_result")
    digests.append(None if judged is None else judged.collected_results)
    records: list[ExecutionRecord] = state.get("execution_history", [])
    for digest in (*digests, *(record.results for record in records)):
        yield from () if digest is None else digest.results.values()


def _results_of(state: EnhancedState, key: str) -> Mapping[str, SpecialistResult]:
    return cast("Mapping[str, Any]", state).get(key, {})

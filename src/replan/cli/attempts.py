"""The attempts of a kept run's steps: which calls of models and tools they made, and what came."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from replan.assembly import viewer
from replan.cli.kept.place import Place, found, now, opened
from replan.cli.views.cells import counted, harmless, one_line
from replan.errors import InputError
from replan.ports.run_book import RunBook
from replan.runs.attempts import AttemptView, attempts_of
from replan.runs.event_log import RunEvent, run_event
from replan.runs.looking import RunView, seen
from replan.state.results import SpecialistResult

_REFS = ("arguments_ref", "result_ref")


def show_attempts(
    prefix: str,
    place: Place,
    output: TextIO,
    *,
    step: int | None,
    earlier: bool,
    as_json: bool,
) -> int:
    """Write what the attempts of a step did, or those of all steps, and what came of the step."""
    # Without `earlier`, only the newest attempt at each specialist.
    kept = asyncio.run(_found(prefix, place, step, earlier=earlier))
    if as_json:
        record = {
            "attempts": [_record(each, kept.texts) for each in kept.attempts],
            "results": [each.model_dump(mode="json") for each in kept.results],
        }
        output.write(f"{json.dumps(record, default=str)}\n")
        return 0
    lines = [line for each in kept.attempts for line in _lines(each, kept.texts)]
    lines += [line for each in kept.results for line in ["", *_result_lines(each)]]
    output.write(harmless("".join(f"{line}\n" for line in lines or ["Nobody tried it yet."])))
    return 0


@dataclass(frozen=True)
class _Found:
    attempts: Sequence[AttemptView]
    results: Sequence[SpecialistResult]
    texts: Mapping[str, str]


async def _found(prefix: str, place: Place, step: int | None, *, earlier: bool) -> _Found:
    async with opened(place) as storage:
        record = await found(storage.runs, prefix)
        run_id, results = record.run_id, list[SpecialistResult]()
        if step is not None:
            run = await seen(viewer(storage), storage, record, now())
            recorded = await storage.journal.results(run_id)
            results = _results_of(run, recorded.values(), step)
        events = [run_event(run_id, each) for each in await storage.runs.events(run_id)]
        attempts = attempts_of(await storage.journal.ledger(run_id), events, step)
        if not earlier:
            attempts = list({each.entry.specialist: each for each in attempts}.values())
        return _Found(attempts, results, await _whole_texts(attempts, run_id, storage.runs))


async def _whole_texts(
    attempts: Sequence[AttemptView], run_id: str, book: RunBook
) -> dict[str, str]:
    """The long texts of the tool calls of attempts, by their references; of those still kept."""
    said = [call.details for each in attempts for call in each.calls]
    refs = {str(details[name]) for details in said for name in _REFS if details.get(name)}
    found = {ref: await book.text(run_id, ref) for ref in refs}
    return {ref: text for ref, text in found.items() if text is not None}


def _results_of(
    run: RunView, recorded: Iterable[SpecialistResult], step: int
) -> list[SpecialistResult]:
    """The newest result of a step at each specialist."""
    plan = run.plan
    if plan is None or step not in plan.by_id:
        ids = [each.id for each in plan.steps] if plan else []
        there = f"It has {ids[0]} to {ids[-1]}." if ids else "It has no plan."
        raise InputError(f"There is no step {step} in this run. {there}")
    stated = run.state.get("current_specialist_results", {})
    newest = {each.key: each for each in recorded if each.step_id == step}
    newest |= {key: each for key, each in stated.items() if each.step_id == step}
    return list(newest.values())


def _record(view: AttemptView, texts: Mapping[str, str]) -> dict[str, Any]:
    """An attempt as JSON, with whole texts."""
    entry = view.entry.model_dump(mode="json", exclude={"run_id"})
    calls = [
        {"type": each.type, "at": each.at and each.at.isoformat(), **_whole(each.details, texts)}
        for each in view.calls
    ]
    return {**entry, "seconds": view.seconds, "cost": view.cost, "calls": calls}


def _lines(view: AttemptView, texts: Mapping[str, str]) -> list[str]:
    """An attempt in lines: how it ended, and each call below it."""
    entry = view.entry
    took = "" if view.seconds is None else f", {view.seconds:.1f} s"
    error = f": {one_line(entry.error)}" if entry.error else ""
    began = entry.started_at.astimezone().strftime("%H:%M:%S")
    who = f"step {entry.step_id} {entry.specialist}, try {entry.number}"
    head = f"{began} {who}: {entry.outcome}{took}{error}"
    return [head, *(f"  {line}" for call in view.calls for line in _call_lines(call, texts))]


def _result_lines(result: SpecialistResult) -> list[str]:
    """A result, whole."""
    used = result.usage
    tokens = f"{counted(used.calls, 'model call')}, {counted(used.total_tokens, 'token')}"
    head = f"{result.specialist_name}: {result.status.value}, {tokens}"
    error = [f"  {one_line(result.error)}"] if result.error else []
    return [head, *error, *(f"  {line}" for line in harmless(result.text).splitlines())]


def _call_lines(call: RunEvent, texts: Mapping[str, str]) -> list[str]:
    said = _whole(call.details, texts)
    match call.type:
        case "tool_completed":
            approval = f", {said['approval']} by a person" if said.get("approval") else ""
            head = f"{_called(said)}: {said['status']}{approval}, {said['seconds']:.2f} s"
            return [head, *(f"  {line}" for line in harmless(str(said["result"])).splitlines())]
        case "tool_invoked":
            return [f"{_called(said)}: not over"]
        case "model_answered":
            return [f"model {one_line(str(said['model']))}: {_answer(said)}"]
        case _:
            return [f"model {one_line(str(said['model']))}: not over"]


def _called(said: Mapping[str, Any]) -> str:
    arguments: Mapping[str, Any] = said["arguments"]
    pairs = (f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in arguments.items())
    return one_line(f"{said['tool']}({', '.join(pairs)})")


def _answer(said: Mapping[str, Any]) -> str:
    if said["error"]:
        return f"failed, {said['seconds']:.2f} s: {one_line(str(said['error']))}"
    counts = [said["input_tokens"], said["output_tokens"]]
    tokens = "tokens unknown" if None in counts else f"{counts[0]} + {counts[1]} tokens"
    money = "" if said["cost"] is None else f", {said['cost']:g} of money"
    return f"{tokens}{money}, {said['seconds']:.2f} s"


def _whole(details: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """The details of a call with its whole arguments and result, where they are still kept."""
    whole = dict(details)
    if (arguments := texts.get(str(details.get("arguments_ref")))) is not None:
        whole["arguments"] = json.loads(arguments)
    if (result := texts.get(str(details.get("result_ref")))) is not None:
        whole["result"] = result
    return whole

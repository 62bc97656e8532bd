"""The attempts of steps: which calls of models and tools they made, and what came of each."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from replan.cli.views.cells import counted, harmless, one_line, seconds
from replan.cli.views.history import moment
from replan.cli.views.overview import attempt_line
from replan.runs.attempts import AttemptView, attempts_of
from replan.runs.event_log import RunEvent
from replan.runs.story import calls_of
from replan.runs.whole_run import WholeRun
from replan.state.results import SpecialistResult


def attempts_record(
    run: WholeRun, attempts: Sequence[AttemptView], results: Iterable[SpecialistResult]
) -> dict[str, Any]:
    """Attempts and results as JSON, with whole texts."""
    return {
        "attempts": [_record(each, run) for each in attempts],
        "results": [each.model_dump(mode="json") for each in results],
    }


def _record(view: AttemptView, run: WholeRun) -> dict[str, Any]:
    entry = view.entry.model_dump(mode="json", exclude={"run_id"})
    calls = [
        {"type": each.type, "at": each.at and each.at.isoformat(), **whole(each, run)}
        for each in view.calls
    ]
    return {
        **entry,
        "outcome": view.outcome,
        "seconds": view.seconds,
        "cost": view.cost,
        "calls": calls,
    }


def attempts_lines(
    run: WholeRun, attempts: Sequence[AttemptView], results: Sequence[SpecialistResult]
) -> list[str]:
    """Attempts in lines, each with its calls, and the whole results below them."""
    lines = [line for each in attempts for line in attempt_lines(each, run)]
    lines += [line for each in results for line in ["", *result_lines(each, run)]]
    return lines or ["Nobody tried it yet."]


def attempt_lines(view: AttemptView, run: WholeRun) -> Iterator[str]:
    """How an attempt ended, and each call below it."""
    entry = view.entry
    so_far = " so far" if view.running_at else ""
    took = "" if view.seconds is None else f" ({seconds(view.seconds)}{so_far})"
    ended = attempt_line(entry.number, view.outcome, entry.error)
    who = f"step {entry.step_id} {one_line(entry.specialist)}"
    yield f"{moment(entry.started_at)} {who}, {ended}{took}"
    for call in view.calls:
        yield from (f"  {line}" for line in call_lines(call, run))


def result_lines(result: SpecialistResult, run: WholeRun) -> list[str]:
    """A result, whole, and what all attempts at it took."""
    used, name = result.usage, result.specialist_name
    tried = attempts_of(run, result.step_id)
    own = [each for each in tried if each.entry.specialist == name]
    # The result itself leaves out what attempts took that asked a person, or came before it.
    told = calls_of(call for each in own for call in each.calls)
    number, sum_of = max((told.number, told.tokens), (used.calls, used.total_tokens))
    tokens = f"{counted(number, 'model call')}, {counted(sum_of, 'token')}"
    tokens += f" in {len(own)} attempts" if len(own) > 1 else ""
    head = f"result of {one_line(result.specialist_name)}: {result.status.value}, {tokens}"
    error = [f"  {one_line(result.error)}"] if result.error else []
    return [head, *error, *(f"  {line}" for line in harmless(result.text).splitlines())]


def call_lines(call: RunEvent, run: WholeRun) -> list[str]:
    """A call of a model or a tool: with what, and what came."""
    said = whole(call, run)
    match call.type:
        case "tool_completed":
            approval = f", {said['approval']} by a person" if said.get("approval") else ""
            head = f"tool {called(said)}: {said['status']}{approval}, {said['seconds']:.2f} s"
            return [
                one_line(head),
                *(f"  {line}" for line in harmless(str(said["result"])).splitlines()),
            ]
        case "tool_invoked":
            return [f"tool {called(said)}: not over"]
        case "model_answered":
            return [f"model {one_line(str(said['model']))}: {answered(said)}"]
        case _:
            return [f"model {one_line(str(said['model']))}: not over"]


def called(said: Mapping[str, Any]) -> str:
    """A tool with its arguments."""
    arguments: Mapping[str, Any] = said["arguments"]
    pairs = (f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in arguments.items())
    return one_line(f"{said['tool']}({', '.join(pairs)})")


def answered(said: Mapping[str, Any]) -> str:
    """What the call of a model took, or why it failed."""
    if said["error"]:
        return f"failed, {said['seconds']:.2f} s: {one_line(str(said['error']))}"
    counts = [said["input_tokens"], said["output_tokens"]]
    tokens = "tokens unknown" if None in counts else f"{counts[0]} in + {counts[1]} out tokens"
    cost = "cost unknown" if said["cost"] is None else f"cost {said['cost']:.4g}"
    return f"{tokens}, {cost}, {said['seconds']:.2f} s"


def whole(call: RunEvent, run: WholeRun) -> dict[str, Any]:
    """The details of a call with its whole arguments and result, where they are still kept."""
    said: dict[str, Any] = dict(call.details)
    if (arguments := run.texts.get(str(said.get("arguments_ref")))) is not None:
        said["arguments"] = json.loads(arguments)
    if (result := run.texts.get(str(said.get("result_ref")))) is not None:
        said["result"] = result
    return said

"""Runs over HTTP: begin, look, list, answer, stop, resume, and correct them."""

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import JsonValue

from replan.errors import ReplanError
from replan.ports.run_book import RunRecord
from replan.runs.run_input import asked, kept_input
from replan.server.answers import (
    OWN_LABELS,
    TEAM,
    RunTold,
    TextTold,
)
from replan.server.endpoints import Call, Reply
from replan.server.problems import FieldProblem, RefusedError, bad_field, bad_request, shown
from replan.server.request_settings import settings_for
from replan.server.served_teams import own_id
from replan.server.work import answered, begun, continued, lease_of, leased
from replan.state.questions import fingerprint_of

Action = Literal["retry", "skip"]
_PRIORITY = "priority"
_ASKED = "asked"
"""The field of a run's order that distinguishes requests."""


async def start(call: Call) -> Reply:
    """Begin a run; the same request with the same name returns the same run."""
    body, who, served = call.body, call.who, call.served
    team, _ = served.team_named(body.team)
    if not body.input.keys() & {"messages", "plan"}:
        raise bad_field("task", body.task, "there is nothing to do", "Give a task or a plan.")
    _check_labels(body.labels)
    given = asked(body.input)
    fingerprint = fingerprint_of(team, body.model_dump(mode="json", exclude={"team"}))
    run_id = own_id(body.run_id, who) if body.run_id else served.new_id()
    known = await served.storage.runs.get(run_id) if body.run_id else None
    if known is not None:
        return await _again(call, known, fingerprint)
    await begun(
        served,
        who,
        team,
        given,
        run_id=run_id,
        settings=body.settings,
        labels=body.labels,
        title=body.title,
        order={**cast("dict[str, JsonValue]", kept_input(given)), _ASKED: fingerprint},
        tokens=body.tokens,
    )
    record = await served.storage.runs.get(run_id)
    if record is not None and not _is_of(record, fingerprint):
        # Another request came at the same moment.
        raise _taken(record)
    return Reply(await _run_told(call, run_id), 201)


def _is_of(record: RunRecord, fingerprint: str) -> bool:
    return isinstance(record.order, dict) and record.order.get(_ASKED) == fingerprint


def _taken(record: RunRecord) -> RefusedError:
    fix = "Send the same request again, or give the new one another run_id."
    problem = "another request began a run of this name"
    mistake = FieldProblem(field="run_id", value=record.run_id, problem=problem, fix=fix)
    return RefusedError(409, "run_id_taken", f"run_id: {problem}. {fix}", [mistake])


async def _again(call: Call, record: RunRecord, fingerprint: str) -> Reply:
    """What a start that comes again gets: its run, which continues if its process was killed."""
    if not _is_of(record, fingerprint) or not call.served.is_seen(record, call.who):
        raise _taken(record)
    view = await call.served.runtime_of(record).look(record.run_id)
    if view.is_killed:
        await continued(call.served, call.who, record, None)
    return Reply(await _run_told(call, record.run_id), 200)


async def look(call: Call) -> RunTold:
    """Return the status of a run."""
    record = await call.served.record_of(call.path["run_id"], call.who)
    return RunTold.of(await call.served.runtime_of(record).look(record.run_id))


async def text(call: Call) -> TextTold:
    """Return a long text of an event."""
    record, ref = await call.served.record_of(call.path["run_id"], call.who), call.path["ref"]
    found = await call.served.runtime_of(record).text(record.run_id, ref)
    if found is None:
        detail = "This text is not there, or it was removed. An event names its texts as `ref`."
        raise RefusedError(404, "unknown_text", detail)
    return TextTold(ref=ref, text=found)


async def answer(call: Call) -> Reply:
    """Answer the questions of a run, which then continues."""
    record = await call.served.record_of(call.path["run_id"], call.who)
    runtime = call.served.runtime_of(record)
    view = await runtime.look(record.run_id)
    if not view.waiting:
        detail = f"This run waits for no answer: it is {view.outcome}."
        raise RefusedError(409, "nothing_asked", f"{detail} GET /runs/{record.run_id} shows it.")
    _check_keys(call.body.answers, [ask.key for ask in view.waiting])
    await answered(call.served, call.who, record, call.body.answers)
    return Reply(await _run_told(call, record.run_id), 202)


async def stop(call: Call) -> Reply:
    """Stop a run; it can be resumed."""
    record = await call.served.record_of(call.path["run_id"], call.who)
    runtime, by = call.served.runtime_of(record), call.who.person
    await runtime.stop(record.run_id, by=by, at_once=call.body.at_once)
    return Reply(await _run_told(call, record.run_id), 202)


async def resume(call: Call) -> Reply:
    """Resume a run that was stopped or killed, or that a limit ended."""
    served, who = call.served, call.who
    record = await served.record_of(call.path["run_id"], who)
    settings = settings_for(served, who, record.labels.get(TEAM, ""), call.body.settings)
    await continued(served, who, record, settings)
    return Reply(await _run_told(call, record.run_id), 202)


async def correct(call: Call, action: Action) -> Reply:
    """Do a step again, and what depends on it; or leave it out, and continue."""
    record = await call.served.record_of(call.path["run_id"], call.who)
    runtime, body = call.served.runtime_of(record), call.body
    new_id = own_id(body.run_id, call.who) if body.run_id else call.served.new_id()
    if await call.served.storage.runs.get(new_id) is not None:
        fix = f"GET /runs/{body.run_id} shows it. Give another one, or none."
        raise bad_field("run_id", body.run_id, "there is a run of this name", fix)
    asked_for = settings_for(call.served, call.who, record.labels.get(TEAM, ""), body.settings)
    lease, settings = await lease_of(call.served, call.who, record, asked_for, new_id)
    options: Any = {
        "by": call.who.person,
        "settings": settings,
        "repeat_effects": body.repeat_effects,
        "run_id": new_id,
    }
    do = runtime.retry if action == "retry" else runtime.skip
    run = await leased(call.served, lease, lambda: do(record.run_id, body.step, **options))
    return Reply(await _run_told(call, run.run_id), 202)


async def _run_told(call: Call, run_id: str) -> RunTold:
    record = await call.served.storage.runs.get(run_id)
    if record is None:
        raise ReplanError(f"The run {run_id} was removed while it began. Start it again.")
    return RunTold.of(await call.served.runtime_of(record).look(run_id))


def _check_labels(labels: Mapping[str, str]) -> None:
    if not re.fullmatch(r"0|-[1-9]", labels.get(_PRIORITY, "0")):
        fix = "Give a number from -9 to 0: a caller can only lower the priority."
        problem = "a caller may not set this priority"
        raise bad_field(f"labels.{_PRIORITY}", labels[_PRIORITY], problem, fix)
    for name in OWN_LABELS:
        if name in labels:
            fix = "Give the label another name."
            raise bad_field(f"labels.{name}", labels[name], "the server sets this label", fix)


def _check_keys(answers: Mapping[str, JsonValue], keys: list[str]) -> None:
    """Refuse answers to questions that are not open, before any is taken."""
    mistakes = [
        FieldProblem(
            field=f"answers.{name}",
            value=shown(given),
            problem="the run does not wait for this answer",
            fix=f"Give one of: {', '.join(keys)}.",
            code="unknown_key",
        )
        for name, given in answers.items()
        if not any(key == name or key.startswith(f"{name}/") for key in keys)
    ]
    if mistakes:
        raise bad_request(mistakes)

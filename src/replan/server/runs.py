"""Runs over HTTP: begin, look, list, answer, stop, resume, and correct them."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pydantic import JsonValue

from replan.errors import ReplanError
from replan.ports.run_book import RunRecord
from replan.runs.correcting import is_over
from replan.runs.run import Run
from replan.runs.run_input import asked, kept_input
from replan.server.allowances import Lease
from replan.server.answers import TEAM, TENANT, TOKEN, USER, RunTold, TextTold
from replan.server.endpoints import Call, Reply
from replan.server.house import own_id, team_services
from replan.server.identity import Identity
from replan.server.problems import FieldProblem, RefusedError, bad_field, bad_request, shown
from replan.state.enhanced import settings_of
from replan.state.limits import RunSettings
from replan.state.questions import fingerprint_of
from replan.state.tightening import tightened
from replan.values import Value

_OWN_LABELS = (TEAM, TENANT, TOKEN, USER)
_OWN_SETTINGS = ("tenant", "user")
_ASKED = "asked"
"""The field of a run's order that tells one request from another."""


async def start(call: Call) -> Reply:
    """Begin a run; the same request under the same name gives the same run."""
    body, who, house = call.body, call.who, call.house
    team, runtime = house.team_named(body.team)
    if not body.input.keys() & {"messages", "plan"}:
        raise bad_field("task", body.task, "there is nothing to do", "Give a task or a plan.")
    _check_labels(body.labels)
    given = asked(body.input)
    fingerprint = fingerprint_of(team, body.model_dump(mode="json", exclude={"team"}))
    if body.run_id is not None:
        known = await house.storage.runs.get(own_id(body.run_id, who))
        if known is not None:
            return await _again(call, known, fingerprint)
    run_id = own_id(body.run_id, who) if body.run_id else house.new_id()
    labels = {TEAM: team, TENANT: who.tenant, TOKEN: who.name, USER: who.user}
    order: dict[str, JsonValue] = {_ASKED: fingerprint}
    kept = kept_input(given)
    options: dict[str, Any] = {
        "run_id": run_id,
        "title": body.title,
        "labels": {**body.labels, **{name: each for name, each in labels.items() if each}},
        "order": {**kept, **order} if isinstance(kept, dict) else order,
        "tokens": body.tokens,
    }
    settings = settings_for(call, team, body.settings)
    lease = await house.allowances.reserve(who, run_id, _limits(call, team, settings))
    options["settings"] = _within(lease, _limits(call, team, settings), settings)
    await _leased(call, lease, lambda: runtime.start(given, **options))
    return Reply(await _told(call, run_id), 201)


async def _again(call: Call, record: RunRecord, fingerprint: str) -> Reply:
    """What a start that comes once more gets: its run, which goes on if its process was killed."""
    order = record.order if isinstance(record.order, dict) else {}
    if order.get(_ASKED) != fingerprint or not call.house.is_seen(record, call.who):
        fix = "Send the same request again, or give the new one another run_id."
        problem = "another request began a run of this name"
        mistake = FieldProblem(field="run_id", value=record.run_id, problem=problem, fix=fix)
        raise RefusedError(409, "run_id_taken", f"run_id: {problem}. {fix}", [mistake])
    view = await call.house.runtime_of(record).look(record.run_id)
    if view.is_killed:
        await _going_on(call, record, None)
    return Reply(await _told(call, record.run_id), 200)


async def look(call: Call) -> RunTold:
    """Tell how a run stands."""
    record = await call.house.record_of(call.path["run_id"], call.who)
    return RunTold.of(await call.house.runtime_of(record).look(record.run_id))


async def text(call: Call) -> TextTold:
    """Give a long text of an event."""
    record, ref = await call.house.record_of(call.path["run_id"], call.who), call.path["ref"]
    found = await call.house.runtime_of(record).text(record.run_id, ref)
    if found is None:
        told = "There is no such text, or it is not kept any more. An event names it as `ref`."
        raise RefusedError(404, "unknown_text", told)
    return TextTold(ref=ref, text=found)


async def answer(call: Call) -> Reply:
    """Answer what a run waits for; it continues."""
    record = await call.house.record_of(call.path["run_id"], call.who)
    runtime = call.house.runtime_of(record)
    view = await runtime.look(record.run_id)
    if not view.waiting:
        told = f"This run waits for no answer: it is {view.outcome}."
        raise RefusedError(409, "nothing_asked", f"{told} GET /runs/{record.run_id} shows it.")
    _check_keys(call.body.answers, [ask.key for ask in view.waiting])
    lease, settings = await _lease_of(call, record, None)
    by = call.who.person
    answers = call.body.answers
    await _leased(
        call, lease, lambda: runtime.answer(record.run_id, answers, settings=settings, by=by)
    )
    return Reply(await _told(call, record.run_id), 202)


async def stop(call: Call) -> Reply:
    """Stop a run; it can be resumed."""
    record = await call.house.record_of(call.path["run_id"], call.who)
    runtime, by = call.house.runtime_of(record), call.who.person
    await runtime.stop(record.run_id, by=by, at_once=call.body.at_once)
    return Reply(await _told(call, record.run_id), 202)


async def resume(call: Call) -> Reply:
    """Resume a run that was stopped or killed, or that a limit ended."""
    record = await call.house.record_of(call.path["run_id"], call.who)
    settings = settings_for(call, record.labels[TEAM], call.body.settings)
    await _going_on(call, record, settings)
    return Reply(await _told(call, record.run_id), 202)


async def retry(call: Call) -> Reply:
    """Do a step once more, and what depends on it."""
    return await _corrected(call, "retry")


async def skip(call: Call) -> Reply:
    """Leave a step out, and continue."""
    return await _corrected(call, "skip")


async def _corrected(call: Call, action: str) -> Reply:
    record = await call.house.record_of(call.path["run_id"], call.who)
    runtime, body = call.house.runtime_of(record), call.body
    new_id = own_id(body.run_id, call.who) if body.run_id else call.house.new_id()
    if await call.house.storage.runs.get(new_id) is not None:
        fix = f"GET /runs/{body.run_id} shows it. Give another one, or none."
        raise bad_field("run_id", body.run_id, "there is a run of this name", fix)
    asked_for = settings_for(call, record.labels[TEAM], body.settings)
    lease, settings = await _lease_of(call, record, asked_for, new_id)
    options = {
        "by": call.who.person,
        "settings": settings,
        "repeat_effects": body.repeat_effects,
        "run_id": new_id,
    }
    correct = getattr(runtime, action)
    run = await _leased(call, lease, lambda: correct(record.run_id, body.step, **options))
    return Reply(await _told(call, run.run_id), 202)


async def _going_on(call: Call, record: RunRecord, asked_for: RunSettings | None) -> None:
    runtime, by = call.house.runtime_of(record), call.who.person
    lease, settings = await _lease_of(call, record, asked_for)
    await _leased(call, lease, lambda: runtime.go_on(record.run_id, settings=settings, by=by))


async def _lease_of(
    call: Call, record: RunRecord, asked_for: RunSettings | None, new_id: str = ""
) -> tuple[Lease, RunSettings | None]:
    """Reserve for a run that goes on, or for the new one that goes on from one that is over."""
    state = (await call.house.runtime_of(record).look(record.run_id)).state
    payer = call.house.payer_of(record, call.who)
    limits = settings_of(state).overridden_by(asked_for).limits
    run_id = new_id if new_id and is_over(state) else record.run_id
    lease = await call.house.allowances.reserve(payer, run_id, limits)
    return lease, _within(lease, limits, asked_for)


async def _leased(call: Call, lease: Lease, begin: Callable[[], Coroutine[Any, Any, Run]]) -> Run:
    """Begin work on a run with what is reserved for it; give it back where it does not begin."""
    try:
        run = await begin()
    except BaseException:
        call.house.allowances.drop(lease)
        raise
    call.house.settle(run, lease)
    return run


async def _told(call: Call, run_id: str) -> RunTold:
    record = await call.house.storage.runs.get(run_id)
    if record is None:
        raise ReplanError(f"The run {run_id} was removed meanwhile.")
    return RunTold.of(await call.house.runtime_of(record).look(run_id))


def settings_for(call: Call, team: str, asked_for: RunSettings | None) -> RunSettings | None:
    """The settings of a request, with whose run it is; it loosens nothing.

    Raises:
        RefusedError: A setting is looser than the team's.
    """
    services = team_services(call.house.runtimes[team])
    if asked_for is not None:
        mistakes = _own_settings(asked_for)
        taken = tightened(services.settings, asked_for, services.open_to_clients)
        if mistakes := mistakes or _loosened(asked_for, taken):
            raise bad_request(mistakes)
    own = _whose(call.who, services.settings)
    if not own:
        return asked_for
    return (asked_for or RunSettings()).replace(**own)


def _whose(who: Identity, team: RunSettings) -> dict[str, str]:
    """Whose facts and knowledge a run uses: those of who calls, else those of the team."""
    own = {"tenant": who.tenant, "user": who.user}
    return {name: each for name, each in own.items() if each and each != getattr(team, name)}


def _own_settings(asked_for: RunSettings) -> list[FieldProblem]:
    return [
        FieldProblem(
            field=f"settings.{name}",
            value=shown(getattr(asked_for, name)),
            problem="the token says whose run it is",
            fix="Leave it out.",
            code="looser",
        )
        for name in _OWN_SETTINGS
        if name in asked_for.model_fields_set
    ]


def _loosened(asked_for: Value, taken: Value, place: str = "settings") -> list[FieldProblem]:
    """The settings that are looser than the team's, which has what `taken` has."""
    found = list[FieldProblem]()
    for name in sorted(asked_for.model_fields_set):
        wanted, kept = getattr(asked_for, name), getattr(taken, name)
        if isinstance(wanted, Value):
            found += _loosened(wanted, kept, f"{place}.{name}")
        elif wanted != kept:
            found.append(
                FieldProblem(
                    field=f"{place}.{name}",
                    value=shown(wanted),
                    problem="this is looser than the team's, and a request can only tighten",
                    fix=f"Leave it out, or give {kept!r} or less.",
                    code="looser",
                )
            )
    return found


def _limits(call: Call, team: str, settings: RunSettings | None) -> Any:
    return team_services(call.house.runtimes[team]).settings.overridden_by(settings).limits


def _within(lease: Lease, limits: Any, settings: RunSettings | None) -> RunSettings | None:
    """Settings with the limits of what is reserved."""
    capped = lease.capped(limits)
    return (
        settings
        if capped is None
        else (settings or RunSettings()).overridden_by(RunSettings(limits=capped))
    )


def _check_labels(labels: Mapping[str, str]) -> None:
    for name in _OWN_LABELS:
        if name in labels:
            fix = "Give the label another name."
            raise bad_field(f"labels.{name}", labels[name], "the server gives this label", fix)


def _check_keys(answers: Mapping[str, JsonValue], keys: list[str]) -> None:
    """Refuse an answer to what is not asked, before any is taken."""
    mistakes = [
        FieldProblem(
            field=f"answers.{name}",
            value=shown(given),
            problem="the run does not ask this",
            fix=f"Give one of: {', '.join(keys)}.",
            code="unknown_key",
        )
        for name, given in answers.items()
        if not any(key == name or key.startswith(f"{name}/") for key in keys)
    ]
    if mistakes:
        raise bad_request(mistakes)

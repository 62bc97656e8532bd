"""Runs that are begun and continued for a caller: what may be set, within the allowance."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pydantic import JsonValue

from replan.base.errors import Mistake, mistake
from replan.base.values import Value
from replan.log.labels import TEAM, TENANT, TOKEN, USER
from replan.log.report import RunReport
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.runs.asked.pending import check_changed_plan
from replan.runs.reads import state_of
from replan.runs.run import Run
from replan.server.callers.allowances import Lease
from replan.server.callers.identity import Identity
from replan.server.problems import bad_request
from replan.server.served_teams import ServedTeams, team_services
from replan.specialists.services import Services
from replan.state.enhanced import plan_of, settings_of
from replan.state.limits import Limits, RunSettings
from replan.state.rules import is_final
from replan.state.tightening import tightened


async def begin_run(  # noqa: PLR0913 - what a run can be told
    served: ServedTeams,
    who: Identity,
    team: str,
    run_input: Mapping[str, Any],
    *,
    run_id: str,
    settings: RunSettings | None = None,
    labels: Mapping[str, str],
    before: TaskPlan | None = None,
    **options: Any,
) -> Run:
    """Begin a run for a caller; `before` is the plan that the given one was edited from.

    Raises:
        RefusedError: A setting is looser than the team's, or the allowance is used up.
        PlanDocumentError: So is an option of a step of the given plan, or it has mistakes.
        UsageError: The run cannot begin from this.
    """
    settings = settings_for(served, who, team, settings)
    if plan := run_input.get("plan"):
        by_model, services = (
            run_input.get("plan_by") == "model",
            team_services(served.runtimes[team]),
        )
        check_outside_plan(plan, services, before, by_model=by_model)
    own = {TEAM: team, TENANT: who.tenant, TOKEN: who.name, USER: who.user}
    lease, bounded = await reserve_new(served, who, team, run_id, settings)
    runtime = served.runtimes[team]
    return await start_with_lease(
        served,
        lease,
        lambda: runtime.start(
            {**run_input},
            run_id=run_id,
            settings=bounded,
            labels={**labels, **{name: each for name, each in own.items() if each}},
            **options,
        ),
    )


async def answer_run(
    served: ServedTeams,
    who: Identity,
    record: RunRecord | RunReport,
    answers: Mapping[str, JsonValue],
    *,
    name: str = "",
    tokens: bool = False,
) -> Run:
    """Answer a run, and continue it; an answer of the same name counts once.

    Raises:
        RefusedError: Nothing is left of the allowance of who began it.
        PlanDocumentError: A changed plan has options that are looser than the team's.
        InputError: It asks nothing, or an answer does not fit.
    """
    runtime = served.runtime_of(record)
    asks = (await runtime.get(record.run_id)).pending_questions
    if asks:
        plan = plan_of(await state_of(record.run_id, runtime.resources))
        check_changed_plan(asks, answers, team_services(runtime), plan)
    lease, settings = await reserve_for(served, who, record)
    options: Any = {"settings": settings, "by": who.person, "name": name, "tokens": tokens}
    return await start_with_lease(
        served, lease, lambda: runtime.answer(record.run_id, {**answers}, **options)
    )


async def edit_plan_of(
    served: ServedTeams, who: Identity, record: RunRecord | RunReport, plan: str, version: int
) -> None:
    """Edit the plan of a run that is not over.

    Raises:
        PlanDocumentError: Options of the edited plan are looser than the team's.
        UsageError: The edit cannot be made.
    """
    runtime = served.runtime_of(record)
    before = plan_of(await state_of(record.run_id, runtime.resources))
    check_outside_plan(plan, team_services(runtime), before)
    await runtime.edit_plan(record.run_id, plan, version=version, by=who.person)


async def resume_run(
    served: ServedTeams, who: Identity, record: RunRecord | RunReport, settings: RunSettings | None
) -> Run:
    """Resume a run.

    Raises:
        RefusedError: Nothing is left of the allowance of who began it.
        UsageError: Somebody works on it, or a limit that ended it is not raised.
    """
    lease, bounded = await reserve_for(served, who, record, settings)
    runtime = served.runtime_of(record)
    return await start_with_lease(
        served,
        lease,
        lambda: runtime.resume(record.run_id, wait=False, settings=bounded, by=who.person),
    )


async def reserve_new(
    served: ServedTeams, who: Identity, team: str, run_id: str, settings: RunSettings | None
) -> tuple[Lease, RunSettings | None]:
    """Reserve for a run that begins."""
    limits = team_services(served.runtimes[team]).settings.overridden_by(settings).limits
    lease = await served.allowances.reserve(who, run_id, limits)
    return lease, cap_settings(lease, limits, settings)


async def reserve_for(
    served: ServedTeams,
    who: Identity,
    record: RunRecord | RunReport,
    settings: RunSettings | None = None,
    new_id: str = "",
) -> tuple[Lease, RunSettings | None]:
    """Reserve for a run that continues, or for the new one that continues from one that is over."""
    state = await state_of(record.run_id, served.runtime_of(record).resources)
    limits = settings_of(state).overridden_by(settings).limits
    run_id = new_id if new_id and is_final(state) else record.run_id
    lease = await served.allowances.reserve(served.payer_of(record, who), run_id, limits)
    return lease, cap_settings(lease, limits, settings)


async def start_with_lease(
    served: ServedTeams, lease: Lease, begin: Callable[[], Coroutine[Any, Any, Run]]
) -> Run:
    """Begin work on a run with its reservation; release it if the work does not begin."""
    try:
        run = await begin()
    except BaseException:
        if old := served.allowances.drop(lease):
            # The run may have come to rest meanwhile.
            await served.settle_at_rest(old)
        raise
    served.settle(run, lease)
    return run


def cap_settings(lease: Lease, limits: Limits, settings: RunSettings | None) -> RunSettings | None:
    """Settings with the limits of the reservation."""
    capped = lease.capped(limits)
    if capped is None:
        return settings
    return (settings or RunSettings()).overridden_by(RunSettings(limits=capped))


_OWN_SETTINGS = ("tenant", "user")


def settings_for(
    served: ServedTeams, who: Identity, team: str, asked_for: RunSettings | None
) -> RunSettings | None:
    """The settings of a request, with the owner of the run; they loosen nothing.

    Raises:
        RefusedError: A setting is looser than the team's.
    """
    services = team_services(served.runtimes[team])
    if asked_for is not None:
        mistakes = _owner_mistakes(asked_for)
        settings = tightened(services.settings, asked_for, services.client_overrides)
        if mistakes := mistakes or _looser_settings(asked_for, settings):
            raise bad_request(mistakes)
    owner_settings = _owner_settings(who, services)
    if not owner_settings:
        return asked_for
    return (asked_for or RunSettings()).replace(**owner_settings)


def _owner_settings(who: Identity, services: Services) -> dict[str, str]:
    """Whose facts and knowledge a run uses: those of who calls, else those of the team."""
    is_needed = services.remembers and not services.settings.user
    owner = {"tenant": who.tenant, "user": who.person if is_needed else who.user}
    return {
        name: plain_name
        for name, plain_name in owner.items()
        if plain_name and plain_name != getattr(services.settings, name)
    }


def _owner_mistakes(asked_for: RunSettings) -> list[Mistake]:
    return [
        mistake(
            f"settings.{name}",
            getattr(asked_for, name),
            "the token says whose run it is",
            "Leave it out.",
            "looser",
        )
        for name in _OWN_SETTINGS
        if name in asked_for.model_fields_set
    ]


def _looser_settings(asked_for: Value, allowed: Value, place: str = "settings") -> list[Mistake]:
    """The settings that are looser than the ones that are `allowed`."""
    mistakes = list[Mistake]()
    for name in sorted(asked_for.model_fields_set):
        wanted, limit = getattr(asked_for, name), getattr(allowed, name)
        if isinstance(wanted, Value):
            mistakes += _looser_settings(wanted, limit, f"{place}.{name}")
        elif wanted != limit:
            mistakes.append(
                mistake(
                    f"{place}.{name}",
                    wanted,
                    "this is looser than the team's, and a request can only tighten",
                    f"Leave it out, or give {limit!r} or less.",
                    "looser",
                )
            )
    return mistakes

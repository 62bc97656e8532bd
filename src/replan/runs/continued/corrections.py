"""A correction as a runtime does it: in the run itself, or in a new one from its document."""

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from pydantic import JsonValue

from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import loosened, team_of
from replan.runs.continued.correcting import (
    Correction,
    check,
    check_asks_nothing,
    corrected,
    input_of_new_run,
    refuse_repeats,
    repeated_by,
)
from replan.runs.reads import report_of, state_of
from replan.runs.run_at_work import Following, Resources, RunJob
from replan.runs.run_input import stored_input
from replan.runs.snapshots import check_goes_on, config_of
from replan.specialists.steps.carried_results import note_kept
from replan.state.enhanced import settings_of
from replan.state.limits import RunSettings
from replan.state.results import known_results


class CorrectionOptions(Following, total=False):
    """The options of a correction of a run; see `Runtime.retry`."""

    settings: RunSettings | None
    config: RunnableConfig | None
    allow_repeat: bool
    run_id: str | None
    order: JsonValue


async def in_place(
    correction: Correction, record: RunRecord, options: CorrectionOptions, resources: Resources
) -> RunJob:
    """Correct a run that continues; all of it is one write."""
    graph, config = cast("Any", resources.graph), config_of(record.thread_id)
    report, settings = await report_of(record, resources), options.get("settings")
    state = await state_of(record.run_id, resources)
    check(correction, report)
    await check_goes_on(resources.graph, record)
    check_asks_nothing(await graph.aget_state(config))
    so_far = report.plan or TaskPlan()
    now = resources.clock()
    update, events = corrected(correction, state, so_far, settings, now)
    if settings is not None and "settings" in update:
        old, by = settings_of(state), correction.by or correction.action
        update["warnings"] = loosened(resources.graph, old, update["settings"], by)
        settings = None
    await graph.aupdate_state(config, update, as_node="plan_update")
    return RunJob(
        record=record,
        settings=settings,
        config=options.get("config"),
        following=_following_options(options),
        by=correction.by,
        prior_events=events,
    )


async def in_new_run(
    correction: Correction, record: RunRecord, options: CorrectionOptions, resources: Resources
) -> RunJob:
    """What a new run is called with that continues from one that is over."""
    report = await report_of(record, resources)
    state = await state_of(record.run_id, resources)
    check(correction, report)
    log = cast("Storage", resources.storage).log
    if not options.get("allow_repeat"):
        team = team_of(resources.graph)
        refuse_repeats(await repeated_by(correction, report, team, log))
    if not await log.results(record.run_id):
        # One in memory has forgotten them; the state has them whole.
        await note_kept(record.run_id, known_results(state).values(), log)
    run_input, now = input_of_new_run(correction, state), resources.clock()
    run_id, order = options.get("run_id") or resources.new_id(), options.get("order")
    if order is None:
        old = record.order if isinstance(record.order, dict) else {}
        order = {**old, **stored_input(run_input)}
    return RunJob(
        record=record.replace(
            run_id=run_id, thread_id=run_id, order=order, started_at=now, updated_at=now
        ),
        input=run_input,
        settings=settings_of(state).overridden_by(options.get("settings")),
        config=options.get("config"),
        following=_following_options(options),
        prior_events=(correction.event(run_id, record.run_id),),
    )


def _following_options(options: CorrectionOptions) -> Following:
    names = Following.__annotations__
    return cast("Following", {name: value for name, value in options.items() if name in names})

"""Going on with a run that rests, or that a limit ended: what is left of it, and larger limits."""
# LangGraph leaves the type arguments of savers and commands open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

from dataclasses import replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from replan.base.errors import InputError
from replan.base.texts.storable import storable_text
from replan.runs.asked.requests import settle_missed
from replan.runs.calling.compiled import Graph, is_served, loosened
from replan.runs.calling.new_or_continued import began_otherwise
from replan.runs.reads import only_waits
from replan.runs.reports import check_goes_on, config_of, snapshot_of
from replan.runs.run_at_work import Resources, RunJob
from replan.runs.run_input import input_of_record
from replan.state.enhanced import EnhancedState, rounds_of, settings_of
from replan.state.limits import RunSettings
from replan.state.outcomes import CUTS, NOT_OVER
from replan.state.rules import limit_value


async def remaining_work(job: RunJob, resources: Resources) -> RunJob | None:
    """What is left to do of a run; None if it is over, or waits for a person."""
    snapshot = await snapshot_of(resources.graph, job.record)
    state = cast("EnhancedState", snapshot.values)
    settings = job.settings
    is_over = state.get("is_completed") and not set(snapshot.next) - {"summarise"}
    if is_over and (settings is not None or not snapshot.next):
        if settings is None or not state.get("limit_reached"):
            await settle_missed(state, resources.log, resources.clock())
            return None
        await check_goes_on(resources.graph, job.record)
        at = config_of(job.thread_id)
        by = job.by or "raise_limits"
        await raise_limits(resources.graph, settings=settings, config=at, by=by)
        settings = None
    else:
        await check_goes_on(resources.graph, job.record)
    if settings is None and await only_waits(job.run_id, snapshot, resources):
        return None
    begins = not snapshot.values and not snapshot.tasks
    first_input = input_of_record(job.record) if begins else None
    return replace(job, input=first_input, settings=settings)


async def begun_again(job: RunJob, resources: Resources) -> RunJob | None:
    """What is left to do of a run whose input comes again; None if it is over.

    Raises:
        InputError: It was begun with another input, or another run has begun on its thread since.
    """
    graph, record = resources.graph, job.record
    if await began_otherwise(graph, record.thread_id, record.run_id, job.input):
        raise InputError(
            f"The run {record.run_id} was begun with another input. Give this one another run_id."
        )
    snapshot = await snapshot_of(graph, record)
    is_over = bool(snapshot.values.get("is_completed"))
    try:
        await check_goes_on(graph, record)
    except InputError:
        if not is_over:
            raise
        return None
    if is_over and record.outcome not in NOT_OVER:
        return None
    # Where it was adopted, its thread has no input that this one could be compared with.
    return replace(job, input=None, settings=None) if snapshot.values else job


async def raise_limits(
    graph: Graph, *, settings: RunSettings, config: RunnableConfig, by: str = "raise_limits"
) -> None:
    """Let a run that a limit ended continue: `run` or `stream` with None as the input then does so.

    The plan, its results and what was spent stay as they are. A run that is not over needs none of
    this: it takes new limits as `settings` when it continues. Who raised which limit, and when, is
    one of the run's `warnings`.

    Args:
        graph: From `build_graph`, with the storage or the checkpointer of the run, and not served:
            every caller of a served graph counts as a client, which cannot loosen anything.
        settings: The new limits, and what else is to change; fields left out stay as they are.
        config: LangChain's configuration; the thread's id is in it under `configurable`.
        by: Who raises them.

    Raises:
        InputError: No limit ended the newest run of the thread, the limit is not raised, or the
            graph is served.
    """
    snapshot = await graph.aget_state(config)
    state = cast("EnhancedState", snapshot.values)
    limit = state.get("limit_reached", "")
    is_under_way = set(snapshot.next) - {"summarise"} or not state.get("is_completed")
    if is_under_way or limit in ("", *CUTS):
        raise InputError("No limit ended this run, so larger ones change nothing.")
    new = settings_of(state).overridden_by(settings)
    value, before = getattr(new.limits, limit), limit_value(state, limit)
    if value is not None and value <= before:
        raise InputError(
            f"The limit {limit}={before:g} ended this run. Raise it, for example to {2 * before:g}."
        )
    if is_served(graph):
        raise InputError(
            f"The limit {limit}={before:g} cannot be raised on a graph with served=True: whatever "
            "calls it counts as a client. Build the same team with the same storage without "
            "`served`, raise the limit there, and continue the run there."
        )
    update: EnhancedState = {
        **revived(state, new),
        "warnings": loosened(graph, settings_of(state), new, storable_text(by)),
    }
    # The run continues behind the node that comes before the work.
    before_work = "think" if state.get("current_plan") is None else "plan_update"
    await graph.aupdate_state(config, cast("Any", update), as_node=before_work)


def revived(state: EnhancedState, settings: RunSettings) -> EnhancedState:
    """What lets a run that a limit ended continue: in a new round, with all that it has."""
    return {
        "settings": settings,
        "max_rounds": max(settings.limits.max_rounds, rounds_of(state)),
        "current_round": state.get("current_round", 0) + 1,
        "stalls": 0,
        "is_completed": False,
        "outcome": None,
        "limit_reached": "",
        "final_answer": None,
        "current_feedback_result": None,
    }

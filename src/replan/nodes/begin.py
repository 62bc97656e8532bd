"""`begin`: start a run on the newest input, and settle what earlier runs left open."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from replan.base.errors import ConfigurationError, InputError
from replan.base.langgraph_inside.tasks import checkpoint_of, user_of_server
from replan.log.events.types import RunStarted, StepsInvalidated
from replan.log.run_log import BEGAN
from replan.log.whole_results import short_results
from replan.models.spending.scopes import check_prices
from replan.nodes.host.handed_plan import NOTHING_TO_DO, read_handed_plan
from replan.nodes.host.host_call import emitter_of
from replan.nodes.host.new_settings import refusals_of_call, settings_in, settings_of_call
from replan.nodes.host.plan_texts import direct_plan
from replan.plan.markdown.rendering import render_for_model
from replan.plan.markdown.seal import origin_of
from replan.plan.model import TaskPlan
from replan.prompts.host import RESULTS_BUDGET, request_messages
from replan.prompts.sections import request_text, within_budget
from replan.specialists.services import Services
from replan.specialists.steps.answer_events import report_answer
from replan.specialists.steps.on_record import TENANT, carried_results, note_kept
from replan.state.enhanced import EnhancedState, fresh_run
from replan.state.knowledge import RAGOptions
from replan.state.limits import RunSettings
from replan.state.options import MemoryOptions, joined, log_unused
from replan.state.person.answers import answers_in_advance
from replan.state.results import ExecutionRecord, SpecialistResult, collect
from replan.state.step_options import requests_without_knowledge


async def begin(
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    *,
    services: Services,
) -> dict[str, Any]:
    """Begin a run on the newest input; return what changes in the thread's state."""
    settings = _settings(runtime, services)
    author = state.get("plan_by") or "person"
    plan, reruns = read_handed_plan(state.get("plan"), services, author, _unfinished(state))
    messages = _request_messages(state, plan)
    if plan is None and services.is_direct:
        plan = direct_plan(request_text(request_messages(state)), services.names[0])
    checkpoint = checkpoint_of(runtime) or services.new_id()
    name = str(config.get("metadata", {}).get("run_id") or "")
    run_id = await _run_id(name, checkpoint, services)
    # One of this name that was removed may have an account still.
    services.accounts.close(run_id)
    # A model's document names no results: its marks do not count.
    origin = origin_of(state.get("plan") or "") if plan and author == "person" else ""
    if settings.tenant:
        await services.log.note(run_id, TENANT, settings.tenant)
    kept = await _whole_results(plan, origin, settings.tenant, run_id, state, services)
    emitter = emitter_of({"run_id": run_id}, services, runtime)
    request = request_messages({"messages": [*state.get("messages", []), *messages]})
    await emitter.emit(RunStarted, request=request_text(request))
    await emitter.warn(*refusals_of_call(runtime, services))
    if services.is_direct:
        await emitter.warn(*_unread_parts(request, services))
    answers = answers_in_advance(state.get("answers") or {}, services.clock())
    for question in answers.values():
        await report_answer(question, question.answer, emitter, services.log)
    if services.knowledge is None:
        await emitter.warn(*requests_without_knowledge(settings.rag, plan))
    if reruns:
        await emitter.emit(StepsInvalidated, reruns=reruns)
    update = {
        **fresh_run(run_id, settings),
        "warnings": Overwrite(emitter.warnings),
        # Told from a person's edit of the plan that is there.
        "current_plan": Overwrite(plan),
        "previous_plan": _unfinished_plan(state),
        "plan_author": "model" if plan is None else author,
        "source_run_id": origin,
        "carried_results": Overwrite(kept),
        "questions": Overwrite(answers),
    }
    added = {"messages": messages, "execution_history": await _dropped_work(state, services)}
    new = {key: each for key, each in added.items() if each}
    return short_results({**_only_changes(update, state), **new}, services.log)


def _unread_parts(request: Sequence[BaseMessage], services: Services) -> Iterator[str]:
    """What of a request nobody reads: who does it without a host may read texts alone."""
    name = services.names[0]
    if getattr(services.specialists[name], "reads_texts_alone", False):
        blocks = [block for message in request for block in message.content_blocks]
        kinds = dict.fromkeys(block["type"] for block in blocks if block["type"] != "text")
        if kinds:
            yield f"@{name} reads texts alone, so it was not given: {', '.join(kinds)}."


def _settings(runtime: Runtime[RunSettings], services: Services) -> RunSettings:
    """The settings of a new run, after a check that the team can satisfy them."""
    call_settings = settings_of_call(runtime, services)
    settings = settings_in(runtime, services).overridden_by(call_settings)
    _check_user(settings, runtime, services)
    check_prices(settings.limits, services)
    # What the team says about its memory lies around what its specialists say, and this within it.
    memory = _NO_MEMORY if call_settings is None else call_settings.memory
    if memory.summary_model_id:
        services.model_of(memory.summary_model_id)
    if memory.summary_enabled:
        log_unused(joined(services.prompts.memory, memory))
    rag = _NO_RAG if call_settings is None else call_settings.rag
    if (settings.memory, settings.rag) == (memory, rag):
        return settings
    return settings.replace(memory=memory, rag=rag)


_NO_MEMORY, _NO_RAG = MemoryOptions(), RAGOptions()


def _check_user(settings: RunSettings, runtime: Runtime[RunSettings], services: Services) -> None:
    """Refuse a run of a team that remembers facts, if the run has no user."""
    services.facts(settings, runtime.store)
    server_user = user_of_server(runtime) if services.is_served else ""
    context = cast("object", runtime.context)
    if server_user and isinstance(context, RunSettings) and context.user not in ("", server_user):
        problem = "the server has authenticated another user"
        raise ConfigurationError("user", context.user, problem, "Leave it out.")


def _request_messages(state: EnhancedState, plan: TaskPlan | None) -> list[AnyMessage]:
    """The request, if the caller gave only a plan."""
    if state.get("messages"):
        return []
    if plan is None:
        raise InputError(NOTHING_TO_DO)
    return [HumanMessage(plan.title or "Run this plan.")]


async def _whole_results(
    plan: TaskPlan | None,
    origin: str,
    tenant: str,
    run_id: str,
    state: EnhancedState,
    services: Services,
) -> dict[str, SpecialistResult]:
    """The whole results of finished steps of a handed-in plan, noted for this run."""
    if plan is None:
        return {}
    kept = await carried_results(plan, origin, tenant, state, services.log)
    await note_kept(run_id, kept.values(), services.log)
    return kept


def _unfinished(state: EnhancedState) -> TaskPlan | None:
    return None if state.get("is_completed") else state.get("current_plan")


def _unfinished_plan(state: EnhancedState) -> str:
    """The plan that an earlier run did not finish, so that "continue" means something."""
    plan = _unfinished(state)
    if plan is None:
        return ""
    return within_budget(render_for_model(plan).strip(), RESULTS_BUDGET)


def _only_changes(update: Mapping[str, Any], state: EnhancedState) -> dict[str, Any]:
    """The part of an update that the state does not hold yet: on a new thread, most is empty."""
    news = {
        key: value.value if isinstance(value, Overwrite) else value for key, value in update.items()
    }
    return {key: update[key] for key, new in news.items() if key not in state or state[key] != new}


async def _run_id(run_id: str, began: str, services: Services) -> str:
    """The name that the caller gave, if this run is the first to have it; else a new one."""
    # Graphs inherit the names of those that run them, and batches share one. So a name belongs to
    # the run that began at one checkpoint, which only a run that begins again finds there.
    if not run_id or await services.log.note(run_id, BEGAN, began) != began:
        return services.new_id()
    return run_id


async def _dropped_work(state: EnhancedState, services: Services) -> list[ExecutionRecord]:
    """Finished work of an earlier run that LangGraph drops when a new message overtakes it."""
    run_id = state.get("run_id")
    if run_id is None or state.get("is_completed"):
        return []
    kept = {key for record in state.get("execution_history", []) for key in record.results.results}
    recorded = await services.log.results(run_id)
    lost = {result.key: result for result in recorded.values() if result.key not in kept}
    if not lost:
        return []
    return [
        ExecutionRecord(
            round=state.get("current_round", 0), results=collect(lost), timestamp=services.clock()
        )
    ]

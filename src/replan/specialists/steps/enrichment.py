"""What a step is given beside its inputs: the conversation as it sees it, and knowledge."""

from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from replan.knowledge.search import Ask, Search
from replan.models.spending.deadline import HasDeadline
from replan.plan.model import PlanStep
from replan.specialists.services import Services
from replan.specialists.steps.step_record import StepRecord
from replan.state.conversation.conversation import MemoryPolicy, resolved
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.knowledge import (
    Knowledge,
    RAGOptions,
    calls_of_knowledge,
    knowledge_options,
)
from replan.state.options import MemoryOptions
from replan.state.step_options import step_options


def own_memory(
    step: PlanStep, specialist: str, state: EnhancedState, services: Services
) -> MemoryPolicy:
    host, request = services.prompts.memory, settings_of(state).memory
    policy = services.memory.get(specialist, host)
    fields = step_options(MemoryOptions, step.parameters, by_model=is_of_model(step.id, state))
    memory = resolved(policy, fields, request)
    if memory.mode == "summary" and resolved(host, request).mode != "summary":
        # Without a summary of the host, there is none to show.
        return resolved(policy, fields, request, MemoryOptions(mode="window"))
    return memory


def is_of_model(step_id: int, state: EnhancedState) -> bool:
    """Whether a model wrote the step, or changed it last."""
    for update in reversed(state.get("plan_history", [])):
        changes = cast("dict[str, Any]", update.changes)
        added = [added_step["step"].get("id") for added_step in changes.get("added", [])]
        if step_id in added or str(step_id) in changes.get("modified", {}):
            return update.by == "model"
    return state.get("plan_author", "model") == "model"


_NOTHING = Knowledge()


async def knowledge_for(
    record: StepRecord, config: RunnableConfig, timed: HasDeadline, ask: Ask
) -> Knowledge:
    """Return the recorded knowledge, else search; empty if the step uses none."""
    retriever, options = record.services.knowledge, _options_of(record)
    if retriever is None or options.mode == "none":
        return _NOTHING
    recorded = await record.known_knowledge()
    if recorded is not None:
        return recorded
    search = Search(
        retriever=retriever,
        options=options,
        task=_task_of(record),
        tenant=record.board.settings.tenant,
        config=config,
        timed=timed,
        ask=ask,
    )
    warnings = record.emitter.warnings
    await record.recall_warnings()
    before = len(warnings)
    knowledge = await search.run(record.emitter, node="specialist", **record.names)
    if new := warnings[before:]:
        await record.note_warnings(new)
    if knowledge is None:
        return _NOTHING
    await record.note_knowledge(knowledge)
    return knowledge


def _options_of(record: StepRecord) -> RAGOptions:
    state, own = record.board.state, record.services.rag[record.specialist]
    step, asked = record.board.step(record.context.plan_step.id), settings_of(state).rag
    by_model = bool(step.parameters) and is_of_model(step.id, state)
    step_fields = step_options(RAGOptions, step.parameters, by_model=by_model)
    options, as_given = knowledge_options(own, step_fields, asked), knowledge_options(own, asked)
    if by_model and calls_of_knowledge(options) > calls_of_knowledge(as_given):
        # A model may turn knowledge off, but not make it more expensive than the team's mode.
        is_off = as_given.mode == "none"
        return options.replace(mode="stuff", use_summary=False) if is_off else as_given
    return options


def _task_of(record: StepRecord) -> str:
    step = record.context.plan_step
    return "\n".join(part for part in (step.description, step.brief) if part)

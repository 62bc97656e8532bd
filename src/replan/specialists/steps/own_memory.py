"""The conversation as a specialist sees it, if it or its step has its own options."""

from typing import Any, cast

from replan.plan.model import PlanStep
from replan.specialists.services import Services
from replan.state.conversation.conversation import MemoryPolicy, resolved
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.memory import MemoryOptions
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

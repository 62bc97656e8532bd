"""What a specialist is shown: built from the plan, the request and the results it depends on."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import AnyMessage

from replan.plan.model import PlanStep
from replan.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.results import ExecutionContext


def context_of(
    step: PlanStep,
    inputs: Mapping[int, str],
    idempotency_key: str,
    state: EnhancedState,
    services: Services,
    *,
    messages: Sequence[AnyMessage],
) -> ExecutionContext:
    """Build the context of a step at a specialist."""
    return ExecutionContext(
        task_description=step.description,
        plan_step=step,
        messages=tuple(messages),
        parameters=step.parameters,
        inputs=dict(inputs),
        workspace=None if services.workspace is None else str(services.workspace),
        idempotency_key=idempotency_key,
        run_id=state.get("run_id", ""),
        round=state.get("current_round", 1),
    )

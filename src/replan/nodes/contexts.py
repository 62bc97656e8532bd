"""What a specialist is shown: built from the plan, the request and the results it depends on."""

import hashlib
import json
from collections.abc import Iterable, Mapping

from replan.memory.conversation import conversation_of
from replan.plan.model import PlanStep
from replan.ports.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.results import ExecutionContext, SpecialistResult


def context_of(
    step: PlanStep,
    specialist: str,
    inputs: Mapping[int, str],
    state: EnhancedState,
    services: Services,
) -> ExecutionContext:
    """Build the context of a step at a specialist."""
    return ExecutionContext(
        task_description=step.description,
        plan_step=step,
        messages=tuple(conversation_of(state)),
        parameters=step.parameters,
        inputs=dict(inputs),
        workspace=None if services.workspace is None else str(services.workspace),
        idempotency_key=step_key(state.get("run_id", ""), step, specialist),
        run_id=state.get("run_id", ""),
        round=state.get("current_round", 1),
    )


def step_key(run_id: str, step: PlanStep, specialist: str) -> str:
    """The idempotency key of a step at a specialist: the same until the step itself changes."""
    asked = (run_id, step.id, specialist, step.description, step.brief, step.parameters)
    text = json.dumps([*asked, step.dependencies], ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def joined_texts(results: Iterable[SpecialistResult]) -> str:
    """The text of a step's results; of several specialists, each under its name."""
    with_text = [result for result in results if result.text]
    if len(with_text) == 1:
        return with_text[0].marked_text
    return "\n\n".join(f"### {each.specialist_name}\n\n{each.marked_text}" for each in with_text)

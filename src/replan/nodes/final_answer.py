"""`final_answer`: end the run with the answer, and say what is missing if something is."""

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from replan.errors import LimitReachedError, ModelCallError
from replan.events.types import TaskCompleted
from replan.nodes.answer_stream import AnswerStream, show
from replan.nodes.host_call import HostCall, host_call
from replan.nodes.rules import missing_from, outcome_of
from replan.plan.model import TaskPlan
from replan.ports.services import Services
from replan.prompts.host import build_final_answer_prompt
from replan.replies.readings import read_answer
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings


async def final_answer(
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    *,
    services: Services,
) -> EnhancedState:
    """Answer, and end the run: the answer of the feedback, a model's, or one from the results."""
    call = host_call(
        "final_answer", state, services=services, runtime=runtime, config=config, closing=True
    )
    judged = state.get("current_feedback_result")
    answer = None if judged is None else judged.final_answer
    if answer is None:
        answer = await _answered(state, call)
    answer = _with_missing(answer, state, call)
    plan = state.get("current_plan") or TaskPlan()
    outcome, usage = outcome_of(plan), call.usage(state)
    await services.journal.closed(state.get("run_id", ""))
    await call.emitter.emit(TaskCompleted, outcome=outcome, answer=answer, usage=usage)
    update: EnhancedState = {}
    if history := state.get("plan_history", []):
        update["current_plan"] = plan.replace(update_history=tuple(history))
    return {
        **update,
        "messages": [answer],
        "final_answer": answer,
        "is_completed": True,
        "outcome": outcome,
        "usage": usage,
        "event_seq": call.emitter.counter.value,
    }


def generate_final_answer(state: EnhancedState) -> str:
    """The answer without a model: the results, in the order of the plan, under their steps."""
    plan = state.get("current_plan") or TaskPlan()
    results = state.get("current_specialist_results", {})
    parts = [
        f"## {step.id}. {step.description}\n\n{result.text}"
        for step in plan.steps
        for result in results.values()
        if result.step_id == step.id and result.text
    ]
    return "\n\n".join(parts) or "No step brought a result."


async def _answered(state: EnhancedState, call: HostCall) -> AIMessage:
    prompt = build_final_answer_prompt(
        state.get("current_feedback_result"),
        state,
        call.services.prompts,
        missing=missing_from(state),
    )
    shown = AnswerStream(call.emitter, None)
    try:
        text = read_answer(await call.ask(call.services.models.answering, prompt, shown))
    except (ModelCallError, LimitReachedError):
        text = ""
    return shown.finish(text or generate_final_answer(state))


def _with_missing(answer: AIMessage, state: EnhancedState, call: HostCall) -> AIMessage:
    """Add what was left undone: a rule says it, so that no model can leave it out."""
    missing = missing_from(state)
    if not missing:
        return answer
    note = f"\n\n**Not done:**\n\n{missing}"
    show(call.emitter, note, str(answer.id))
    return AIMessage(answer.text + note, id=answer.id)

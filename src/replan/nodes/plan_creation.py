"""`plan_creation`: turn the planner's document, or the one handed in, into the plan."""

from langchain_core.messages import BaseMessage

from replan.base.errors import LimitReachedError
from replan.base.texts.bounds import MODEL_PLAN
from replan.log.events.types import ApprovalRequested, PlanCreated, PlanParseWarning
from replan.nodes.host.approvals import approval_of, first_plan_waits
from replan.nodes.host.early_plan import end_early_steps, hear_first_plan
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.new_settings import host_node
from replan.nodes.host.plan_bounds import bounded_plan
from replan.nodes.host.plan_texts import (
    PlanReading,
    new_plan_of_model,
    one_step_plan,
    read_plan,
)
from replan.plan.markdown.document import PlanDocument, looks_like_plan, too_large
from replan.plan.markdown.overlooked import ParseWarning, overlooked
from replan.plan.model import TaskPlan
from replan.prompts.host import build_planning_prompt
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.results import TaskComplexity, ThinkingResult


@host_node("plan_creation")
async def plan_creation(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Create version 1 of the plan, and begin round 1."""
    services = call.services
    plan, settings = state.get("current_plan"), settings_of(state)
    by_model = plan is None or state.get("plan_author") == "model"
    withheld: tuple[ParseWarning, ...] = ()
    made_at = None
    if plan is None:
        plan = await _read_or_ask(state, call)
        made_at = plan.created_at
    if by_model:
        plan, withheld = bounded_plan(plan, services, settings.limits.step_timeout)
    now = made_at or services.clock()
    steps = tuple(
        step
        if step.created_at == step.updated_at == now
        else step.replace(created_at=now, updated_at=now)
        for step in plan.steps
    )
    plan = plan.replace(
        steps=steps,
        version=1,
        allow_dynamic_update=settings.allow_dynamic_update,
        created_at=now,
        updated_at=now,
    )
    await end_early_steps(call, plan)
    await call.emitter.emit(PlanCreated, plan=plan, markdown=plan.content)
    if doubts := (*overlooked(plan.content), *withheld):
        await call.emitter.emit(PlanParseWarning, parse_warnings=doubts)
    approval = None
    if first_plan_waits(settings, by_model=by_model):
        thinking = state.get("current_thinking_result")
        approval = approval_of(plan, 1, reason="" if thinking is None else thinking.reasoning)
        await call.emitter.emit(ApprovalRequested, question=approval)
    return {
        "current_plan": plan,
        "approval": approval,
        "current_round": 1,
        "is_simple_task": False,
        **await call.update(state),
    }


async def _read_or_ask(state: EnhancedState, call: HostCall) -> TaskPlan:
    """Read the plan from the thinking, or ask for it; fall back to a plan of one step."""
    services = call.services
    thinking = state.get("current_thinking_result") or ThinkingResult(
        thought="", complexity=TaskComplexity.COMPLEX, timestamp=services.clock()
    )
    text = thinking.thought
    # What was judged complex may be a plan in any form; else only what cannot be anything else.
    merged = services.prompts.merged_planning
    is_large = bool(too_large(text, MODEL_PLAN))
    holds_plan = merged and (is_large or bool(PlanDocument.recover(text).plan.steps))
    chat = services.models.planning
    hear_first_plan(state, call, chat)

    def prompt() -> list[BaseMessage]:
        return build_planning_prompt(thinking, state, services.prompts)

    def read(reply: str) -> PlanReading:
        return read_plan(reply, services.team, call.end)

    try:
        if holds_plan or looks_like_plan(text):
            reading = await call.readable(chat, prompt, text, read)
        else:
            reading = await call.ask_readable(chat, prompt(), read)
    except LimitReachedError as error:
        reading = PlanReading(wrong=str(error), done="a plan of one step")
        await call.report_unreadable(reading.wrong, reading.done)
    if not reading.plan.steps:
        return one_step_plan(call.request)
    return new_plan_of_model(reading.plan, services)

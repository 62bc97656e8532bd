"""Lets steps begin while the host writes their plan, and ends those that the plan does not hold."""

from functools import partial

from replan.models.chat import Chat
from replan.nodes.host.approvals import first_plan_waits, revision_waits
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.model_revision import begun_revision
from replan.nodes.host.plan_bounds import begun_plan
from replan.nodes.host.reply_parts import PlanStream
from replan.plan.model import TaskPlan
from replan.ports.run_context import Early, here
from replan.prompts.replies.body_stream import Gate
from replan.state.enhanced import EnhancedState, plan_of, settings_of
from replan.state.limits import RunSettings


def hear_first_plan(
    state: EnhancedState, call: HostCall, chat: Chat, gate: Gate | None = None
) -> None:
    """Begin steps of the plan that a reply writes, if a plan follows its front matter."""
    settings, services = settings_of(state), call.services
    waits = first_plan_waits(settings, by_model=True)
    early = _early(settings, chat, plan_waits=waits)
    if early is not None:
        read = partial(begun_plan, services=services, step_timeout=settings.limits.step_timeout)
        take = early.hear(state, 1, read, call.runtime, call.config)
        call.plan = PlanStream(gate, take)


def hear_revision(
    state: EnhancedState, call: HostCall, chat: Chat, gate: Gate | None = None
) -> None:
    """Begin new steps of the revised plan that a reply writes."""
    settings, old = settings_of(state), plan_of(state)
    # A person may have edited the plan while it ran.
    waits = revision_waits(settings) or state.get("approval") is not None
    early = _early(settings, chat, plan_waits=waits)
    if early is not None:
        seconds = settings.limits.step_timeout
        read = partial(begun_revision, old, services=call.services, step_timeout=seconds)
        number = state.get("current_round", 0) + 1
        call.plan = PlanStream(gate, early.hear(state, number, read, call.runtime, call.config))


async def end_early_steps(call: HostCall, plan: TaskPlan | None = None) -> None:
    """End the early steps that the plan does not hold; without a plan, all of them."""
    if (early := here().early) is not None and early.is_at_work:
        await early.keep(plan or TaskPlan(), call.emitter)


def _early(settings: RunSettings, chat: Chat, *, plan_waits: bool) -> Early | None:
    # A round of some steps only would leave others at work that nobody waits for.
    is_off = plan_waits or settings.round_scope != "plan" or not chat.counts_streams
    return None if is_off else here().early

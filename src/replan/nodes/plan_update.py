"""`plan_update`: revise the plan by a validated change with history, and begin the next round."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from replan.base.errors import InputError, LimitReachedError, ModelCallError
from replan.log.events.types import ApprovalRequested, PlanParseWarning, PlanUpdated
from replan.nodes.host.approvals import approval_of, revision_waits
from replan.nodes.host.early_plan import end_early_steps, hear_revision
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.model_revision import (
    Revision,
    freed_steps,
    refused_revision,
    revision_of,
)
from replan.nodes.host.new_settings import host_node
from replan.plan.markdown.overlooked import ParseWarning, overlooked
from replan.plan.model import TaskPlan
from replan.plan.statuses import repeats_revision
from replan.prompts.host import build_plan_update_prompt
from replan.prompts.replies.readings import read_answer
from replan.state.enhanced import EnhancedState, new_version, rounds_of, settings_of, with_history
from replan.state.questions import Question
from replan.state.results import ActionType, FeedbackResult
from replan.state.rules import asks_for_revision


@host_node("plan_update")
async def plan_update(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Apply the revision that the feedback has or requests; without one, the plan continues."""
    judged, old = state.get("current_feedback_result"), state.get("current_plan")
    if judged is None or old is None:
        raise InputError("There is no feedback or no plan in the state to revise a plan from.")
    old = with_history(old, state)
    asked_by_person = judged.by == "person"
    revision = await _revision(old, judged, state, call)
    new = revision.plan.replace(allow_dynamic_update=old.allow_dynamic_update)
    await end_early_steps(call, new)
    update: EnhancedState = {}
    if new.version != old.version:
        newest = new.update_history[-1]
        await call.emitter.emit(
            PlanUpdated, plan=new, markdown=new.content, changes=newest.changes, by=newest.by
        )
        update = new_version(new, old, state)
        if repeats_revision(old.update_history, newest):
            update["stalls"] = state.get("stalls", 0) + 1
    await _report_doubts(old, new, revision.withheld, call)
    next_round = state.get("current_round", 0) + 1
    # That of a plan that a person edited while it ran.
    approval = state.get("approval")
    is_revised = new.version != old.version
    if asked_by_person or (is_revised and (approval or revision_waits(settings_of(state)))):
        approval = _approval(new, old, next_round, judged, revision.wrong)
        update["approval"] = approval
    if approval is not None:
        await call.emitter.emit(ApprovalRequested, question=approval)
    return {
        **update,
        "current_round": next_round,
        **await call.update(state),
    }


async def _revision(
    old: TaskPlan, judged: FeedbackResult, state: EnhancedState, call: HostCall
) -> Revision:
    """What becomes of the plan: only what may be revised is."""
    # A run whose rounds are spent continues only to wait for answers: nothing new may begin.
    has_rounds = state.get("current_round", 0) < rounds_of(state)
    if (old.allow_dynamic_update and has_rounds) or judged.by == "person":
        # A person may want another plan even where the model must not change it.
        return await _revise(old.replace(allow_dynamic_update=True), judged, state, call)
    if old.allow_dynamic_update and asks_for_revision(judged):
        problem = "The run has used all its rounds, so its plan is not revised."
        return await _reported(refused_revision(old, problem), call)
    return Revision(plan=old)


async def _report_doubts(
    old: TaskPlan, new: TaskPlan, withheld: Sequence[ParseWarning], call: HostCall
) -> None:
    """Report what in a revision's document may have been misread, and what does not count."""
    old_doubts = {warning.text for warning in overlooked(old.content)}
    new_doubts = () if new.version == old.version else overlooked(new.content)
    fresh = (warning for warning in new_doubts if warning.text not in old_doubts)
    if doubts := (*fresh, *withheld):
        await call.emitter.emit(PlanParseWarning, parse_warnings=doubts)
    if new.version != old.version and new.update_history[-1].by == "model":
        await call.emitter.warn(*freed_steps(old, new))


async def _revise(
    old: TaskPlan, judged: FeedbackResult, state: EnhancedState, call: HostCall
) -> Revision:
    """Read the revised document and apply what is valid; mistakes are shown to the model once."""
    services, document = call.services, judged.revised_plan
    # What a model wants to change came with its judgement, where one call does both.
    has_document = judged.by != "person" and services.prompts.merged_planning
    wanted = asks_for_revision(judged) or judged.suggested_action is ActionType.UPDATE_PLAN
    if not document.strip() and (has_document or not wanted):
        return Revision(plan=old)
    chat = services.models.planning
    seconds = settings_of(state).limits.step_timeout
    if judged.by != "person":
        hear_revision(state, call, chat)

    def prompt() -> list[BaseMessage]:
        return build_plan_update_prompt(judged, state, services.prompts)

    def read(reply: str) -> Revision:
        if call.end.cut:
            # Nothing of a reply that was cut off counts: its rest may follow.
            return refused_revision(old, call.end.problem)
        answer = read_answer(reply)
        revision = revision_of(old, answer.body, judged, services, step_timeout=seconds)
        return revision.replace(odd=answer.odd)

    try:
        if document.strip():
            return await call.readable(chat, prompt, document, read)
        return await call.ask_readable(chat, prompt(), read)
    except (ModelCallError, LimitReachedError) as error:
        return await _reported(refused_revision(old, str(error)), call)


async def _reported(revision: Revision, call: HostCall) -> Revision:
    await call.report_unreadable(revision.wrong, revision.done)
    return revision


def _approval(
    new: TaskPlan,
    old: TaskPlan,
    next_round: int,
    judged: FeedbackResult,
    complaints: str,
) -> Question:
    # The person's word was taken: what is wrong with the revision is no problem of that word.
    if new.version == old.version:
        reason = f"The model has no other plan.\n{complaints}".rstrip()
        return approval_of(new, next_round, reason=reason)
    wanted = judged.plan_update_suggestion or judged.feedback
    refused = ["Not all of the model's revision is taken:", complaints] if complaints else []
    return approval_of(new, next_round, before=old, reason="\n".join([wanted, *refused]))

"""`plan_approval`: let a person approve, change or reject the plan before it runs."""

import hashlib
from dataclasses import dataclass

from langgraph.runtime import Runtime
from langgraph.types import Overwrite, interrupt

from replan.errors import InputError, PlanDocumentError
from replan.events.types import LimitReached, PlanUpdated
from replan.nodes.approvals import changed_by_person
from replan.nodes.host_call import emitter_of
from replan.nodes.rules import limit_value, spent_limit
from replan.plan.model import TaskPlan
from replan.ports.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.patches import plan_write
from replan.state.questions import Approval, Decision, read_decision, still_asked
from replan.state.results import ActionType, FeedbackResult


@dataclass(frozen=True)
class _Decided:
    """A decision, and the plan as it is after it."""

    decision: Decision
    plan: TaskPlan


async def plan_approval(
    state: EnhancedState, runtime: Runtime[RunSettings], *, services: Services
) -> EnhancedState:
    """Take the decision that is on record, else ask; it is on record before it is used.

    Raises:
        InputError: No plan waits for a decision.
    """
    approval, plan = state.get("approval"), state.get("current_plan")
    if approval is None or plan is None:
        raise InputError("No plan in the state waits for a decision.")
    run_id = state.get("run_id", "")
    key = decision_key(plan, state.get("current_round", 1))
    # A decision that came just before the process was killed: LangGraph has forgotten it.
    noted = (await services.journal.notes(run_id, key)).get(key)
    # The history stands beside the plan while the run goes on, so that it is stored once.
    history = tuple(state.get("plan_history", []))
    plan = plan.replace(update_history=history)
    decided = _decided(approval, plan, noted, services)
    if noted is None:
        value = decided.decision.model_dump(mode="json", exclude_defaults=True)
        await services.journal.note(run_id, key, value)
    update: EnhancedState = {"approval": None, "decision": decided.decision.replace(plan="")}
    if decided.decision.action == "reject":
        return {**update, **await _rejected(decided.decision, state, runtime, services)}
    return {**update, **await _taken(decided.plan, plan, state, runtime, services)}


def decision_key(plan: TaskPlan, current_round: int) -> str:
    """The journal's key of the decision about a plan.

    A plan may come back unchanged after it was rejected, so the round counts; and a run whose input
    is delivered again may think of another plan, so the document does.
    """
    document = hashlib.sha256(plan.content.encode()).hexdigest()[:16]
    return f"decision/{plan.version}/{current_round}/{document}"


def _decided(approval: Approval, plan: TaskPlan, noted: object, services: Services) -> _Decided:
    """Ask until there is a decision that can be taken; what was given is never lost in between."""
    while True:
        given, draft = interrupt(approval.model_dump(mode="json")) if noted is None else noted, ""
        try:
            decision = read_decision(given)
            if decision.action != "edit":
                return _Decided(decision, plan)
            draft = decision.plan
            return _Decided(
                decision, changed_by_person(plan, draft, services.team, services.clock())
            )
        except (InputError, PlanDocumentError) as error:
            noted, approval = None, approval.replace(problem=str(error), draft=draft)


async def _taken(
    new: TaskPlan,
    old: TaskPlan,
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    services: Services,
) -> EnhancedState:
    """Go on with the plan; if a person changed it, it and its history say so."""
    if new == old:
        return {}
    emitter = emitter_of(state, services, runtime)
    revisions = new.update_history[len(old.update_history) :]
    changes = revisions[-1].changes if revisions else {}
    await emitter.emit(PlanUpdated, plan=new, markdown=new.content, changes=changes, by="person")
    update: EnhancedState = {
        "current_plan": plan_write(state.get("current_plan"), new.replace(update_history=())),
        "plan_history": list(revisions),
        "event_seq": emitter.counter.value,
    }
    questions = state.get("questions", {})
    kept = still_asked(questions, old, new)
    if kept != questions:
        update["questions"] = Overwrite(kept)  # pyright: ignore[reportGeneralTypeIssues]
    return update


async def _rejected(
    decision: Decision,
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    services: Services,
) -> EnhancedState:
    """With a reason there is one new plan, as long as the limits leave room; else the run ends."""
    limit = spent_limit(state) if decision.reason else ""
    goes_on = bool(decision.reason) and not limit
    update: EnhancedState = {
        "stalls": state.get("stalls", 0) + 1,
        "limit_reached": limit,
        "current_feedback_result": FeedbackResult(
            feedback="A person rejected this plan.",
            should_continue=goes_on,
            suggested_action=ActionType.UPDATE_PLAN if goes_on else None,
            plan_update_suggestion=decision.reason,
            by="person",
        ),
    }
    if limit:
        emitter = emitter_of(state, services, runtime)
        await emitter.emit(LimitReached, limit=limit, value=limit_value(state, limit))
        update["event_seq"] = emitter.counter.value
    return update

"""`plan_approval`: let a person approve, change or reject the plan before it runs."""

import hashlib
from dataclasses import dataclass
from itertools import count

from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.types import Overwrite, interrupt
from pydantic import JsonValue

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
    # The history stands beside the plan while the run goes on, so that it is stored once.
    history = tuple(state.get("plan_history", []))
    plan = plan.replace(update_history=history)
    info = runtime.execution_info
    asked_at = "" if info is None else info.checkpoint_id
    decided = await _Gate(approval, plan, services, run_id, key, asked_at).decided()
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


@dataclass
class _Gate:
    """Where the words of a person about a plan come in, one after the other.

    Attributes:
        approval: What is asked; with the problem of the last word, if it could not be taken.
        plan: The plan.
        services: Who is on the team, and where words are on record.
        run_id: The run.
        key: Under which key the decision is on record.
        asked_at: The checkpoint at which the words are counted.
    """

    approval: Approval
    plan: TaskPlan
    services: Services
    run_id: str
    key: str
    asked_at: str

    async def decided(self) -> _Decided:
        """Take the decision on record, else ask until the newest word can be taken."""
        journal = self.services.journal
        # A decision that came just before the process was killed: LangGraph has forgotten it.
        noted = (await journal.notes(self.run_id, self.key)).get(self.key)
        decided = None if noted is None else self._judged(noted)
        if decided is None:
            await journal.strike(self.run_id, self.key)
            decided = await self._asked()
            value = decided.decision.model_dump(mode="json", exclude_defaults=True)
            await journal.note(self.run_id, self.key, value)
        return decided

    async def _asked(self) -> _Decided:
        journal, place = self.services.journal, f"refused/{self.key}/{self.asked_at}/"
        refused = await journal.notes(self.run_id, place)
        newest, numbers = None, count(1)
        while True:
            try:
                given = interrupt(self.approval.model_dump(mode="json"))
            except GraphInterrupt:
                if newest is None:
                    raise
                return newest
            # Each resumption brings all words again, and only the last one still counts.
            word = f"{place}{next(numbers)}"
            newest = self._judged(given, refused.get(word))
            if newest is None:
                await journal.note(self.run_id, word, self.approval.problem)

    def _judged(self, given: object, refused: JsonValue = None) -> _Decided | None:
        """Judge a word; one that was refused stays refused, whatever the team has become."""
        draft = ""
        try:
            decision = read_decision(given)
            if decision.action != "edit":
                return _Decided(decision, self.plan)
            draft = decision.plan
            if refused is None:
                team, now = self.services.team, self.services.clock()
                return _Decided(decision, changed_by_person(self.plan, draft, team, now))
            problem = str(refused)
        except (InputError, PlanDocumentError) as error:
            # It may quote half of a character, which no storage takes.
            problem = str(error).encode("utf-8", "replace").decode()
        self.approval = self.approval.replace(problem=problem, draft=draft)
        return None


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

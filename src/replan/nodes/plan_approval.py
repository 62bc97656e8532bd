"""`plan_approval`: let a person approve, change or reject the plan before it runs."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from langgraph.runtime import Runtime

from replan.base.errors import InputError
from replan.base.langgraph_inside.tasks import checkpoint_of
from replan.log.events.types import LimitReached, PlanUpdated
from replan.nodes.host.approvals import approval_of, changed_by_person, newest_answer
from replan.nodes.host.host_call import emitter_of
from replan.nodes.host.new_settings import with_new_settings
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan.model import TaskPlan
from replan.ports.ask_user import path_of_step
from replan.ports.run_context import here
from replan.specialists.services import Services
from replan.specialists.steps.answer_events import report_plan_decision
from replan.state.enhanced import EnhancedState, new_version, with_history
from replan.state.limits import RunSettings
from replan.state.person.answers import named_answers, read_decision
from replan.state.questions import Decision, Question
from replan.state.results import ActionType, FeedbackResult
from replan.state.rules import limit_value, spent_limit


@dataclass(frozen=True)
class _Decided:
    """A decision, and the plan after it."""

    decision: Decision
    plan: TaskPlan


@with_new_settings
async def plan_approval(
    state: EnhancedState, runtime: Runtime[RunSettings], *, services: Services
) -> EnhancedState:
    """Take the decision that is on record, else ask; it is on record before it is used."""
    question, plan = state.get("approval"), state.get("current_plan")
    if question is None or plan is None:
        raise InputError("No plan in the state waits for a decision.")
    run_id = state.get("run_id", "")
    if question.text != plan.content:
        # It was edited in the state since.
        reason = cast("Mapping[str, str]", question.details)["reason"]
        question = approval_of(plan, state.get("current_round", 1), reason=reason)
        question = question.replace(key=f"{question.key}/{question.fingerprint[:8]}")
    key = decision_key(plan, state.get("current_round", 1))
    plan = with_history(plan, state)
    # Steps may run teams that ask at the same time.
    shown, asked_at = question.inside(path_of_step(), here().place), checkpoint_of(runtime)
    gate = _Gate(shown, plan, services, run_id, key, asked_at)
    decided = await gate.decided()
    emitter = emitter_of(state, services, runtime)
    await report_plan_decision(decided.decision, question.key, key, emitter, services.log)
    update: EnhancedState = {"approval": None, "decision": decided.decision.replace(plan="")}
    if decided.decision.action == "reject":
        return {**update, **await _rejected(decided.decision, state, runtime, services)}
    return {**update, **await _changed_plan(decided.plan, plan, state, runtime, services)}


def decision_key(plan: TaskPlan, current_round: int) -> str:
    """The log's key of the decision about a plan."""
    # A plan may come back unchanged after it was rejected, so the round counts; and a run whose
    # input is delivered again may think of another plan, so the document does.
    document = hashlib.sha256(plan.content.encode()).hexdigest()[:16]
    return f"decision/{plan.version}/{current_round}/{document}"


@dataclass
class _Gate:
    """Takes a person's decisions about a plan, one after another."""

    question: Question  # what is asked; with the problem of the last answer, if there was one
    plan: TaskPlan
    services: Services  # who is on the team, and where answers are on record
    run_id: str
    key: str  # under which key the decision is on record
    asked_at: str  # the checkpoint at which the answers are counted

    async def decided(self) -> _Decided:
        """Take the decision on record, else ask until the newest decision can be used."""
        log = self.services.log
        # A decision that came just before the process was killed: LangGraph has forgotten it.
        noted = (await log.notes(self.run_id, self.key)).get(self.key)
        if noted is not None:
            try:
                return self._applied(read_decision(noted))
            except InputError as error:
                self.question = self._with_problem(str(error), noted)
                await log.strike(self.run_id, self.key)
        decided = await self._ask_decision()
        value = decided.decision.model_dump(mode="json", exclude_defaults=True)
        await log.note(self.run_id, self.key, value)
        return decided

    async def _ask_decision(self) -> _Decided:
        def ask(problem: str, last: object) -> Sequence[Question]:
            return [self._with_problem(problem, last) if problem else self.question]

        place, log = f"{self.key}/{self.asked_at}", self.services.log
        return await newest_answer(log, self.run_id, place, ask, self._read)

    def _read(self, answer: object) -> _Decided:
        return self._applied(self._decision_in(answer))

    def _decision_in(self, answer: object) -> Decision:
        return read_decision(named_answers(answer, [self.question])[self.question.key])

    def _applied(self, decision: Decision) -> _Decided:
        if decision.action != "edit":
            return _Decided(decision, self.plan)
        if self.services.is_served:
            check_outside_plan(decision.plan, self.services, self.plan)
        team, now = self.services.team, self.services.clock()
        return _Decided(decision, changed_by_person(self.plan, decision.plan, team, now))

    def _with_problem(self, problem: str, last: object) -> Question:
        problem = problem.encode("utf-8", "replace").decode()
        draft = ""
        with suppress(InputError):
            draft = self._decision_in(last).plan
        return self.question.replace(problem=problem, draft=draft)


async def _changed_plan(
    new: TaskPlan,
    old: TaskPlan,
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    services: Services,
) -> EnhancedState:
    """Continue with the plan; a change by a person is recorded in its history."""
    if new == old:
        return {}
    emitter = emitter_of(state, services, runtime)
    revisions = new.update_history[len(old.update_history) :]
    changes = revisions[-1].changes if revisions else {}
    await emitter.emit(PlanUpdated, plan=new, markdown=new.content, changes=changes, by="person")
    return new_version(new, old, state)


async def _rejected(
    decision: Decision,
    state: EnhancedState,
    runtime: Runtime[RunSettings],
    services: Services,
) -> EnhancedState:
    """Request a new plan if there is a reason and the limits leave room; else end the run."""
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
    return update

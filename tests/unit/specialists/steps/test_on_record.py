"""What answers for a step: a record of the very same work, or a row of an earlier version."""

from langchain_core.messages import AIMessage

from replan import PlanStep, SpecialistResult
from replan.plan.model import TaskPlan
from replan.specialists.steps.on_record import RecordedResults, key_of_result, keys_in
from replan.state.results import Assignment

ONE = PlanStep(id=1, description="One", assigned_to="a")


def state_of(*steps, **said):
    sent = [Assignment(step_id=step.id, specialist="a") for step in steps]
    plan = TaskPlan(steps=steps)
    return {"run_id": "r", "current_round": 1, "current_plan": plan, "dispatched": sent, **said}


def result(step, text="done", **said):
    return SpecialistResult(
        specialist_name="a", step_id=step.id, round=1, result=AIMessage(text), **said
    )


def rows(state, step, inputs, found):
    return {key_of_result(keys_in(state, step, "a", inputs), found): found}


def test_a_long_chain_is_read_without_going_down_it():
    steps = [ONE] + [
        PlanStep(id=n, description="Next", assigned_to="a", dependencies=(n - 1,))
        for n in range(2, 1_500)
    ]
    state, recorded = state_of(*steps), {}
    for step in steps:
        inputs = {step.id - 1: str(step.id - 1)} if step.id > 1 else {}
        recorded |= rows(state, step, inputs, result(step, str(step.id)))
    assert len(RecordedResults.of(state, recorded).known) == len(steps)

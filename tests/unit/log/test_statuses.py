"""The words for steps and runs after each event, which all doors use."""

import pytest

from made_runs import attempt, event, whole
from replan.log.statuses import StepStatuses, rest_after
from replan.plan.model import PlanStep, TaskPlan
from replan.state.questions import Question


def begun(who="a"):
    return event(1, 1, "specialist_invoked", step_id=1, specialist=who)


def ended(status, who="a"):
    return event(2, 2, "specialist_completed", step_id=1, specialist=who, status=status)


def asks(who="a"):
    return event(2, 2, "input_requested", step_id=1, specialist=who)


@pytest.mark.parametrize(
    ("events", "statuses"),
    [
        ([begun(), ended("success")], ["running", "completed"]),
        ([begun(), ended("partial")], ["running", "failed"]),
        ([begun(), asks(), begun(), ended("failed")], ["running", "waiting", "running", "failed"]),
        (
            [begun(), begun("b"), ended("success"), asks("b"), ended("failed", "b")],
            ["running", "running", "running", "waiting", "completed"],
        ),
        ([event(3, 3, "specialist_retried", step_id=1, error="?")], [""]),
    ],
)
def test_the_specialists_of_a_step_make_its_status_together(events, statuses):
    steps = StepStatuses()
    assert [steps.apply(each) for each in events] == statuses


def test_a_step_ends_with_the_last_specialist_that_the_plan_names():
    steps = StepStatuses()
    steps.take_plan([PlanStep(id=1, description="It", assigned_to="a", joined_by=("B",))])
    told = [steps.apply(each) for each in (begun(), ended("failed"), begun("b"))]
    assert [*told, steps.apply(ended("success", "b"))] == [
        *("running", "pending", "running"),
        "completed",
    ]


def test_a_step_that_runs_again_begins_anew_at_each_specialist():
    steps = StepStatuses()
    steps.take_plan([PlanStep(id=1, description="It", assigned_to="a", joined_by=("b",))])
    for each in (begun(), ended("success"), begun("b"), ended("failed", "b")):
        steps.apply(each)
    reruns = [{"step": 1, "reason": "edited"}]
    assert steps.apply(event(3, 3, "steps_invalidated", reruns=reruns)) == ""
    assert [steps.apply(each) for each in (begun(), ended("success"))] == ["running", "pending"]


def test_a_run_whose_work_failed_can_be_resumed():
    kinds = ("waiting", "interrupted", "failed")
    stopped = [rest_after(event(1, 1, "run_stopped", reason=each)) for each in kinds]
    assert stopped == ["waiting", "interrupted", "interrupted"]
    assert rest_after(event(1, 1, "task_completed", outcome="failed")) == "failed"
    assert rest_after(begun()) is None


def status_of(outcome, *, asked=(), events=(), ends="waiting"):
    entry = attempt(1, 1, 10, None if ends == "unknown_outcome" else 20, ends)
    plan = TaskPlan(steps=(PlanStep(id=1, description="It"),))
    questions = tuple(Question(key=f"{each}/worker/1", text="?", step_id=each) for each in asked)
    report = whole(outcome=outcome, plan=plan, ledger=(entry,), events=events)
    (step,) = report.model_copy(update={"pending_questions": questions}).steps
    return step.status_text


def test_a_step_waits_until_its_answer_is_taken():
    resumed = (event(1, 30, "run_resumed"),)
    assert status_of("running") == "waiting"
    assert status_of("running", events=resumed) == "pending"
    assert status_of("running", events=resumed, asked=[1]) == "waiting"
    assert status_of("waiting", asked=[1], ends="unknown_outcome") == "waiting"
    assert status_of("partial") == "pending"

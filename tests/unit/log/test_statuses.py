"""The words for steps and runs after each event, which all doors use."""

from itertools import accumulate

from made_runs import NOON, attempt, event, whole
from replan.log.apply import apply
from replan.log.report import RunReport
from replan.plan.model import PlanStep, TaskPlan
from replan.state.questions import Question


def begun(who="a", number=1):
    return event(1, 1, "specialist_invoked", step_id=1, specialist=who, attempt=number)


def ended(status, who="a", number=1):
    own = {"step_id": 1, "specialist": who, "attempt": number}
    return event(2, 2, "specialist_completed", **own, status=status)


def asks(who="a"):
    return event(2, 2, "attempt_ended", step_id=1, specialist=who, outcome="waiting")


def statuses(*told, names=("a",)):
    """The status of a step after each event, at the specialists that it names."""
    step = PlanStep(id=1, description="It", assigned_to=names[0], joined_by=names[1:])
    report = RunReport.begun("r", NOON).model_copy(update={"plan": TaskPlan(steps=(step,))})
    reports = accumulate(told, apply, initial=report)
    return [each.by_id[1].status_text for each in reports][1:]


def test_the_specialists_of_a_step_make_its_status_together():
    told = [begun(), begun("b"), ended("success"), asks("b"), begun("b", 2)]
    told.append(ended("failed", "b", 2))
    assert statuses(*told, names=("a", "b")) == [
        *("running", "running", "running", "waiting", "running", "completed"),
    ]


def test_a_step_ends_with_the_last_specialist_that_the_plan_names():
    told = (begun(), ended("failed"), begun("b"), ended("success", "b"))
    assert statuses(*told, names=("a", "B")) == ["running", "pending", "running", "completed"]


def test_a_step_that_runs_again_begins_anew_at_each_specialist():
    told = [begun(), ended("success"), begun("b"), ended("failed", "b")]
    told.append(event(3, 3, "steps_invalidated", reruns=[{"step": 1, "reason": "edited"}]))
    again = [begun(number=2), ended("success", number=2)]
    assert statuses(*told, *again, names=("a", "b"))[4:] == ["pending", "running", "pending"]


def test_a_run_whose_work_failed_can_be_resumed():
    kinds = ("waiting", "interrupted", "failed")
    run = RunReport.begun("r", NOON)
    stopped = [apply(run, event(1, 1, "run_stopped", reason=each)) for each in kinds]
    assert [each.outcome for each in stopped] == ["waiting", "interrupted", "interrupted"]
    assert {apply(each, event(2, 2, "run_resumed")).outcome for each in stopped} == {"running"}
    assert apply(run, event(1, 1, "task_completed", outcome="failed")).outcome == "failed"
    assert apply(run, begun()).outcome == "running"


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

"""What answers for a step: a record of the very same work, or a row of an earlier version."""

import pytest
from langchain_core.messages import AIMessage

from replan import PlanStep, SpecialistResult
from replan.plan.model import Condition, TaskPlan
from replan.state.generations import Generation
from replan.state.results import Assignment
from replan.steps.on_record import RecordedResults, key_of_result, keys_in

ONE = PlanStep(id=1, description="One", assigned_to="a")
TWO = PlanStep(id=2, description="Two", assigned_to="a", dependencies=(1,))


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


def plain(result):
    """A result without the key of its row in the log."""
    assert result.log_key.startswith("result/")
    return result.replace(log_key="")


def test_a_chain_on_record_is_known_from_its_first_step_on():
    state = state_of(TWO, ONE)
    one, two = result(ONE, "1"), result(TWO, "2")
    both = rows(state, ONE, {}, one) | rows(state, TWO, {1: "1"}, two)
    known = RecordedResults.of(state, both).known
    assert {key: plain(each) for key, each in known.items()} == {"1/a": one, "2/a": two}


def test_a_step_is_not_answered_while_it_is_unknown_what_it_is_given():
    state = state_of(ONE, TWO)
    two = result(TWO)
    recorded = RecordedResults.of(state, rows(state, TWO, {1: "1"}, two))
    assert recorded.known == {}
    assert plain(recorded.answer(state, TWO, "a", {1: "1"})) == two
    assert recorded.answer(state, TWO, "a", {1: "other"}) is None


def test_a_step_that_is_left_out_gives_nothing_to_those_that_wait_for_it():
    other = PlanStep(
        id=2, description="Two", assigned_to="a", condition=Condition(step=1, outcome="failed")
    )
    last = PlanStep(id=3, description="Three", assigned_to="a", dependencies=(2,))
    state = state_of(ONE, other, last)
    three = result(last)
    both = rows(state, ONE, {}, result(ONE)) | rows(state, last, {}, three)
    recorded = RecordedResults.of(state, both)
    assert plain(recorded.known["3/a"]) == three
    assert recorded.left_out == {2}


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


@pytest.mark.parametrize("change", [{"timeout": 9}, {"description": "Other"}], ids=str)
def test_a_failure_answers_only_for_the_very_same_line(change):
    state = state_of(ONE)
    failed = result(ONE, status="failed")
    recorded = RecordedResults(rows(state, ONE, {}, failed))
    assert recorded.answer(state, ONE, "a", {}) == failed
    assert recorded.answer(state, ONE.replace(**change), "a", {}) is None


def test_a_success_answers_however_the_step_is_run_now():
    state = state_of(ONE)
    done = result(ONE)
    recorded = RecordedResults(rows(state, ONE, {}, done))
    assert recorded.answer(state, ONE.replace(timeout=9, priority=2), "a", {}) == done


@pytest.mark.parametrize("status", ["success", "failed"])
def test_nothing_answers_for_a_later_generation(status):
    state = state_of(ONE)
    recorded = RecordedResults(rows(state, ONE, {}, result(ONE, status=status)))
    opened = {**state, "generations": {1: Generation(settled=1)}}
    assert recorded.answer(opened, ONE, "a", {}) is None

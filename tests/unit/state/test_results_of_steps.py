"""What came of a step, and what it gives to others: the same in whichever round it is asked."""

import pytest
from langchain_core.messages import AIMessage

from replan import ExecutionStatus, PlanStep, SpecialistResult, StepStatus
from replan.plan.model import TaskPlan
from replan.state.results import (
    Generation,
    after_round,
    inputs_of,
    joined_texts,
    own_results,
    results_by_step,
    settled,
)

NEXT = PlanStep(id=2, description="Two", dependencies=(1,))


def step(**said):
    return PlanStep(id=1, description="One", **said)


def result(name, text="", status="success", *, error=""):
    return SpecialistResult(
        specialist_name=name,
        step_id=1,
        result=AIMessage(text) if text else None,
        status=ExecutionStatus(status),
        error=error,
    )


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ([], ""),
        ([("a", "one")], "one"),
        ([("a", ""), ("b", "two")], "two"),
        ([("a", "one"), ("b", "two")], "### a\n\none\n\n### b\n\ntwo"),
    ],
)
def test_texts_of_several_specialists_stand_under_their_names(results, text):
    assert joined_texts(result(*each) for each in results) == text


def test_results_stand_in_the_order_in_which_the_step_names_its_specialists():
    found = [result("c"), result("b"), result("a")]
    both = step(assigned_to="A", joined_by=("b",))
    assert [each.specialist_name for each in own_results(both, found)] == ["a", "b"]
    assert own_results(step(), found) == found


def test_what_a_run_found_itself_counts_before_what_it_took_over():
    state = {
        "carried_results": {"1/a": result("a", "old"), "1/b": result("b", "kept")},
        "current_specialist_results": {"1/a": result("a", "new")},
    }
    assert [each.text for each in results_by_step(state)[1]] == ["new", "kept"]


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ([result("a", "whole " * 200)], "whole " * 200),
        ([result("a", status="failed", error="no net")], ""),
        ([result("a", "half", "partial")], "half"),
        ([result("a", "why", "failed", error="no net")], "why"),
        ([result("a", "one"), result("b", status="failed", error="no")], "one"),
        ([result("a")], ""),
    ],
)
def test_a_step_gives_the_same_in_its_own_round_and_later(results, text):
    ended = settled(step(assigned_to="a", joined_by=("b",)), results)
    given = inputs_of(NEXT, {1: ended}, {1: results})
    assert given == ({1: text} if text else {})
    late = results_by_step({"current_specialist_results": {each.key: each for each in results}})
    assert inputs_of(NEXT, {1: ended}, late) == given


def test_what_a_person_wrote_into_a_step_that_had_failed_is_what_it_gives():
    by_hand = step(status=StepStatus.COMPLETED, result="By hand.")
    assert inputs_of(NEXT, {1: by_hand}, {1: [result("a", "No.", "failed")]}) == {1: "By hand."}


def test_a_step_that_was_left_out_gives_nothing():
    left_out = step(status=StepStatus.SKIPPED, feedback="Step 9 is failed, not completed.")
    assert inputs_of(NEXT, {1: left_out}, {}) == {}


def test_a_round_counts_the_steps_that_it_settled():
    before = TaskPlan(
        steps=(
            step(),
            PlanStep(id=2, description="Two"),
            PlanStep(id=3, description="Three"),
            PlanStep(id=4, description="Four", status=StepStatus.FAILED),
        )
    )
    after = before.with_steps(
        step(status=StepStatus.COMPLETED),
        PlanStep(id=2, description="Two", status=StepStatus.FAILED),
    )
    known = {2: Generation(settled=1, done=1), 4: Generation(settled=1)}
    assert after_round(known, before, after) == {
        1: Generation(settled=1, done=1),
        2: Generation(settled=2, done=1),
    }

"""The rules above the models, as tables: when to go on, when to end, how it ended."""

import pytest

from replan import Limits, PlanDocument, RunSettings, Usage
from replan.state import FeedbackResult
from replan.state.limits import LimitHit
from replan.state.results import ExecutionContext
from replan.state.rules import (
    get_current_execution_step,
    may_complete,
    missing_from,
    outcome_of,
    reached_limit,
    should_continue_execution,
)

DONE, OPEN, FAILED = "- [x] 1. One @a", "- [ ] 2. Two @a", "- [!] 3. Three @a"
OPTIONAL, BLOCKED = "- [ ] 4. Four @a (optional)", "- [ ] 5. Five @a (after 3)"
GO_ON, END = FeedbackResult(should_continue=True), FeedbackResult(should_continue=False)
REVISE = FeedbackResult(should_continue=True, plan_update_suggestion="Look elsewhere.")


def plan(*lines):
    return PlanDocument.parse("\n".join(lines) + "\n").plan


def state(*lines, limits=None, **keys):
    settings = RunSettings(limits=Limits(**(limits or {})))
    return {"current_plan": plan(*lines), "current_round": 1, "settings": settings, **keys}


def hit(value, **fields):
    given = {"round": 1, **fields}
    return {"2/a": LimitHit(limit="max_seconds", value=value, specialist="a", **given)}


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ((DONE,), "completed"),
        ((DONE, OPTIONAL), "completed"),
        ((DONE, OPEN), "partial"),
        ((DONE, FAILED), "partial"),
        ((FAILED,), "failed"),
        ((OPEN,), "failed"),
        ((FAILED, "- [x] 6. Other way @a (if 3 failed)"), "completed"),
        (("- [-] 1. Left out @a",), "completed"),
    ],
)
def test_the_outcome_is_told_by_the_required_steps(lines, outcome):
    assert outcome_of(plan(*lines)) == outcome


def test_what_kept_each_step_is_told():
    limits = {"max_seconds": 5, "max_steps": 9}
    given = state(OPEN, "- [ ] 7. Seven @a", limits=limits, limit_hits=hit(5))
    told = missing_from({**given, "limit_reached": "max_tokens"}).splitlines()
    assert told == [
        "- 2. Two: not run, the limit max_seconds was reached",
        "- 7. Seven: not run, the limit max_tokens was reached",
    ]


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (state(OPEN), ""),
        (state(OPEN, stalls=2), "max_stalls"),
        (state(OPEN, limits={"max_stalls": 3}, stalls=2), ""),
        (state(OPEN, current_round=10), "max_rounds"),
        (state(OPEN, max_rounds=1), "max_rounds"),
        (state(DONE, OPEN, limits={"max_steps": 1}), "max_steps"),
        (state(OPEN, BLOCKED.replace("3", "2"), limits={"max_steps": 1}), ""),
        (state(OPEN, limits={"max_model_calls": 5}, usage=Usage(calls=4)), "max_model_calls"),
        (state(OPEN, limits={"max_model_calls": 5}, usage=Usage(calls=3)), ""),
        (state(OPEN, limits={"max_tokens": 100}, usage=Usage(output_tokens=50)), "max_tokens"),
        (state(OPEN, limits={"max_tokens": 100}, usage=Usage(output_tokens=49)), ""),
        (state(OPEN, limits={"max_tokens": 10**4}, usage=Usage(output_tokens=8_000)), "max_tokens"),
        (state(OPEN, limits={"max_tokens": 10**4}, usage=Usage(output_tokens=7_999)), ""),
        (state(OPEN, limits={"max_cost": 1}, usage=Usage(known_cost=1.0)), "max_cost"),
        # What of it is kept for the answer depends on prices, and a call too many is refused.
        (state(OPEN, limits={"max_cost": 1}, usage=Usage(known_cost=0.99)), ""),
        (state(OPEN, usage=Usage(known_cost=900, input_tokens=10**9)), ""),
        (state(OPEN, limits={"max_seconds": 5}, stalls=2, limit_hits=hit(5)), "max_seconds"),
        (state(OPEN, limits={"max_seconds": 5}, limit_hits=hit(5, round=0)), ""),
        # Raised since.
        (state(OPEN, limits={"max_seconds": 6}, limit_hits=hit(5)), ""),
        (state(OPEN, limit_hits=hit(5)), ""),
        (state(OPEN, stalls=2, current_round=10), "max_stalls"),
        # What is finished has no need of another round, so no limit ends it.
        (state(DONE, stalls=2, current_round=10), ""),
        (state(FAILED, stalls=2), "max_stalls"),
        ({}, ""),
    ],
)
def test_a_limit_is_reached_when_no_room_is_left_for_the_work_that_is(given, limit):
    assert reached_limit(given) == limit


@pytest.mark.parametrize(
    ("given", "may"),
    [
        (state(DONE), True),
        (state(DONE, OPEN), False),
        (state(DONE, OPTIONAL), True),
        (state(FAILED, BLOCKED), True),
        (state(DONE, OPEN, stalls=2), True),
    ],
)
def test_a_model_may_not_end_a_run_while_a_required_step_can_run(given, may):
    assert may_complete(given) is may


@pytest.mark.parametrize(
    ("judged", "given", "goes_on"),
    [
        (END, state(DONE, OPEN), True),
        (END, state(DONE, OPTIONAL), False),
        (GO_ON, state(DONE, OPTIONAL), True),
        (END, state(FAILED, BLOCKED), False),
        (GO_ON, state(FAILED, BLOCKED), True),
        # Nothing is open and nothing is to change: going on would do nothing.
        (GO_ON, state(DONE, FAILED), False),
        (REVISE, state(DONE, FAILED), True),
        (FeedbackResult(should_continue=True, revised_plan=OPEN), state(DONE), True),
        (REVISE, state(DONE, OPEN, stalls=2), False),
        (REVISE, state(DONE, OPEN, current_round=10), False),
        (GO_ON, {}, False),
    ],
)
def test_the_rules_have_the_last_word_on_another_round(judged, given, goes_on):
    assert should_continue_execution(judged, given) is goes_on


def test_the_step_that_leads_the_round_is_taken_from_the_plan_as_it_is_now():
    now = plan(DONE, OPEN)
    old = now.step(2).replace(description="Two, as it was")
    leading = ExecutionContext(task_description="Two", plan_step=old)
    assert get_current_execution_step(now, {"current_execution": leading}) == now.step(2)
    assert get_current_execution_step(plan(DONE), {"current_execution": leading}) is None
    assert get_current_execution_step(now, {}) is None

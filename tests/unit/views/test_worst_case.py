"""What a run can spend at worst."""

import pytest
from hypothesis import given, strategies as st

from cases import cases_of
from replan import Limits
from replan.plan import PlanDocument
from replan.views.ahead.preview import worst_case_cost, worst_case_seconds

CASES = cases_of(__file__)


def seconds(text, max_seconds=None, **limits):
    return worst_case_seconds(PlanDocument.parse(text).plan, Limits(**limits), max_seconds)


CHAIN = "- [ ] 1. A (timeout 10s; retries 1)\n- [ ] 2. B (after 1; timeout 5s; retries 0)\n"


def test_steps_take_their_timeouts_and_retries_along_the_longest_chain():
    assert seconds(CHAIN) == 25
    assert seconds(CHAIN + "- [ ] 3. C (timeout 30s; retries 0)\n") == 30
    assert seconds("- [ ] 1. A\n", step_timeout=7, step_retries=3) == 28
    assert seconds(CHAIN.replace("[ ] 1", "[x] 1")) == 5
    assert seconds("- [!] 1. A\n- [x] 2. B\n") == 0


def test_steps_that_have_to_wait_for_a_place_take_longer():
    text = "".join(f"- [ ] {n}. A @a (timeout 10s; retries 0)\n" for n in range(1, 5))
    assert seconds(text, max_parallel_steps=4) == 10
    assert seconds(text, max_parallel_steps=1) == 40
    assert seconds(text.replace("@a", "@a @b"), max_parallel_steps=1) == 80
    assert seconds(text, max_parallel_steps=2) == 25


def test_nothing_goes_beyond_the_seconds_of_the_run():
    assert seconds(CHAIN, 20) == 20
    assert seconds(CHAIN, 30) == 25


def simulated(durations, places):
    """The end of a schedule that starts whatever is ready on whatever place is free."""
    free = [0.0] * places
    for duration in durations:
        at = free.index(min(free))
        free[at] += duration
    return max(free)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 5))
def test_no_schedule_of_independent_steps_takes_longer(durations, places):
    text = "".join(
        f"- [ ] {n}. A @a (timeout {each}s; retries 0)\n" for n, each in enumerate(durations, 1)
    )
    bound = seconds(text, max_parallel_steps=places)
    assert simulated(durations, places) <= bound + 1e-6
    assert bound <= sum(durations) + 1e-6


@pytest.mark.parametrize(
    ("tokens", "options", "expected"),
    CASES["money"],
)
def test_money_is_bounded_by_tokens_or_by_the_limit(tokens, options, expected):
    assert worst_case_cost(tokens, **options) == expected

"""Steps that may write the same thing at the same time."""

from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from random_plans import random_plans
from replan import Limits
from replan.plan import PlanDocument, TaskPlan
from replan.plan.conflicts import write_conflicts
from replan.views.ahead.preview import preview


def conflicts(text: str) -> dict[str, tuple[int, ...]]:
    found = write_conflicts(PlanDocument.parse(text).plan)
    return {conflict.resource: conflict.steps for conflict in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] 1. A (writes x, ./x)\n", {}),
        ("- [ ] 1. A (writes ./x, x)\n- [ ] 2. B (writes d/../x)\n", {"./x": (1, 2)}),
        ("- [x] 1. A (writes x)\n- [ ] 2. B (writes x)\n", {}),
        ("- [!] 1. A\n- [ ] 2. B (after 1; writes x)\n- [ ] 3. C (writes x)\n", {}),
        ("- [x] 1. A\n- [ ] 2. B (if 1 failed; writes x)\n- [ ] 3. C (writes x)\n", {}),
        # A step that is done keeps nobody waiting.
        (
            "- [ ] 1. A (writes x)\n- [x] 2. B (after 1)\n- [ ] 3. C (after 2; writes x)\n",
            {"x": (1, 3)},
        ),
    ],
)
def test_a_conflict_needs_two_steps_that_are_still_to_run_and_one_name(text, expected):
    assert conflicts(text) == expected


def test_a_preview_tells_conflicts_in_words():
    plan = PlanDocument.parse("- [ ] 1. A (writes x)\n- [ ] 2. B (writes x)\n").plan
    told = preview(plan, Limits()).conflicts
    assert list(map(str, told)) == ["steps 1, 2 may write x at the same time"]


WRITES = st.fixed_dictionaries({"writes": st.lists(st.sampled_from("xyz"), unique=True).map(tuple)})


@given(random_plans(WRITES, ids=st.integers(1, 10**12)))
def test_conflicts_are_just_the_pairs_that_no_way_of_waiting_joins(plan: TaskPlan):
    def waits(one: int, two: int) -> bool:
        return any(other == two or waits(other, two) for other in plan.step(one).awaits)

    expected: dict[str, set[int]] = {}
    for one, two in permutations(plan.steps, 2):
        conditions = (one.condition, two.condition)
        opposite = None not in conditions and {
            (each.step, each.outcome) for each in conditions
        } == {(one.condition.step, "failed"), (one.condition.step, "completed")}
        if waits(one.id, two.id) or waits(two.id, one.id) or opposite:
            continue
        for name in set(one.writes) & set(two.writes):
            expected.setdefault(name, set()).add(one.id)
    found = write_conflicts(plan)
    assert {each.resource: set(each.steps) for each in found} == expected

"""Steps that may write the same thing at the same time."""

from itertools import permutations

from hypothesis import given, strategies as st

from random_plans import random_plans
from replan import Limits
from replan.plan import PlanDocument, TaskPlan
from replan.plan.conflicts import write_conflicts
from replan.views.ahead.preview import preview


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

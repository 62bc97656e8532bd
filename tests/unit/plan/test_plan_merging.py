"""What a model's whole revised plan means: who is who in it, and what it leaves out."""

import pytest

from replan.plan import PlanDocument, TaskPlan, parse_plan_from_markdown
from replan.plan.merging import matched, merge_revision, without_steps

TEXT = """\
# Job

- [x] 1. Find A @a
- [!] 2. Fetch B @a
- [ ] 3. Compare both @b (after 1, 2)
- [ ] 4. Write it @b (after 3)
- [ ] 5. Print it @b (after 4; optional)
"""


@pytest.fixture
def plan() -> TaskPlan:
    return parse_plan_from_markdown(TEXT)


def wanted(text: str, plan: TaskPlan) -> TaskPlan:
    return matched(plan, PlanDocument.parse(text, known=plan.by_id).plan)


def unsaid(text: str, plan: TaskPlan) -> list[int]:
    return [step.id for step in merge_revision(plan, wanted(text, plan))[1]]


def structure(plan: TaskPlan) -> list[tuple[int, str, tuple[int, ...]]]:
    return [(step.id, step.description, step.awaits) for step in plan.steps]


def test_a_title_says_more_than_a_number_where_a_model_renumbers(plan: TaskPlan) -> None:
    text = "- [ ] 1. Fetch C\n- [ ] 2. Compare both (after 1)\n- [ ] 3. Write it (after 1, 2)\n"
    assert structure(wanted(text, plan)) == [
        (1, "Fetch C", ()),
        (3, "Compare both", (1,)),
        (4, "Write it", (1, 3)),
    ]


def test_a_step_whose_number_a_title_has_taken_is_a_new_one(plan: TaskPlan) -> None:
    text = "- [ ] 2. Fetch C\n- [ ] 3. Check C (after 2)\n- [ ] 4. Compare both (after 1, 3)\n"
    assert structure(wanted(text, plan)) == [
        (2, "Fetch C", ()),
        (6, "Check C", (2,)),
        (3, "Compare both", (1, 6)),
    ]


def test_a_title_that_several_steps_have_says_nothing(plan: TaskPlan) -> None:
    text = "- [ ] 2. Compare both\n- [ ] 3. Compare both (after 2)\n"
    assert structure(wanted(text, plan)) == [(2, "Compare both", ()), (3, "Compare both", (2,))]


def test_a_step_that_is_marked_as_finished_again_may_say_more_of_itself(plan: TaskPlan) -> None:
    text = "- [x] 1. Find A (done, 3 pages)\n- [ ] 3. Compare both\n"
    assert merge_revision(plan, wanted(text, plan))[0].step(1) == plan.step(1)
    other = "- [ ] 1. Find A again\n- [ ] 3. Compare both\n"
    assert merge_revision(plan, wanted(other, plan))[0].step(1).description == "Find A again"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- [ ] 2. Fetch B\n", [3, 4, 5]),
        ("- [ ] 2. Fetch B\n- [-] 3. Compare both\n- [-] 4. Write it\n", []),
        ("- [ ] 2. Fetch B\n- [ ] 3. Compare both\n- [-] 4. Write it\n", []),
        ("- [ ] 2. Fetch B\n- [ ] 4. Write it\n", [3, 5]),
        # A failed step that nothing takes the place of is left out, too.
        ("- [ ] 3. Compare both (after 1)\n- [ ] 4. Write it (after 3)\n", [2, 5]),
        ("- [ ] 6. New\n- [ ] 3. Compare both (after 2)\n- [ ] 4. Write it\n", [2, 5]),
        ("- [ ] 6. New\n- [ ] 3. Compare both (after 1, 6)\n- [ ] 4. Write it\n", []),
    ],
)
def test_what_a_revision_leaves_out_without_a_word(
    plan: TaskPlan, text: str, found: list[int]
) -> None:
    assert unsaid(text, plan) == found


def test_what_is_left_out_stays_in_its_place(plan: TaskPlan) -> None:
    new, _ = merge_revision(plan, wanted("- [ ] 6. New\n- [ ] 2. Fetch C\n", plan))
    assert [step.id for step in new.steps] == [1, 6, 2, 3, 4, 5]


def test_who_waited_for_a_step_that_is_taken_out_keeps_the_order(plan: TaskPlan) -> None:
    assert structure(without_steps(plan, {3, 4})) == [
        (1, "Find A", ()),
        (2, "Fetch B", ()),
        (5, "Print it", (1, 2)),
    ]

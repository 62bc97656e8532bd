"""What feedback does to a plan: a revised document, or one structured change."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from replan.plan import (
    Condition,
    PlanStep,
    PlanUpdateType,
    StepStatus,
    TaskPlan,
    create_step_from_feedback,
    modify_existing_step,
    parse_plan_from_markdown,
    reorder_steps,
    update_plan_dynamically,
)

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Feedback:
    plan_update_suggestion: str = ""
    plan_update_type: PlanUpdateType | None = None
    revised_plan: str = ""


@pytest.fixture
def plan() -> TaskPlan:
    return parse_plan_from_markdown(
        "- [x] 1. Find it @a\n- [!] 2. Check it @b (after 1)\n- [ ] 3. Write it (after 1, 2)\n"
        "- [ ] 4. Send it (after 3; if 2 completed)\n"
    )


def updated(plan: TaskPlan, kind: PlanUpdateType | None, suggestion: str) -> TaskPlan:
    return update_plan_dynamically(plan, Feedback(suggestion, kind), at=NOON)


def test_a_revised_document_is_merged_and_its_valid_part_applied(plan: TaskPlan) -> None:
    text = (
        "- [ ] 1. Another first\n"
        "- [ ] 2. Check it twice @b\n"
        "- [-] 4. x\n"
        "- [ ] 5. Print it (after 2, 77)\n"
        "- [ ] 6. Print the first (after 1)\n"
    )
    after = update_plan_dynamically(plan, Feedback("Try twice.", None, text), at=NOON)
    # What is refused takes with it what leans on it, and what is not mentioned stays.
    assert [step.id for step in after.steps] == [1, 2, 3, 5]
    assert after.step(1) == plan.step(1)
    assert after.step(2).status is StepStatus.PENDING
    assert after.step(5).dependencies == (2,)
    assert after.update_history[-1].description == "Try twice."
    assert plan.total_steps == 4


def test_a_revision_without_a_reason_gets_one(plan: TaskPlan) -> None:
    after = update_plan_dynamically(
        plan, Feedback(revised_plan="- [ ] 3. Write (after 1)"), at=NOON
    )
    assert after.update_history[-1].description == "Plan updated from execution feedback."


def test_an_unreadable_document_leaves_the_suggestion(plan: TaskPlan) -> None:
    feedback = Feedback("Print it @c (after 3)", PlanUpdateType.ADD_STEP, "No idea, sorry.")
    after = update_plan_dynamically(plan, feedback, at=NOON)
    assert after.steps[-1] == PlanStep(
        id=5, description="Print it", assigned_to="c", dependencies=(3,), created_at=NOON
    )
    assert after.update_history[-1].update_type is PlanUpdateType.ADD_STEP


def test_modifying_tells_the_step_what_to_do_better(plan: TaskPlan) -> None:
    after = updated(plan, PlanUpdateType.MODIFY_STEP, "Step 3 needs a table.")
    assert after.step(3).brief == "Step 3 needs a table."
    again = updated(plan, PlanUpdateType.MODIFY_STEP, "Use the mirror.")
    assert again.step(2).brief == "Use the mirror."
    assert again.step(2).status is StepStatus.PENDING


def test_removing_a_step_frees_those_that_wait_for_it(plan: TaskPlan) -> None:
    after = updated(plan, PlanUpdateType.REMOVE_STEP, "Steps 1 and 2 are not needed.")
    assert [step.id for step in after.steps] == [1, 3, 4]
    assert after.step(3).dependencies == (1,)
    assert after.step(4).condition is None
    assert updated(plan, PlanUpdateType.REMOVE_STEP, "Something is not needed.") is plan


def test_reordering_follows_dependencies_and_priority() -> None:
    plan = parse_plan_from_markdown("1. a (after 2)\n2. b\n3. c (priority 5)\n")
    after = updated(plan, PlanUpdateType.REORDER_STEPS, "")
    assert [step.id for step in after.steps] == [3, 2, 1]
    assert after.steps == reorder_steps(plan).steps
    assert after.update_history[-1].update_type is PlanUpdateType.REORDER_STEPS
    assert updated(after, PlanUpdateType.REORDER_STEPS, "") is after


@pytest.mark.parametrize("kind", [None, PlanUpdateType.MODIFY_PLAN])
def test_without_a_document_there_may_be_nothing_to_do(
    plan: TaskPlan, kind: PlanUpdateType | None
) -> None:
    assert updated(plan, kind, "Do better.") is plan


@pytest.mark.parametrize("kind", list(PlanUpdateType))
def test_a_plan_that_must_not_change_does_not(plan: TaskPlan, kind: PlanUpdateType) -> None:
    fixed = plan.replace(allow_dynamic_update=False)
    feedback = Feedback("Step 3: do more.", kind, "- [ ] 9. New\n")
    assert update_plan_dynamically(fixed, feedback, at=NOON) is fixed


@pytest.mark.parametrize("kind", list(PlanUpdateType))
def test_an_empty_suggestion_changes_nothing(plan: TaskPlan, kind: PlanUpdateType) -> None:
    assert updated(plan, kind, "  ") is plan or kind is PlanUpdateType.REORDER_STEPS


def test_a_suggestion_becomes_a_step(plan: TaskPlan) -> None:
    step = create_step_from_feedback(plan, "Check again @b @c (after 1, 99; if 2 failed)\n\nTwice.")
    assert step == PlanStep(
        id=5,
        description="Check again",
        brief="Twice.",
        assigned_to="b",
        joined_by=("c",),
        dependencies=(1,),
        condition=Condition(step=2, outcome="failed"),
    )


def test_the_step_to_modify_is_the_named_then_the_failed_then_the_open_one(plan: TaskPlan) -> None:
    def chosen(made: TaskPlan, suggestion: str) -> int | None:
        step = modify_existing_step(made, suggestion)
        return step and step.id

    mended = plan.with_steps(plan.step(2).replace(status=StepStatus.COMPLETED))
    done = plan.replace(steps=plan.steps[:1])
    assert chosen(plan, "Steps 1 and 4 are thin.") == 4
    assert chosen(plan, "It is thin.") == 2
    assert chosen(mended, "It is thin.") == 3
    assert chosen(done, "It is thin.") is None

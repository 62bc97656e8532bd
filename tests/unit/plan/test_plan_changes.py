"""How a plan is revised: comparing, applying, refusing, merging, replaying."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue, ValidationError

from replan.errors import PlanChangeError, UnknownStepError
from replan.plan import (
    Addition,
    PlanChanges,
    PlanDocument,
    PlanStep,
    PlanUpdateType,
    StepStatus,
    TaskPlan,
    apply,
    apply_valid,
    as_new_plan,
    compare,
    excerpt,
    made_progress,
    merge_revision,
    parse_plan_from_markdown,
    with_statuses,
)

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 8, 1, 13, tzinfo=UTC)

TEXT = """\
# EV policy

- [x] 1. Find the EU's policy @researcher

  > Found.

- [!] 2. Find the US's policy @researcher (retries 1)

  > **Failed:** The site was down.

- [ ] 3. Compare both @analyst (after 1, 2)
- [ ] 4. Write a brief @writer (after 3)
"""


@pytest.fixture
def plan() -> TaskPlan:
    return parse_plan_from_markdown(TEXT)


def added(*steps: PlanStep, index: int = 0) -> PlanChanges:
    return PlanChanges(added=tuple(Addition(index=index, step=step) for step in steps))


def modified(step_id: int, **fields: JsonValue) -> PlanChanges:
    return PlanChanges(modified={step_id: fields})


def refusals(
    plan: TaskPlan, changes: PlanChanges, team: tuple[str, ...] | None = None
) -> list[str]:
    with pytest.raises(PlanChangeError) as caught:
        apply(plan, changes, at=NOON, team=team)
    return [refusal.code for refusal in caught.value.refusals]


def revised(text: str, known: TaskPlan) -> TaskPlan:
    return merge_revision(known, PlanDocument.parse(text, known=known.by_id.keys()).plan)[0]


def test_an_applied_change_is_a_new_version_with_a_history(plan: TaskPlan) -> None:
    step = PlanStep(id=5, description="Send it", dependencies=(4,))
    after = apply(plan, added(step, index=4), at=NOON, by="person", description="Forgot.")
    assert (after.version, after.updated_at, after.total_steps) == (2, NOON, 5)
    assert after.step(5) == step.replace(created_at=NOON)
    update = after.update_history[-1]
    assert update.update_type is PlanUpdateType.ADD_STEP
    assert (update.version, update.by, update.description) == (2, "person", "Forgot.")
    assert update.changes["added"] == [
        {
            "index": 4,
            "step": {
                "id": 5,
                "description": "Send it",
                "dependencies": [4],
                "created_at": "2026-08-01T12:00:00Z",
            },
        }
    ]
    assert after.content == TEXT + "- [ ] 5. Send it (after 4)\n"
    assert plan == parse_plan_from_markdown(TEXT)


def test_a_failed_step_that_is_changed_is_tried_again(plan: TaskPlan) -> None:
    tired = with_statuses(plan, [plan.step(2).replace(retry_count=2, actual_duration=3.0)], NOON)
    after = apply(tired, modified(2, brief="Use the mirror."), at=LATER)
    step = after.step(2)
    assert step.status is StepStatus.PENDING
    assert (step.feedback, step.retry_count, step.actual_duration) == ("", 0, None)
    assert step.updated_at == LATER
    assert "- [ ] 2. Find the US's policy" in after.content
    assert "site was down" not in after.content


def test_a_model_cannot_add_a_finished_step_but_a_person_can(plan: TaskPlan) -> None:
    step = PlanStep(id=5, description="x", status=StepStatus.COMPLETED, result="Trust me.")
    change = added(step)
    assert apply(plan, change, at=NOON).step(5).status is StepStatus.PENDING
    assert apply(plan, change, at=NOON).step(5).result == ""
    assert apply(plan, change, at=NOON, by="person").step(5).status is StepStatus.COMPLETED


def test_every_refusal_has_its_code(plan: TaskPlan) -> None:
    def codes(**changes: object) -> list[str]:
        return refusals(plan, PlanChanges.model_validate(changes))

    assert codes(removed=[1]) == ["finished_step"]
    assert codes(modified={1: {"brief": "x"}}) == ["finished_step"]
    assert codes(removed=[9]) == ["unknown_step"]
    assert codes(modified={9: {}}) == ["unknown_step"]
    assert codes(reordered=[9, 1, 1]) == ["duplicate_step", "unknown_step"]
    assert codes(removed=[3]) == ["unknown_dependency"]
    assert codes(modified={3: {"dependencies": [9]}}) == ["unknown_dependency"]
    assert codes(modified={3: {"dependencies": [3]}}) == ["self_dependency"]
    assert codes(modified={3: {"dependencies": [4]}}) == ["cycle"]
    assert refusals(plan, added(PlanStep(id=4, description="x"))) == ["duplicate_step"]
    assert refusals(plan, modified(3, assigned_to="bob"), ("analyst",)) == ["unknown_specialist"]
    fixed = plan.replace(allow_dynamic_update=False)
    assert refusals(fixed, PlanChanges(title="x", removed=(3, 4))) == ["not_allowed"]


def test_all_refusals_come_at_once_and_tell_the_mend(plan: TaskPlan) -> None:
    with pytest.raises(PlanChangeError) as caught:
        apply(plan, PlanChanges(removed=(1, 9)), at=NOON)
    assert [refusal.reason for refusal in caught.value.refusals] == [
        "Step 1 is completed and cannot change. Add a new step; the next free number is 5.",
        "This plan has no step 9. Use one of: 1, 2, 3, 4.",
    ]


def test_a_number_is_never_given_twice_even_after_a_removal(plan: TaskPlan) -> None:
    again = added(PlanStep(id=4, description="Another"), index=3)
    assert refusals(plan, again.replace(removed=(4,))) == ["duplicate_step"]


def test_the_valid_part_of_a_revision_is_applied(plan: TaskPlan) -> None:
    new = [
        PlanStep(id=5, description="Send", assigned_to="bob"),
        PlanStep(id=6, description="Print", assigned_to="writer"),
    ]
    changes = added(*new, index=9).replace(
        removed=(1, 2),
        modified={
            3: {"brief": "Look well.", "dependencies": [9]},
            4: {"description": "Write a page", "assigned_to": "bob"},
        },
    )
    after, refused = apply_valid(plan, changes, at=NOON, team=("researcher", "analyst", "writer"))
    assert [(refusal.code, refusal.step_id) for refusal in refused] == [
        *(("finished_step", 1), ("unknown_specialist", 5), ("unknown_specialist", 4)),
        *(("unknown_dependency", 3), ("unknown_dependency", 3)),
    ]
    assert [step.id for step in after.steps] == [1, 2, 3, 4, 6]
    # Nothing of a change is taken of which a part cannot be.
    assert after.steps[:4] == plan.steps


def test_two_steps_with_one_number_are_refused(plan: TaskPlan) -> None:
    twice = added(*(PlanStep(id=7, description=name) for name in ("A", "B")))
    after, refused = apply_valid(plan, twice.replace(reordered=(7,)), at=NOON)
    assert [refusal.code for refusal in refused] == ["duplicate_step"]
    assert after is plan


def test_steps_are_matched_by_number_then_by_title(plan: TaskPlan) -> None:
    new = parse_plan_from_markdown(
        "# EV policy\n\n- [ ] 1. Find the EU's policy @researcher\n"
        "- [ ] 2. Find a US rule (retries 1)\n"
        "- [ ] 7. **compare  BOTH** @analyst (after 1, 2)\n- [ ] 8. Print it (after 7)\n"
    )
    changes = compare(plan, new)
    step = PlanStep(id=8, description="Print it", dependencies=(3,))
    assert changes == added(step, index=3).replace(
        removed=(4,),
        modified={
            2: {"description": "Find a US rule", "assigned_to": ""},
            3: {"description": "compare  BOTH"},
        },
    )


def test_changes_survive_json(plan: TaskPlan) -> None:
    text = "# New\n\n- [-] 3. Compare both\n- [ ] 4. Write more\n- [ ] Send it (if 4 failed)\n"
    changes = compare(plan, revised(text, plan))
    assert changes.record.keys() >= {"added", "removed", "title"}
    assert PlanChanges.model_validate(changes.record) == changes
    assert PlanChanges.model_validate_json(changes.model_dump_json()) == changes


@pytest.mark.parametrize(
    "fields", [{"status": "completed"}, {"id": 3}, {"colour": "blue"}, {"timeout": -1}]
)
def test_a_modification_has_only_fields_and_values_that_fit(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PlanChanges.model_validate({"modified": {3: fields}})


def test_a_finished_step_under_another_title_is_refused_not_overwritten(plan: TaskPlan) -> None:
    new = revised("- [ ] 1. Something new\n- [ ] 3. Compare both @analyst (after 1)\n", plan)
    with pytest.raises(PlanChangeError) as caught:
        apply(plan, compare(plan, new), at=NOON)
    assert [refusal.code for refusal in caught.value.refusals] == ["finished_step"]


def test_steps_without_numbers_are_found_by_their_titles(plan: TaskPlan) -> None:
    new = revised("- [ ] Compare both @analyst (after 1, 2)\n- [ ] Print it\n- [ ] 2. x\n", plan)
    assert [step.id for step in new.steps] == [1, 3, 4, 6, 2]


def test_a_first_plan_starts_fresh_whatever_its_marks_say(plan: TaskPlan) -> None:
    fresh = as_new_plan(plan, NOON)
    assert {step.status for step in fresh.steps} == {StepStatus.PENDING}
    assert {step.result + step.feedback for step in fresh.steps} == {""}
    assert (fresh.created_at, fresh.version) == (NOON, 1)
    assert "[x]" not in fresh.content
    assert "Found." not in fresh.content


def test_an_outcome_is_written_into_plan_and_document(plan: TaskPlan) -> None:
    ended = plan.step(3).replace(
        status=StepStatus.COMPLETED, result=excerpt("word " * 999), actual_duration=2.5
    )
    after = with_statuses(plan, [ended], NOON)
    step = after.step(3)
    assert step.status is StepStatus.COMPLETED
    assert len(step.result) <= 600
    assert step.result.endswith("word…")
    assert (step.actual_duration, step.updated_at) == (2.5, NOON)
    assert after.completed_steps == (1, 3)
    assert after.version == plan.version
    assert PlanDocument.parse(after.content).plan.step(3).result == step.result
    ended = plan.step(3).replace(status=StepStatus.FAILED, feedback="No.")
    failed = with_statuses(plan, [ended], NOON)
    assert (failed.step(3).status, failed.step(3).feedback) == (StepStatus.FAILED, "No.")
    assert "[!] 3." in failed.content


def test_an_outcome_of_an_unknown_step_is_an_error(plan: TaskPlan) -> None:
    with pytest.raises(UnknownStepError):
        with_statuses(plan, [PlanStep(id=9, description="x")], NOON)


def test_an_excerpt_is_cut_at_a_blank_and_shows_it() -> None:
    assert excerpt("  short ") == "short"
    assert excerpt("one two three", 9) == "one two…"
    assert excerpt("x" * 20, 10) == "x" * 9 + "…"


def test_progress_is_a_step_that_finished(plan: TaskPlan) -> None:
    done = plan.with_steps(plan.step(3).replace(status=StepStatus.COMPLETED))
    skipped = plan.with_steps(plan.step(4).replace(status=StepStatus.SKIPPED))
    failed = plan.with_steps(plan.step(4).replace(status=StepStatus.FAILED))
    assert made_progress(plan, done)
    assert made_progress(plan, skipped)
    assert not made_progress(plan, failed)
    assert not made_progress(done, done)

"""What a person may change in a plan that waits, and what the gate does without one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from replan import (
    InputError,
    PlanDocument,
    PlanDocumentError,
    StepStatus,
)
from replan.nodes.host.approvals import approval_of, changed_by_person
from replan.state.team import SpecialistCard

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEAM = [SpecialistCard(name=name, intended_use="Works.") for name in ("a", "b")]
DOCUMENT = """\
# Job

- [x] 1. One @a

  > done

- [!] 2. Two @a (after 1)
- [ ] 3. Three @b
- [ ] 4. Four @b (after 2, 3)
"""
PLAN = PlanDocument.parse(DOCUMENT).plan.replace(version=3)


def changed(text, plan=PLAN):
    return changed_by_person(plan, text, TEAM, NOON)


def statuses(plan):
    return [step.status.value for step in plan.steps]


def test_the_marks_of_a_person_count_for_what_is_not_finished():
    text = DOCUMENT.replace("[!] 2", "[ ] 2").replace(
        "- [ ] 3. Three @b\n", "- [x] 3. Three @b\n\n  > by hand\n\n"
    )
    plan = changed(text.replace("[ ] 4", "[-] 4"))
    assert statuses(plan) == ["completed", "pending", "completed", "skipped"]
    assert plan.step(3).result == "by hand"
    assert plan.step(2).feedback == ""
    assert plan.version == 3
    assert PlanDocument.parse(plan.content).plan.steps[2].result == "by hand"


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        (" \n", InputError, "The changed plan is missing"),
        ("Nothing to do here.\n", PlanDocumentError, "line"),
        (DOCUMENT.replace("[x] 1", "[ ] 1"), InputError, "^line 3: Step 1 is completed and cannot"),
        (DOCUMENT.replace("1. One", "1. Once"), InputError, "^line 3: Step 1 is completed"),
        (
            DOCUMENT.replace("> done", "> or not"),
            InputError,
            "^line 3: .* its result stays",
        ),
        (
            DOCUMENT.replace("@b", "@c"),
            InputError,
            r"line 8, .* @c.*\n  line 9, .* Use one of: @a, @b",
        ),
        (DOCUMENT.replace("done", "x").replace("Three @b", "3 @c"), InputError, "line 3.*\nline 8"),
        (DOCUMENT.replace("(after 1)", "(after 4)"), PlanDocumentError, "wait for each other"),
    ],
)
def test_a_mistake_changes_nothing_and_all_mistakes_are_told(text, error, problem):
    with pytest.raises(error, match=problem):
        changed(text)


@given(st.text(max_size=200) | st.builds("- [{}] {}. {} @a\n".format, *[st.text(max_size=9)] * 3))
def test_whatever_a_person_writes_is_a_sound_plan_or_a_mistake_that_is_told(text):
    try:
        plan = changed(text)
    except (InputError, PlanDocumentError) as error:
        told = str(error)
    else:
        told = "a plan"
        assert PlanDocument.parse(plan.content).plan.steps
        assert plan.step(1).status is StepStatus.COMPLETED
    assert told


def test_a_revision_is_shown_as_a_difference_and_a_first_plan_is_not():
    after = changed(DOCUMENT.replace("Two", "Second"))
    shown = approval_of(after, 2, before=PLAN, reason="It failed.")
    assert "-- [!] 2. Two @a (after 1)\n+- [ ] 2. Second @a (after 1)" in shown.details["changes"]
    assert (shown.details["version"], shown.details["reason"]) == (4, "It failed.")
    assert shown.text == after.content
    assert (shown.key, approval_of(after, 3).fingerprint == shown.fingerprint) == (
        "plan/4/2",
        False,
    )
    assert approval_of(after, 2).details["changes"] == ""

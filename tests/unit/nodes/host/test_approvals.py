"""What a person may change in a plan that waits, and what the gate does without one."""

from datetime import UTC, datetime

from hypothesis import given, strategies as st

from replan import (
    InputError,
    PlanDocument,
    PlanDocumentError,
    StepStatus,
)
from replan.nodes.host.approvals import changed_by_person
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

"""A person's edit of the plan in the state: its document or its steps, honoured or refused."""

import pytest
from langgraph.errors import InvalidUpdateError

from replan.plan import parse_plan_from_markdown
from replan.state.person.plan_edits import edited_plan
from replan.state.team import SpecialistCard

TEAM = [SpecialistCard(name=name, intended_use="Works.") for name in ("a", "b")]
TEXT = """\
# Job

- [x] 1. Total the revenue @a

  > 7 million.

- [!] 2. Total the refunds @a (after 1)

  > **Failed:** no file

- [ ] 3. Compare both @b (after 1, 2)
"""


def plan_of(text=TEXT):
    """The plan of a run: with more in its steps than a document shows."""
    plan = parse_plan_from_markdown(text)
    steps = [step.replace(actual_duration=1.5, retry_count=2) for step in plan.steps]
    return plan.replace(steps=steps, version=4, current_step=2)


def after(edit, before=None):
    return edited_plan(before or plan_of(), edit, TEAM)


def refused(edit, before=None):
    with pytest.raises(InvalidUpdateError) as caught:
        after(edit, before)
    return str(caught.value)


def whole(text):
    """What Studio sends back: the plan that it was shown, with another document."""
    return {**plan_of().model_dump(mode="json"), "content": text}


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ({"steps": [{"id": 1, "description": "X", "assigned_to": "nobody"}]}, "@nobody"),
        ({"steps": [{"id": 1, "description": "X", "dependencies": [7]}]}, "step 7"),
        ({"steps": [{"id": 1, "description": "X"}] * 2}, "step 1"),
        ({"title": "Alone"}, "has no steps"),
        ({"steps": [{"id": 1, "description": "X"}], "content": "- [ ] 1. Y\n"}, "different things"),
        ({**whole(TEXT.replace("both", "all")), "title": "Other"}, "different things"),
    ],
)
def test_steps_that_cannot_be_and_edits_that_disagree_are_refused(edit, told):
    assert told in refused(edit)


def test_a_document_is_taken_where_there_was_no_plan():
    plan = edited_plan(None, {"content": TEXT}, TEAM)
    assert plan.steps == parse_plan_from_markdown(TEXT).steps
    with pytest.raises(InvalidUpdateError, match="@nobody"):
        edited_plan(None, {"content": "- [ ] 1. X @nobody"}, TEAM)

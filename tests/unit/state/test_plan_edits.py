"""A person's edit of the plan in the state: its document or its steps, honoured or refused."""

import pytest
from hypothesis import given, strategies as st
from langgraph.errors import InvalidUpdateError

from replan import PlanStep, StepStatus, TaskPlan
from replan.plan import parse_plan_from_markdown
from replan.plan.markdown.writing import shows
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


FORMS = pytest.mark.parametrize(
    "form", [whole, lambda text: {"content": text}, lambda text: TaskPlan(content=text)]
)


@FORMS
def test_an_edited_document_is_the_plan(form):
    text = TEXT.replace("Compare both", "Add both").replace("# Job", "# Work")
    text += "- [ ] 4. Write it @b (after 3)\n"
    plan = after(form(text))
    assert [(step.id, step.description) for step in plan.steps][2:] == [
        (3, "Add both"),
        (4, "Write it"),
    ]
    assert (plan.title, plan.content, plan.version) == ("Work", text, 4)
    # What the edit did not touch is what it was, with what no document shows.
    assert plan.steps[:2] == plan_of().steps[:2]


@FORMS
def test_a_failed_step_that_is_edited_is_to_be_done_again(form):
    step = after(form(TEXT.replace("the refunds", "all refunds"))).step(2)
    assert (step.status, step.feedback, step.retry_count) == (StepStatus.PENDING, "", 0)


def test_marks_count_in_an_edited_document():
    plan = after(whole(TEXT.replace("- [ ] 3.", "- [x] 3.").replace("- [x] 1.", "- [ ] 1.")))
    assert plan.completed_steps == (3,)
    assert (plan.step(1).status, plan.step(1).result) == (StepStatus.PENDING, "")


def test_a_step_that_is_taken_out_of_the_document_is_gone():
    plan = after(whole(TEXT.replace("- [ ] 3. Compare both @b (after 1, 2)\n", "")))
    assert [step.id for step in plan.steps] == [1, 2]


@FORMS
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- [ ] 1. X @nobody", "Step 1 (line 1) names @nobody, whom the team does not have"),
        (TEXT.replace("after 1, 2", "after 9"), "line 11, column"),
        (TEXT.replace("[ ] 3.", "[?] 3."), "'[?]' is not the mark of a step"),
        (TEXT.replace("the revenue", "the units"), "line 3: step 1 is completed"),
        ("No steps at all.", "This document has no steps"),
    ],
)
def test_a_document_with_a_mistake_is_refused_with_its_place(form, text, told):
    message = refused(form(text))
    assert told in message
    assert "'current_plan'" in message


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


def test_edited_steps_are_taken_as_they_are():
    steps = [{"id": 1, "description": "One"}]
    plan = after({"title": "Edited", "steps": steps})
    assert (plan.title, plan.steps) == ("Edited", (PlanStep(id=1, description="One"),))


def test_a_document_is_taken_where_there_was_no_plan():
    plan = edited_plan(None, {"content": TEXT}, TEAM)
    assert plan.steps == parse_plan_from_markdown(TEXT).steps
    with pytest.raises(InvalidUpdateError, match="@nobody"):
        edited_plan(None, {"content": "- [ ] 1. X @nobody"}, TEAM)


LINES = st.sampled_from(
    ["- [ ] 3. Compare both @b", "- [ ] 4. New @a", "- [x] 5. Done @b", "Some text.", "# Title"]
)


@given(st.lists(st.lists(LINES, unique=True, max_size=5), max_size=4))
def test_what_is_taken_is_what_its_document_shows(edits):
    plan = plan_of()
    for lines in edits:
        try:
            plan = after({"content": "\n\n".join(lines)}, plan)
        except InvalidUpdateError:
            continue
        assert shows(plan)

"""What looks like a part of a plan and was read as text is told."""

from pathlib import Path

import pytest
import yaml

from replan.plan.markdown.overlooked import overlooked, prose_between

CASES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text("utf-8"))["overlooked"]


def kinds(text):
    return [(each.line, each.kind) for each in overlooked(text)]


def test_what_looks_like_a_part_of_a_plan_and_is_text_is_told_and_nothing_else():
    for kind, lines in CASES.items():
        told = [] if kind == "nothing" else [(2, kind)]
        for line in lines.splitlines():
            assert kinds(f"- [ ] 1. First @a\n- [ ] 2. {line}\n") == told, line


@pytest.mark.parametrize("line", ["Start once step 1 is done.", "(after 1)", "等待步骤1"])
def test_a_brief_that_waits_for_a_step_for_which_the_line_does_not_is_told(line):
    plan = f"- [ ] 1. First @a\n- [ ] 2. Second @b{{}}\n  {line}\n"
    assert (3, "dependency") in kinds(plan.format(""))
    assert kinds(plan.format(" (after 1)")) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- [ ] 1. Total @data_analyst from the table\n", [(1, "name")]),
        ("- [ ] 1. Do @a\n  - [ ] Write it @writer\n  - a detail\n", [(2, "nested_task")]),
        ("- [ ] 1. Fix @a\n\n  ```python\n  @cached\n  - [ ] no\n  ```\n", []),
        ("- [ ] 1. First\n- [ ] 2. B\n  - **Depends on:** 1\n  - Assigned to: @a\n", []),
        ("- [ ] 1. First\n- [ ] 2. B\n  - Needs: the one above\n", [(3, "dependency")]),
        ("- [ ] 1. First\n- [ ] 2. B\n\n  Waiting on output of: A\n", [(4, "dependency")]),
        ("# P\n\n## Find\n\n- [ ] 1. Do @a\n\n## Write\n\n- [ ] 2. Write @a\n", []),
        ("Hello @you (after lunch)", []),
        ("- [ ] 1.1 A @a\n- [ ] 1.2 B @b\n- [ ] 2. C\n", [(1, "number"), (2, "number")]),
        ("- [ ] 3.5 tonnes are to be packed @a\n- [ ] 2. C @a (after 2)\n", []),
    ],
)
def test_what_looks_like_something_else_is_told_where_it_is(text, told):
    assert kinds(text) == told


def test_what_is_told_has_its_line_its_step_and_what_it_looks_like():
    (found,) = overlooked("- [ ] 1. A\n- [ ] 7. Total @data_analyst from the table\n")
    assert (found.step, found.text) == (7, "@data_analyst")
    assert "line 2: '@data_analyst' looks like a specialist and was read as text" in str(found)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("Then compare both", "Then"),
        ("Finally, write the report", "Finally"),
        ("Next, compare", "Next,"),
        ("然后比较两者", "然后"),
    ],
)
def test_a_step_that_begins_with_an_order_and_waits_for_nothing_is_told(line, word):
    (found,) = overlooked(f"- [ ] 1. First @a\n- [ ] 2. {line} @b\n")
    assert (found.line, found.kind, found.text) == (2, "dependency", word)
    assert overlooked(f"- [ ] 1. {line} @a\n- [ ] 2. {line} @b (after 1)\n") == ()


def test_a_paragraph_between_steps_is_text_of_the_document_and_can_be_told():
    text = (
        "Here it is.\n\n- [ ] 1. A @a\n\nMind the cost,\nall of it.\n\n- [ ] 2. B @a\n\n"
        "## Later\n\n<!--\nnot this\n-->\n- [ ] 3. C @a\n\nThat is all.\n"
    )
    assert overlooked(text) == ()
    (found,) = prose_between(text)
    assert (found.line, found.kind, found.step, found.text) == (5, "prose", 1, "Mind the cost,")
    assert "is in no step, so nobody is given it" in str(found)

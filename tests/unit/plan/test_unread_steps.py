"""Lines that were meant as steps and cannot be read as steps: each one is a mistake."""

import pytest

from replan import PlanDocumentError
from replan.plan.markdown.document import PlanDocument, refresh_content
from replan.plan.model import StepStatus

LOST = [
    "- [x 2. B @clerk",
    "- [ 2. B",
    "- [ ]2. B",
    "- [x]2. B @clerk",
    "- [x|2. B",
    "- [x B",
    "- [ ]B",
    "- [xx] 2. B",
    "- [done] 2. B",
    "- [2] B",
    "- [12] B",
    "- x] 2. B",
    "- \\[ ] 2. B",
    "- \\[ \\] 2. B",
    "- 【 】 2．B",
    "- ［x］ 2、B",
    "- ( ) 2. B",
    "- （x） 2. B",
    "- {x} 2. B",
    "- ☐ 2. B",
    "- 2 [ ] B @x",
    "- 2 [x B",
    "-\t[ ]2. B",
    "-[ ] 2. B",
    "-[x]2.B",
    "[ ] 2. B",
    "[x]2. B @clerk",
    "• [ ] 2. B",
    "– [x] 2. B",
    "* [ 2. B",
    "+ [x 2. B",
    "2. B",
    "2) B @clerk",
    "2. [x B",
    "- 2. B",
    "- 2 B @clerk",
    "- (2) B @clerk",
    "- B @clerk",
    "[ 2. B",
    "[x 2. B @clerk",
    " 1)",
    "3.",
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("line", LOST)
def test_a_line_between_steps_that_is_no_step_is_a_mistake_at_its_place(line, end):
    apart = [f"- [ ] 1. A{end}", f"{line}{end}", f"- [ ] 3. C{end}"]
    for text in ("".join(apart), end.join(apart)):
        with pytest.raises(PlanDocumentError) as refused:
            PlanDocument.parse(text)
        (mistake,) = refused.value.mistakes
        assert mistake.code in ("unread_step", "bad_mark")
        assert text.splitlines()[mistake.line - 1] == line
        assert 1 <= mistake.column <= len(line)
        assert "- [" in mistake.fix or "[ ] pending" in mistake.fix
        document = PlanDocument.recover(text)
        assert document.text == text
        assert document.plan.step(1).brief == "" or line.startswith(("-[", "[", "•", "–", "2"))


@pytest.mark.parametrize("line", [line for line in LOST if "2." in line and line[0] in "-*+"])
def test_such_a_line_before_the_first_step_or_after_the_last_one_is_a_mistake_too(line):
    for text in (f"{line}\n- [ ] 1. A\n", f"- [ ] 1. A\n\n{line}\n"):
        assert [each.code for each in PlanDocument.recover(text).mistakes] == ["unread_step"]


def test_the_fix_is_the_line_as_a_step():
    (mistake,) = PlanDocument.recover(
        "- [ ] 1. A\n  - [x 2. B @clerk (after 1)\n- [x 2. B @c\n"
    ).mistakes
    assert (mistake.line, mistake.column) == (3, 3)
    assert mistake.reason == "'- [x 2. B @c' looks like a step and cannot be read as one."
    assert mistake.fix.startswith("Write it like this: - [x] 2. B @c; or indent it")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- Phase\n  - [ ] 1. A\n  - [x 2. B @clerk\n", 3),
        ("- Phase\n  - [ ] 1. A\n- [x 2. B\n", 3),
        ("- Group\n  - [ ] 1. A\n- [ ] 2. B\n", 2),
        ("# P\n\n## One\n\n- [ ] 1. A\n\n## Two\n\n- [x 2. B\n", 9),
        ("```markdown\n- [ ] 1. A\n- [x 2. B\n```\n", 3),
        ("1. [ ] A @a\n2. [x B @a\n3. [ ]C @a\n", 3),
    ],
)
def test_a_lost_step_is_found_in_lists_in_lists_in_sections_and_in_a_fenced_plan(text, line):
    assert line in [each.line for each in PlanDocument.recover(text).mistakes]


@pytest.mark.parametrize(
    "text",
    [
        "- [ ] 1. A\n  - [x 2. B @clerk\n  2. part @clerk\n    - [ ]3. C\n- [ ] 2. B\n",
        "# T\n\n- [Report 2](x)\n- ask @clerk\n\n1. one @clerk\n\nSo:\n\n- [ ] 1. A\n",
        "- [ ] 1. A\n\n## Notes\n\n- 2. Ask @clerk\n- [1] a source\n1. x @clerk\n- ( ) 4. no\n",
        "- [ ] 1. A\n- [Report 2](x)\n- [2. Report](x)\n- [2][r]\n- [x](y) 3. z\n- [ ] 2. B\n",
        "- [1. Intro](#a)\n- [2. Plan](#b)\n\n# Plan\n\n- [ ] 1. A\n",
        "- [ ] 1. A\n<!--\n- [x 2. B\n-->\n- [ ] 2. B\n",
        "- [ ] 1. A\n\n```\n- [x 2. B @clerk\n```\n",
        "- [ ] 1. A\n\n> - [x 2. B @clerk\n",
        "- [ ] 1. A\n- [ ] 2. B\n\nNotes, see [1].\n\n1. cheap\n2. fast @clerk\n",
        "- [ ] 1. A\n- Mind this: two of them\n- [ ] 2. B\n",
        "- [ ] 1. A\n\n1. cheap\n2. small\n\n- [ ] 2. B\n- [ ] 3. C\n",
        "- [ ] 1. A\n\n---\n\n- [] 2. B\n",
    ],
)
def test_details_links_code_quotes_and_lists_of_other_sections_stay_text(text):
    assert PlanDocument.parse(text).text == text


def test_a_mistake_of_this_kind_hides_no_other_one():
    text = "- [ ] 1. A (after 2)\n- [x 5. E\n- [ ] 2. B (after 1)\n- [ ] 3. C (after 9)\n"
    codes = {each.code for each in PlanDocument.recover(text).mistakes}
    assert codes >= {"unread_step", "cycle", "unknown_dependency"}


def test_a_plan_that_was_recovered_is_written_without_mistakes():
    plan = PlanDocument.recover("- [ ] 1. A\n- [x 2. B\n- [ ] 3. C\n").plan
    done = plan.step(1).replace(status=StepStatus.COMPLETED)
    text = refresh_content(plan.with_steps(done)).content
    assert [step.id for step in PlanDocument.parse(text).plan.steps] == [1, 3]

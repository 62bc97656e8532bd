"""Lines that were meant as steps and cannot be read as steps: each one is a mistake."""

from pathlib import Path

import pytest
import yaml

from replan import PlanDocumentError
from replan.plan.markdown.document import PlanDocument, refresh_content
from replan.plan.model import StepStatus

CASES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text("utf-8"))
LOST = CASES["lost_steps"].splitlines()


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


def test_details_links_code_quotes_and_lists_of_other_sections_stay_text():
    for text in CASES["no_lost_steps"]:
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

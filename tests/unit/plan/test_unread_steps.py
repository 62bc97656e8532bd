"""Lines that were meant as steps and cannot be read as steps: each one is a mistake."""

from pathlib import Path

import pytest

from cases import read_page
from replan import PlanDocumentError
from replan.plan.markdown.document import PlanDocument, refresh_content
from replan.plan.model import StepStatus

CASES = read_page(Path(__file__).with_name("mistakes.yaml"))
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


def test_details_links_code_quotes_and_lists_of_other_sections_stay_text():
    for text in CASES["no_lost_steps"]:
        assert PlanDocument.parse(text).text == text


def test_a_plan_that_was_recovered_is_written_without_mistakes():
    plan = PlanDocument.recover("- [ ] 1. A\n- [x 2. B\n- [ ] 3. C\n").plan
    done = plan.step(1).replace(status=StepStatus.COMPLETED)
    text = refresh_content(plan.with_steps(done)).content
    assert [step.id for step in PlanDocument.parse(text).plan.steps] == [1, 3]

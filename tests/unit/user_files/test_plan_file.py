"""`--plan-out`: the document on disk is whole at every moment and holds what is finished."""

import pytest
from langchain_core.messages import AIMessage

from replan.cli.user_files.plan_file import PlanFile
from replan.errors import InputError, ReplanError
from replan.events import PlanCreated, PlanUpdated, SpecialistCompleted
from replan.plan import PlanDocument
from replan.state.results import ExecutionStatus, SpecialistResult

RUN = {"seq": 1, "run_id": "r", "round": 1}
TEXT = """\
<!-- mine -->\r
# Two steps\r
\r
* [ ] 1) First   @a @b\r
* [ ] 2) Second  @a\r
\r
## Notes\r
kept as they are"""


def created(text=TEXT):
    plan = PlanDocument.parse(text).plan
    return PlanCreated(**RUN, plan=plan, markdown=plan.content)


def done(step_id, specialist, text="Done.", status=ExecutionStatus.SUCCESS):
    result = SpecialistResult(
        step_id=step_id,
        specialist_name=specialist,
        status=status,
        result=AIMessage(text),
        round=1,
        error="" if status is ExecutionStatus.SUCCESS else text,
    )
    return SpecialistCompleted(**RUN, step_id=step_id, specialist=specialist, result=result)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plan.md"


def test_a_new_plan_is_written_byte_for_byte(path):
    file = PlanFile(path)
    file.follow(created())
    assert path.read_bytes() == TEXT.encode()
    assert [each.name for each in path.parent.iterdir()] == ["plan.md"]


def test_what_ended_after_the_newest_plan_is_written_too(path):
    file = PlanFile(path)
    for event in (created(), done(2, "a", "Two.")):
        file.follow(event)
    file.write()
    text, seal = path.read_bytes().decode().split("\r\n<!-- replan: ")
    assert seal.startswith("2=")
    assert "* [x] 2) Second  @a\r\n\r\n  > Two.\r\n" in text
    assert text.replace("* [x] 2) Second  @a\r\n\r\n  > Two.", "* [ ] 2) Second  @a") == TEXT


def test_a_step_is_marked_when_all_of_its_specialists_have_ended(path):
    file = PlanFile(path)
    for event in (created(), done(1, "A")):
        file.follow(event)
    file.write()
    assert path.read_bytes() == TEXT.encode()
    file.follow(done(1, "b", "No.", ExecutionStatus.FAILED))
    file.write()
    assert "* [x] 1) First   @a @b" in path.read_text()


def test_a_failure_that_a_revision_takes_back_is_not_written_again(path):
    file = PlanFile(path)
    plan = created().plan
    for event in (
        created(),
        done(2, "a", "No.", ExecutionStatus.FAILED),
        PlanUpdated(**RUN, plan=plan, markdown=plan.content, changes={"modified": []}),
    ):
        file.follow(event)
    file.write()
    assert "[ ] 2)" in path.read_text()


def test_a_link_stays_a_link_and_its_file_keeps_its_permissions(path, tmp_path):
    target = tmp_path / "real.md"
    target.write_text("old")
    target.chmod(0o640)
    path.symlink_to(target)
    PlanFile(path).follow(created())
    assert path.is_symlink()
    assert target.read_bytes() == TEXT.encode()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_is_not_there_is_refused_before_the_run(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        PlanFile(tmp_path / "gone" / "plan.md")


def test_a_file_that_cannot_be_written_is_an_error_with_its_reason(tmp_path):
    folder = tmp_path / "plan.md"
    folder.mkdir()
    with pytest.raises(ReplanError, match="cannot be written"):
        PlanFile(folder).follow(created())
    assert [each.name for each in tmp_path.iterdir()] == ["plan.md"]

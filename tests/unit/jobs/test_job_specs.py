"""What is wrong with a spec is told at once, in Python and in a file, with the fix."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from replan.cli.main import app
from replan.errors import JobFileError, JobSpecError
from replan.jobs.spec.job_file import read_job_file
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

ROOT = Path(__file__).parents[3]
BROKEN = Path(__file__).with_name("broken_job.yaml").read_text("utf-8")


def test_a_file_tells_all_its_mistakes_with_line_column_and_fix(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(BROKEN, "utf-8")
    with pytest.raises(JobFileError) as told:
        read_job_file(path)
    found = {(each.line, each.field, each.code) for each in told.value.mistakes}
    assert found == {
        (5, "slots[0].question", "no_text"),
        (6, "slots[0].depends_on", "cycle"),
        (9, "slots[1].depends_on", "cycle"),
        (10, "slots[1].check", "no_module"),
        (11, "slots[1].colour", "unknown_field"),
        (15, "slots[2].choices", "unused_field"),
        (16, "slots[2].pattern", "unused_field"),
        (19, "commands[0].needs[0]", "unknown_slot"),
        (20, "commands[0].action", "unknown_action"),
        (21, "commands[1].action", "missing"),
        (26, "commands[2].each", "no_list"),
        (27, "commands[2].parameters", "missing_parameter"),
        (27, "commands[2].parameters.endpoint", "unknown_slot"),
        (29, "actions[0]", "no_function"),
    }
    assert "Did you mean origin?" in str(told.value)
    assert "origin -> destination -> origin" in str(told.value)


def test_python_tells_the_same():
    with pytest.raises(JobSpecError) as told:
        JobSpec(
            "travel",
            slots=[Slot("a", question="A?", check=3), Slot("A b", question="")],
            commands=[JobCommand("go", needs=["b"], action="ask_user")],
        )
    fields = {each.field for each in told.value.mistakes}
    assert fields >= {"slots[0].check", "slots[1].name", "slots[1].question"}
    assert fields >= {"commands[0].needs[0]", "commands[0].parameters"}


def test_the_travel_job_is_read_and_its_functions_are_those_of_its_folder(tmp_path):
    spec = read_job_file(ROOT / "examples/jobs/travel.yaml")
    assert spec.dependents_of("origin") == {"destination"}
    assert spec.max_turns > 10
    (tmp_path / "trip_checks.py").write_text("def fits(value):\n    return value != 'x'\n")
    text = "name: t\nslots: [{name: a, question: A, check: 'trip_checks:fits'}]\n"
    path = tmp_path / "job.yaml"
    path.write_text(
        text + "commands: [{name: go, needs: [a], action: ask_user, parameters: {question: ok}}]\n"
    )
    slot = read_job_file(path).slot("a")
    assert slot.issue("x", {}, "en").code == "check_failed"
    assert slot.issue("y", {}, "en") is None


def test_a_job_is_checked_at_the_terminal(tmp_path):
    travel = str(ROOT / "examples/jobs/travel.yaml")
    spec = read_job_file(Path(travel))
    good = CliRunner().invoke(app, ["check", "--job", travel])
    assert (good.exit_code, f"at most {spec.max_turns} turns" in good.output) == (0, True)
    assert "book: needs origin, destination, date, travellers; takes cabin" in good.output
    told = json.loads(CliRunner().invoke(app, ["check", "--job", travel, "--json"]).output)
    assert (told["mistakes"], told["max_turns"]) == ([], spec.max_turns)
    path = tmp_path / "job.yaml"
    path.write_text(BROKEN, "utf-8")
    bad = CliRunner().invoke(app, ["check", "--job", str(path), "--json"])
    assert (bad.exit_code, len(json.loads(bad.output)["mistakes"])) == (2, 14)
    assert CliRunner().invoke(app, ["check", "--job", str(path)]).exit_code == 2
    assert CliRunner().invoke(app, ["check"]).exit_code == 2
    assert CliRunner().invoke(app, ["check", travel, "--job", travel]).exit_code == 2


def test_a_check_is_not_asynchronous():
    async def check(value):
        return True

    with pytest.raises(JobSpecError, match="check: a check is not asynchronous"):
        JobSpec(
            "t",
            slots=[Slot("a", question="A?", check=check)],
            commands=[
                JobCommand("go", needs=["a"], action="ask_user", parameters={"question": "?"}),
            ],
        )

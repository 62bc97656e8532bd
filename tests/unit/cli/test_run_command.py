"""`replan run` from the shell's side: what it prints and how it exits."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import warm
from replan.cli.main import app
from terminals import REPLAN


@pytest.fixture
def folder(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "trips.csv").write_text("city,km\nRome,3\nOslo,5\nRome,4\n")
    return directory


@pytest.fixture
def replan(folder, monkeypatch):
    for name in ("REPLAN_MODEL", "REPLAN_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        return CliRunner().invoke(app, ["run", "--dir", str(folder), *map(str, arguments)])

    return run


@pytest.mark.parametrize("quiet", [[], ["--quiet"], ["--json"]])
def test_tracing_by_the_shell_is_told(replan, monkeypatch, quiet):
    # LangSmith reads small letters only, so nothing is sent here.
    monkeypatch.setenv("LANGCHAIN_TRACING_V2", "TRUE")
    monkeypatch.setenv("LANGCHAIN_ENDPOINT", "http://user:hunter2hunter2@127.0.0.1:9")
    result = replan("Total km by city from trips.csv", *quiet)
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == (
        "tracing is on (LANGCHAIN_TRACING_V2): prompts, results and answers go to "
        "http://***@127.0.0.1:9; LANGCHAIN_TRACING_V2=false turns it off"
    )


def test_a_plan_is_carried_out_from_its_marks_and_written_where_asked(replan, tmp_path):
    plan, out = tmp_path / "plan.md", tmp_path / "out.md"
    text = (
        "<!-- mine -->\r\n# Trips\r\n\r\n* [x] 1) Ask @data_analyst\r\n\r\n  > Asked.\r\n\r\n"
        "* [ ] 2) Total km by city from trips.csv   @data_analyst\r\n\r\n## Notes\r\nkept"
    )
    plan.write_bytes(text.encode())
    result = replan(plan, "--plan-out", out)
    assert result.exit_code == 0, result.output
    assert "-> step 1" not in result.stdout
    written, seal = out.read_bytes().decode().split("\r\n<!-- replan: ")
    assert re.fullmatch(r"1=[0-9a-f]{8} 2=[0-9a-f]{8} -->", seal)
    first, marked, rest = written.partition("* [x] 2) Total km by city from trips.csv   @data")
    assert marked
    assert first == text[: len(first)]
    assert rest.endswith("\r\n\r\n## Notes\r\nkept")
    assert "  > | Rome | 7 |\r\n" in rest
    assert plan.read_bytes() == text.encode()


def test_a_written_plan_can_be_edited_and_run_again_in_its_place(replan, tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_text(
        "- [ ] 1. Total km by city from trips.csv @data_analyst\n"
        "- [ ] 2. Average km by city from trips.csv @data_analyst\n"
        "- [ ] 3. Write a report @writer (after 1)\n"
    )
    arguments = (plan, "--plan-out", plan, "--out", tmp_path / "out")
    assert replan(*arguments).exit_code == 0
    text = plan.read_text()
    assert text.count("- [x]") == 3
    unedited = replan(*arguments)
    assert "-> step" not in unedited.stdout
    assert plan.read_text() == text
    plan.write_text(text.replace("Total km", "Largest km"))
    result = replan(*arguments)
    assert result.exit_code == 0, result.output
    assert "runs again: 1 (edited), 3 (after 1)\n" in result.stdout
    started = [line for line in result.stdout.splitlines() if line.startswith("-> step")]
    assert [line.split()[2] for line in started] == ["1", "3"]


def test_a_log_tells_of_events_and_not_of_their_texts(replan, tmp_path):
    log = tmp_path / "run.log"
    replan("Total miles by city from trips.csv", "--log-file", log)
    lines = log.read_text().splitlines()
    assert any("DEBUG replan.cli.shared.session: event event=run_started" in line for line in lines)
    assert any("step=1" in line and "status=failed" in line for line in lines)
    assert "outcome=failed" in lines[-1]


def test_the_model_may_come_from_the_environment(replan, monkeypatch):
    monkeypatch.setenv("REPLAN_MODEL", "openai:any")
    assert replan("x").exit_code == 2


def test_a_plan_that_is_no_text_is_wrong_use(replan, tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_bytes(b"- [ ] 1. \xff\xfe @data_analyst")
    result = replan(plan)
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_the_help_loads_no_framework():
    code = (
        "import sys; from replan.cli.main import main\n"
        "try: main()\n"
        "finally: print([n for n in ('langchain_core', 'langgraph') if n in sys.modules])"
    )
    for arguments in (["--help"], ["run", "--help"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [["run"], ["run", "--approve"]])
def test_a_run_of_nothing_is_wrong_use(words):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "Missing argument 'TASK|PLAN.md'" in result.output


def test_a_full_disk_is_one_message(folder):
    with Path("/dev/full").open("w") as full:
        words = (*REPLAN, "run", "Profile trips.csv", "--dir", folder)
        ended = warm.run(*words, stdout=full.fileno())
    assert ended.returncode == 1
    complaint = ended.stderr.splitlines()[1:]
    assert complaint == ["replan: The output cannot be written: No space left on device."]


def test_a_reader_that_goes_away_is_no_crash(folder):
    reads, writes = os.pipe()
    os.close(reads)
    ended = warm.run(*REPLAN, "run", "total km by city", "--dir", folder, stdout=writes)
    os.close(writes)
    assert "Traceback" not in ended.stderr

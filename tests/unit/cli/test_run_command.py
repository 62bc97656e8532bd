"""`replan run` from the shell's side: what it prints and how it exits."""

import json
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


def test_a_plan_that_is_no_text_is_wrong_use(replan, tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_bytes(b"- [ ] 1. \xff\xfe @data_analyst")
    result = replan(plan)
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


LOOKS = """
import json, sys
from replan.cli.main import main

for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    loaded = [name for name in sys.modules if name.startswith(("langchain", "langgraph"))]
    print(f"{words} loaded {loaded}")
"""


def test_no_help_no_check_and_no_look_at_what_is_over_loads_a_framework(tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_text("- [ ] 1. Ask @oracle\n")
    kept = ["--storage", f"{tmp_path / 'runs.db'}"]
    assert warm.run(*REPLAN, "run", "calculate 1 + 1", *kept).returncode == 0
    looks = (["show", "last", *kept], ["runs", *kept])
    words = [["--help"], ["run", "--help"], ["check", str(plan)], *looks]
    # One after the other in one process: what one of them loads is there to the end.
    command = [sys.executable, "-c", LOOKS, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if " loaded [" in line]
    assert told == [f"{each} loaded []" for each in words], done.stderr


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

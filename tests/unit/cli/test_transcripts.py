"""What is typed at a terminal, and what it answers, as the golden file of transcripts has it."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from cases import cases_of
from golden import check_golden
from replan.cli.main import app

CASES = cases_of(__file__)


def test_the_terminal_answers_as_the_golden_file_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPLAN_STORAGE", str(tmp_path / "runs.db"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, text in CASES["files"].items():
        (tmp_path / name).write_text(text, "utf-8")
    shown = {}
    for typed in CASES["typed"]:
        done = CliRunner().invoke(app, shlex.split(typed))
        told = f"{done.stdout}{done.stderr}exit code {done.exit_code}"
        told = told.replace(str(tmp_path), "FOLDER")
        shown[f"replan {typed}"] = re.sub(r"\d+\.\d s\b|run \w{8,}", "...", told)
    check_golden(Path(__file__).parent / "golden" / "transcripts.txt", shown)
    assert not [told for told in shown.values() if "Traceback" in told]

"""What `replan show` and `replan export` take, and what they refuse, on a run that is kept."""

import asyncio
import json
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cases import cases_of
from replan import Host, Specialist, Team, open_runtime
from replan.cli.main import app
from replan.errors import InputError
from replan.testing import ScriptedModel
from replan.views.paged import paged

CASES = cases_of(__file__)

AGAIN = "---\nstatus: failed\nretry: true\n---\nNot yet."
SCRIPT = {
    "step 1/writer": [AGAIN, "Written."],
    "feedback": "---\nverdict: complete\n---\nDone.",
}


@pytest.fixture
def kept(tmp_path):
    where, model = str(tmp_path / "runs.db"), ScriptedModel(SCRIPT)
    writer = Specialist("writer", "Writes.", chat_model=model, effects="pure")

    async def begin():
        async with open_runtime(Team(Host(model=model), [writer]), storage=where) as runtime:
            return await runtime.run({"plan": "- [ ] 1. Write @writer (retries 1)\n"}, run_id="abc")

    assert asyncio.run(begin()).outcome == "completed"
    return where


@pytest.fixture
def replan(kept):
    def do(*words):
        return CliRunner().invoke(app, [*words, "--storage", kept])

    return do


def test_the_result_stands_with_the_attempt_that_it_is_of(replan):
    first = replan("show", "abc", "--step", "1", "--attempt", "1").stdout
    assert "attempt 1: failed: Not yet." in first
    assert "Written." not in first
    assert "Written." in replan("show", "abc", "--step", "1", "--attempt", "2").stdout
    told = replan("show", "abc", "--step", "1", "--attempt", "1", "--json").stdout
    assert [each["number"] for each in json.loads(told)["attempts"]] == [1]
    assert json.loads(told)["results"] == []


@pytest.mark.parametrize("name", ["abc", "export"])
def test_a_step_or_an_attempt_that_is_not_there_is_refused(replan, tmp_path, name):
    if name == "export":
        name = str(tmp_path / "run.json")
        assert replan("export", "abc", "-o", name).exit_code == 0
    for words, problem in (
        (["--step", "7"], "There is no step 7 in this run. It has 1 to 1."),
        (["--step", "1", "--attempt", "3"], "Step 1 has no attempt 3. It has 1 to 2."),
    ):
        for more in ([], ["--prompts"], ["--json"]):
            done = replan("show", name, *words, *more)
            assert (done.exit_code, done.stderr.strip()) == (2, f"replan: {problem}")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--timeline", "--step", "1"), "--timeline always shows the whole run. Leave out --step"),
        (("--markdown", "--json"), "--markdown always shows the whole run. Leave out --json."),
        (("--timeline", "--markdown"), "Leave out --markdown."),
        (("--attempt", "1"), "--attempt needs a step. Name it with --step."),
    ],
)
def test_no_option_is_ignored(replan, words, problem):
    done = replan("show", "abc", *words)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_an_export_writes_over_no_file_unasked(replan, tmp_path):
    path = tmp_path / "run.json"
    path.write_text("mine")
    refused = replan("export", "abc", "-o", str(path))
    assert refused.exit_code == 2
    assert "exists already. Name another file, or overwrite it with --force." in refused.stderr
    assert path.read_text() == "mine"
    assert replan("export", "abc", "-o", str(path), "--force").exit_code == 0
    assert json.loads(path.read_text())["run"]["run_id"] == "abc"


def test_a_pager_that_is_no_command_is_told(monkeypatch):
    monkeypatch.setenv("PAGER", 'less "')
    monkeypatch.setenv("TERM", "xterm")
    window, output = Console(force_terminal=True, file=StringIO()), StringIO()
    with pytest.raises(InputError, match="PAGER=less"), paged(window, output, plain=False):
        pytest.fail("Nothing can be shown.")
    with paged(window, output, plain=True) as write:
        write("shown")
    assert output.getvalue() == "shown"


@pytest.mark.parametrize(
    "words",
    CASES["commands"],
    ids=" ".join,
)
def test_a_storage_that_is_not_there_is_named_and_not_made(tmp_path, words):
    missing = tmp_path / "mistyped.db"
    done = CliRunner().invoke(app, [*words, "--storage", str(missing)])
    assert done.exit_code == 2
    assert f"There is no storage '{missing}'" in done.stderr
    assert list(tmp_path.iterdir()) == []

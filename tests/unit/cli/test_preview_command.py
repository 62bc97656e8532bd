"""`replan run --preview`: what a run takes at worst, before it runs and instead of it."""

import json

import pytest
from typer.testing import CliRunner

from replan.cli.main import app

TEAM = """\
host: {model: "openai:any"}
specialists: [{name: writer, intended_use: Writes., chat_model: "openai:any"}]
limits: {max_rounds: 3, max_tokens: 5000}
"""


@pytest.fixture
def preview(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "team.yaml").write_text(TEAM)
    (tmp_path / "plan.md").write_text("# Two\n\n- [ ] 1. A @writer\n- [ ] 2. B @writer (after 1)\n")

    def run(*arguments):
        return CliRunner().invoke(app, ["run", *arguments, "--preview"])

    return run


def test_a_request_is_bounded_by_its_limits(preview):
    result = preview("Do it.", "--set", "max_model_calls=30", "--set", "max_cost=2.5")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1:] == [
        "model calls: at most 30",
        "rounds: at most 10, of at most 100 steps in all",
        "steps at once: at most 16",
        "tokens: no limit",
        "cost: at most 2.5",
        "seconds: no limit",
    ]


def test_a_team_file_needs_no_key_and_its_limits_count(preview):
    result = preview("Do it.", "--team", "team.yaml", "--approve", "--json")
    assert result.exit_code == 0, result.output
    bounds = json.loads(result.stdout)
    assert bounds["model_calls"] == {"worst": 200}
    assert (bounds["limits"]["max_rounds"], bounds["limits"]["max_tokens"]) == (3, 5000)
    assert bounds["approval"] == "plan"


def test_a_plan_is_looked_at_as_check_does_with_the_options_of_the_run(preview):
    given = ("plan.md", "--team", "team.yaml", "--set", "max_steps=1", "--approve", "always")
    result = preview(*given)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Two", "steps: 2"]
    assert "beyond max_steps=1, never started: step 2" in lines
    assert "approval: asked before this plan runs" in lines
    assert json.loads(preview(*given, "--json").stdout)["beyond"] == [2]


def test_a_plan_that_cannot_run_is_wrong_use(preview, tmp_path):
    (tmp_path / "plan.md").write_text("- [ ] 1. A @poet\n")
    strange = preview("plan.md")
    assert strange.exit_code == 2
    assert "refused: Step 1 (line 1) names @poet" in strange.stdout
    (tmp_path / "plan.md").write_text("- [ ] 1. A (after 9)\n")
    broken = preview("plan.md")
    assert broken.exit_code == 2
    assert "line 1" in broken.stderr


def test_approval_is_told_for_a_request(preview):
    assert preview("Do it.", "--approve", "revisions").stdout.splitlines()[-1] == (
        "approval: revisions"
    )

"""`replan diff`: two runs side by side, in the terminal and as JSON."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from replan import Host, Limits, Specialist, Team, open_runtime
from replan.cli.main import app
from replan.testing import ScriptedModel, always

PLAN = "# Tea\n\n- [ ] 1. Count @counter\n- [ ] 2. Write a report @writer (after 1)\n"
OTHER = "# Tea\n\n- [ ] 1. Count @counter\n- [ ] 2. Write a table @writer (after 1)\n"


def writes(context):
    if "table" in context.task_description:
        raise ValueError("no table today")
    return "The report.\n" + "A line.\n" * 3


@pytest.fixture
def replan(tmp_path):
    where = str(tmp_path / "runs.db")
    model = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nThe end.")})
    team = Team(
        Host(model),
        [
            Specialist("counter", "Counts.", run=lambda _: "Seven."),
            Specialist("writer", "Writes.", run=writes),
        ],
        limits=Limits(step_retries=0),
    )

    async def begin():
        async with open_runtime(team, storage=where) as runtime:
            await runtime.run({"plan": PLAN}, run_id="one")
            await runtime.run({"plan": OTHER}, run_id="two")

    asyncio.run(begin())

    def do(*words):
        return CliRunner().invoke(app, [*words, "--storage", where])

    return do


def test_figures_plan_and_results_stand_side_by_side(replan):
    told = replan("diff", "one", "two").stdout
    rows = {line[:14].strip(): line[14:].split() for line in told.splitlines() if line[:1].strip()}
    assert rows["steps done"] == ["2", "of", "2", "1", "of", "2"]
    assert rows["outcome"][0] == "completed"
    plan, _, rest = told.partition("\nplan:\n")[2].partition("\nresults:\n")
    assert "  -- [x] 2. Write a report @writer (after 1)" in plan
    assert "  +- [!] 2. Write a table @writer (after 1)" in plan
    assert "1. Count" in plan
    results = rest.partition("\nanswer:\n")[0]
    assert "  the same: 1/counter" in results
    assert "    -The report." in results
    assert "    +failed: ValueError: no table today" in results


def test_a_run_and_itself_are_the_same(replan):
    told = replan("diff", "one", "one").stdout
    assert told.partition("plan:")[2].split("\n\n")[0].strip() == "the same"
    assert "the same: 1/counter, 2/writer" in told


def test_json_has_the_numbers_of_both_and_every_changed_line(replan):
    told = json.loads(replan("diff", "one", "two", "--json").stdout)
    one, other = told["runs"]
    assert (one["run_id"], one["steps_done"], other["steps_done"]) == ("one", 2, 1)
    assert [*told["results"]] == ["2/writer"]
    assert "-The report." in told["results"]["2/writer"]
    assert any(line.startswith("+") and "table" in line for line in told["answer"])


def test_an_export_is_compared_with_the_run_that_it_is_of(replan, tmp_path):
    path = str(tmp_path / "one.json")
    assert replan("export", "one", "-o", path).exit_code == 0
    assert json.loads(replan("diff", path, "one", "--json").stdout)["results"] == {}


def test_a_run_that_is_not_there_is_refused(replan):
    done = replan("diff", "one", "nobody")
    assert done.exit_code == 2
    assert "There is no run 'nobody'" in done.stderr

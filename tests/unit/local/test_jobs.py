"""The keyless team does whole jobs on any folder, as the demo does on the sample data."""

import re
from pathlib import Path

import pytest

from replan import build_graph, run
from replan_local import local_team

ROOT = Path(__file__).parents[3]
FARM = (
    "total eggs by farm from eggs.csv; average hens by frm from hens.csv\n"
    "search notes for feeding\ncompare step 1 and step 2 by farm\nwrite report"
)


@pytest.fixture
def job(tmp_path):
    async def do(request, directory):
        return (await run(build_graph(local_team(directory, tmp_path / "out")), request)).state

    return do


@pytest.fixture
def farm(tmp_path):
    directory = tmp_path / "farm"
    (directory / "papers").mkdir(parents=True)
    (directory / "eggs.csv").write_text("farm,eggs\nHill,60\nDale,20\nHill,3\n")
    (directory / "hens.csv").write_text("farm,hens\nHill,6\nDale,4\n")
    (directory / "papers" / "care.txt").write_text("Feeding is at six.\n\nDoors shut at nine.\n")
    return directory


def demo_task():
    return re.search(r"^DEMO_TASK := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]


@pytest.mark.parametrize("given", ["sample", "farm"])
async def test_a_job_runs_in_parallel_is_revised_and_ends_with_a_report(job, farm, tmp_path, given):
    samples = ROOT / "examples" / "data"
    request, directory = (demo_task(), samples) if given == "sample" else (FARM, farm)
    state = await job(request, directory)
    plan = state["current_plan"]
    assert state["outcome"] == "completed"
    assert [step.id for step in plan.steps if not step.dependencies] == [1, 2, 3]
    assert [step.id for step in plan.steps if step.brief.startswith("Revised: ")] == [2]
    assert plan.version > 1
    assert plan.steps[3].dependencies == (1, 2)
    (report,) = (tmp_path / "out").glob("*.md")
    assert "| ratio |" in report.read_text()


async def test_what_was_not_done_is_told_once(job, farm):
    state = await job("total miles by farm from eggs.csv; write report", farm)
    answer = state["final_answer"].text
    assert state["outcome"] == "failed"
    assert answer.count("No column 'miles'") == 1
    assert answer.count("write report") == 1

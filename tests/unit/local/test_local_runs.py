"""The local team does whole jobs on any folder, as the demo does on the sample data."""

import re
from pathlib import Path

import pytest

from replan import run
from replan.assembly import local_graph

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "examples" / "data"
FARM = (
    "Total the eggs by farm from eggs.csv, average the hens by frm from hens.csv, find what our "
    "papers and notes say about feeding, compare eggs and hens by farm, then report with a chart"
)


@pytest.fixture
def job(tmp_path):
    async def do(request, directory):
        return await run(local_graph(directory=directory, out=tmp_path / "out"), request)

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


def starters(plan):
    return {step.assigned_to for step in plan.steps if not step.dependencies}


@pytest.mark.parametrize("given", ["sample", "farm"])
async def test_a_job_runs_in_parallel_is_revised_and_ends_with_a_report_and_a_chart(
    job, farm, tmp_path, given
):
    request, directory = (demo_task(), SAMPLES) if given == "sample" else (FARM, farm)
    state = await job(request, directory)
    plan = state["current_plan"]
    assert state["outcome"] == "completed"
    assert starters(plan) == {"data_analyst", "librarian"}
    assert [step.description.rpartition(" [revised: ")[1] for step in plan.steps] == [
        "", " [revised: ", "", "", ""
    ]  # fmt: skip
    assert plan.version > 1
    assert plan.steps[3].dependencies == (1, 2)
    (report,) = (tmp_path / "out").glob("*.md")
    assert f"]({report.stem}.svg)" in report.read_text()
    assert (tmp_path / "out" / f"{report.stem}.svg").exists()


async def test_a_word_that_no_text_has_is_mended_like_a_column(job, farm):
    state = await job("Search our notes for feding, then write a brief", farm)
    assert state["outcome"] == "completed"
    assert "[revised: feeding for feding]" in state["current_plan"].steps[0].description
    assert "care.txt:1" in state["final_answer"].text


async def test_a_calculation_takes_its_figures_from_the_step_before(job, farm):
    request = "Total the eggs from eggs.csv, then calculate 10 % of the total eggs, then report"
    state = await job(request, farm)
    assert state["outcome"] == "completed"
    assert "10 % of 83 = 8.3" in state["final_answer"].text


@pytest.mark.parametrize("request_text", ["hello", "2 + 2", "Who won the match yesterday?"])
async def test_what_needs_no_plan_or_cannot_be_done_is_answered_at_once(job, farm, request_text):
    state = await job(request_text, farm)
    assert state["outcome"] == "answered"
    assert state.get("current_plan") is None


async def test_what_was_not_done_is_told_once(job, farm):
    request = "Total the miles by farm from eggs.csv, then write a report; compose a sonata"
    state = await job(request, farm)
    answer = state["final_answer"].text
    assert state["outcome"] == "failed"
    assert answer.count("No column 'miles'") == 1
    assert answer.count("Write a report") == 1
    assert answer.count("Compose a sonata: nobody in the team does this.") == 1

"""The writer puts results into one file, the same file for the same step, and never another's."""

import re
from datetime import UTC, datetime

import pytest
from langchain_core.messages import HumanMessage
from markdown_it import MarkdownIt

from replan.plan.model import PlanStep
from replan_local import ReportWriter
from replan.state.results import ExecutionContext, ExecutionStatus

NOON = datetime(2031, 2, 3, 12, tzinfo=UTC)
COSTS = """\
**Total cost by team** (b.csv, 9 rows)

| team | cost |
| --- | ---: |
| x | 1 |

- Largest: x."""
AGES = "# Ages\n\nAll are young.\n\n```\n# no heading\n```"


@pytest.fixture
def write(tmp_path):
    async def run(text="Write a report", *, inputs=None, key="k1", clock=lambda: NOON, **fields):
        context = ExecutionContext(
            task_description=text,
            plan_step=PlanStep(id=3, description=text),
            inputs={1: COSTS, 2: AGES} if inputs is None else inputs,
            idempotency_key=key,
            workspace=str(tmp_path),
            run_id="run",
            **fields,
        )
        return await ReportWriter(tmp_path / "out", clock).run(context, {})

    return run


def files(tmp_path):
    return sorted(path.name for path in (tmp_path / "out").iterdir())


async def test_a_report_has_title_date_summary_contents_and_a_section_for_each_result(
    write, tmp_path
):
    result = await write("Write a report on costs and ages")
    (artifact,) = result.artifacts
    text = (tmp_path / artifact.path).read_text()
    assert text.startswith("# Report: costs and ages\n\n2031-02-03\n\n## Summary\n\n")
    assert "- **Total cost by team**: Largest: x.\n" in text
    assert "## Contents\n\n1. Total cost by team\n2. Ages\n" in text
    assert "## 1. Total cost by team\n\n**Total cost by team**" in text
    assert "### Ages\n\nAll are young." in text
    assert "\n# no heading\n" in text
    assert artifact.media_type == "text/markdown"
    assert f"`{artifact.path}`" in result.text
    assert "- **Total cost by team**: Largest: x." in result.text


async def test_the_request_gives_the_title_where_the_step_does_not(write):
    result = await write(messages=(HumanMessage("Costs of the teams in May?"),))
    assert result.artifacts[0].title == "Report: Costs of the teams in May?"


HOSTILE = (
    "**T <img src=x onerror=alert(1)>**\n\n"
    "| name | n |\n| --- | ---: |\n"
    "| <script>x</script> | 1 |\n| ![p](http://evil.example/x.png) | 2 |\n| a < b | 3 |\n\n"
    "- \\<b>bold</b> \\![q](http://evil.example/y.png) ![r]\n\n"
    "```\n<iframe src=x>\n```\n\n    ```\n<svg onload=x>\n\n"
    "[r]: http://evil.example/z.png\n<!-- hidden --> <?x?>"
)


async def test_a_report_shows_html_and_loads_no_picture(write, tmp_path):
    title = {"title": "<script>t</script> ![t](http://evil.example/t.png)"}
    written = await write(inputs={1: HOSTILE}, parameters=title)
    path = tmp_path / written.artifacts[0].path
    html = MarkdownIt("commonmark").enable("table").render(path.read_text())
    # The last lines of a report are our own mark.
    assert re.findall(r"<(?:script|b>|iframe|svg|\?|!--(?!  *written))", html) == []
    assert "evil.example" not in "".join(re.findall(r"<img[^>]*>", html))
    assert "a &lt; b" in html


async def test_a_given_title_comes_first(write):
    assert (await write(parameters={"title": "Spring"})).artifacts[0].title == "Spring"


async def test_the_same_step_writes_the_same_file_again(write, tmp_path):
    first, second = await write(), await write(inputs={1: "better"})
    assert [file.path for file in first.artifacts] == [file.path for file in second.artifacts]
    (name,) = files(tmp_path)
    assert "better" in (tmp_path / "out" / name).read_text()


async def test_another_run_never_touches_the_file(write, tmp_path):
    await write(inputs={1: "mine"})
    await write(inputs={1: "yours"}, key="k2")
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize(
    "title",
    ["../../etc/passwd", "/abs", "a/b\\c", "CON", "x\x00y", "..", "-rf", "报告", "é" * 500, "\n\n"],
)
async def test_no_text_becomes_a_path(write, tmp_path, title):
    result = await write(parameters={"title": title})
    (name,) = files(tmp_path)
    assert result.artifacts[0].path == f"out/{name}"
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert name.count(".") == 1
    assert not name.startswith("-")
    assert len(name) < 70


async def test_a_link_in_the_place_of_the_report_is_replaced_and_not_followed(write, tmp_path):
    (name,) = [path.artifacts[0].path for path in [await write()]]
    target = tmp_path / "precious.txt"
    target.write_text("keep")
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(target)
    await write()
    assert target.read_text() == "keep"


async def test_a_report_outside_the_workspace_is_named_in_full(tmp_path):
    context = ExecutionContext(
        task_description="Report",
        plan_step=PlanStep(id=1, description="Report"),
        inputs={1: COSTS},
        workspace=str(tmp_path / "elsewhere"),
    )
    result = await ReportWriter(tmp_path / "out").run(context, {})
    assert result.artifacts[0].path.startswith(str(tmp_path / "out"))


@pytest.mark.parametrize("inputs", [{}, {1: "  \n"}])
async def test_nothing_to_report_is_a_failure_for_good(write, tmp_path, inputs):
    result = await write(inputs=inputs)
    assert result.status is ExecutionStatus.FAILED
    assert not result.retry
    assert "nothing to report" in result.error
    assert not (tmp_path / "out").exists()

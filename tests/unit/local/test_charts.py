"""The writer draws what can be drawn, and says so where nothing can."""

import sys
from xml.etree import ElementTree as ET

import pytest

from replan.plan.model import PlanStep
from replan_local import ReportWriter
from replan_local.answer_table import AnswerTable
from replan_local.writing.chart_choice import choose_chart
from replan_local.writing.drawing import draw
from replan.state.results import ExecutionContext, ExecutionStatus

EGGS = "**Eggs by farm**\n\n| farm | eggs |\n| --- | ---: |\n| Hill | 60 |\n| Dale | 20 |\n"
PROSE = "**Rules**\n\nNo table here."


def table(title, columns, *rows):
    return AnswerTable(title=title, columns=columns, cells=rows, key_count=1)


FARMS = table("Eggs by farm", ("farm", "eggs"), ("Hill", 60), ("Dale", 20))
MONTHS = table("Eggs by month", ("month", "eggs"), ("2030-01", 5), ("2030-02", None))
BOTH = table(
    "Both by farm", ("farm", "eggs", "hens", "ratio"), ("Hill", 60, 6, 0.1), ("Dale", 20, 4, 0.2)
)


@pytest.fixture
def write(tmp_path):
    async def run(text="Write a report with a chart", *, inputs=None, **parameters):
        context = ExecutionContext(
            task_description=text,
            plan_step=PlanStep(id=3, description=text),
            inputs=inputs or {1: EGGS},
            parameters=parameters,
            workspace=str(tmp_path),
            run_id="run",
        )
        return await ReportWriter(tmp_path).run(context, {})

    return run


async def test_the_chart_is_a_file_beside_the_report_that_shows_it(write, tmp_path):
    result = await write()
    report, chart = result.artifacts
    assert chart.media_type == "image/svg+xml"
    assert f"![Chart: Eggs by farm]({chart.path})" in (tmp_path / report.path).read_text()
    assert f"with a chart in `{chart.path}`" in result.text
    texts = {each.text for each in ET.parse(tmp_path / chart.path).iter() if each.text}  # noqa: S314
    assert {"Eggs by farm", "Hill", "Dale", "60", "20"} <= texts


async def test_the_same_step_draws_the_same_file(write, tmp_path):
    first, second = (await write()).artifacts[1], (await write()).artifacts[1]
    assert first == second
    assert len(list(tmp_path.glob("*.svg"))) == 1


@pytest.mark.parametrize("text", ["Write a report without a chart", "Report, no charts"])
async def test_no_chart_is_drawn_where_none_is_wanted(write, text):
    assert len((await write(text)).artifacts) == 1
    assert len((await write("Report", chart="none")).artifacts) == 1


@pytest.mark.parametrize("inputs", [{1: PROSE}, {1: EGGS + "\n(7 more rows are not shown.)"}])
async def test_a_chart_that_was_asked_for_and_cannot_be_drawn_is_told(write, tmp_path, inputs):
    result = await write(inputs=inputs)
    (report,) = result.artifacts
    assert "There is no chart: no result has a whole table" in result.text
    assert "There is no chart" in (tmp_path / report.path).read_text()
    assert "no chart" not in (await write("Write a report", inputs=inputs)).text


async def test_without_the_library_the_report_is_written_and_says_what_is_missing(
    write, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pygal", None)
    assert "drawing needs pygal" in (await write()).text


async def test_an_unknown_kind_of_chart_is_refused(write):
    result = await write(chart="bars")
    assert result.status is ExecutionStatus.FAILED
    assert "Did you mean 'bar'?" in result.error


@pytest.mark.parametrize(
    ("asked", "shape"),
    [("Write a report with a line chart", "line"), ("Draw a bar chart", "bar"), ("Report", "bar")],
)
async def test_the_step_says_what_kind_of_chart(write, tmp_path, asked, shape):
    chart = (tmp_path / (await write(asked)).artifacts[1].path).read_text()
    assert f"{shape}-graph" in chart


def test_dates_are_a_line_and_names_are_bars():
    assert choose_chart([MONTHS], "").shape == "line"
    assert choose_chart([FARMS], "").shape == "bar"
    assert choose_chart([MONTHS], "", "bar").shape == "bar"


def test_what_the_step_speaks_of_comes_first_then_the_most_columns_then_the_first_table():
    assert choose_chart([FARMS, BOTH, MONTHS], "chart of eggs by month").title == "Eggs by month"
    assert choose_chart([FARMS, BOTH], "with a chart").title == "Both by farm"
    assert choose_chart([FARMS, MONTHS], "with a chart").title == "Eggs by farm"


def test_columns_of_another_scale_are_left_out_and_named():
    chart = choose_chart([BOTH], "")
    assert [series.name for series in chart.series] == ["eggs", "hens"]
    assert chart.left_out == ("ratio",)


@pytest.mark.parametrize(
    "given",
    [
        table("One row", ("a", "b"), ("x", 1)),
        table("No number", ("a", "b"), ("x", "y"), ("z", "y")),
        table("All zero", ("a", "b"), ("x", 0), ("z", 0)),
        AnswerTable(title="Two", columns=("a", "b", "n"), cells=(("x", "y", 1), ("x", "z", 2))),
    ],
)
def test_what_has_no_labels_or_no_numbers_is_not_drawn(given):
    assert choose_chart([given], "") is None


def test_a_picture_needs_nothing_from_outside_and_survives_odd_labels():
    rows = [(f"<b> & \x00 {'long ' * 20}{n}", n - 3.5) for n in range(12)]
    picture = draw(choose_chart([table("a <script> \u56fe", ("k", "v"), *rows)], ""))
    ET.fromstring(picture)  # noqa: S314
    assert "<script" not in picture
    assert "href" not in picture
    assert "horizontalbar-graph" in picture


def test_many_dates_are_thinned_out_on_the_axis():
    rows = [(f"2030-{1 + n // 28:02}-{1 + n % 28:02}", n) for n in range(40)]
    picture = ET.fromstring(draw(choose_chart([table("Days", ("day", "n"), *rows)], "")))  # noqa: S314
    texts = [each.text or "" for each in picture.iter() if each.tag.endswith("text")]
    assert 5 < sum(text.startswith("2030-") for text in texts) <= 12

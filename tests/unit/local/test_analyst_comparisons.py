"""The data analyst compares files and the tables of earlier results."""

from replan_local.answer_table import AnswerTable, tables_in
from replan.state.results import ExecutionStatus


def table(result):
    assert result.status is ExecutionStatus.SUCCESS, result.error
    return tables_in(result.text, "")[0]


async def test_two_files_are_joined_on_the_named_column(ask):
    found = table(await ask("Compare seen in sightings.csv and rings.json by site"))
    assert found.columns == ("site", "total seen", "rows", "ratio")
    assert found.cells == (
        ("Lake", 24, 2, 0.08333),
        ("Forest", 8, 1, 0.125),
        ("Meadow", 4, None, None),
    )


async def test_without_a_common_measure_the_rows_are_compared(ask):
    found = table(await ask("Compare sightings.csv and rings.json by site"))
    assert found.cells[0] == ("Lake", 3, 2, 1, 0.6667)


async def test_years_stay_keys_when_two_results_are_compared(ask):
    first = (await ask("seen by year in sightings.csv")).text
    second = (await ask("how many sightings by year in sightings.csv")).text
    found = table(await ask("compare both", inputs={1: first, 2: second}))
    assert found.columns == ("year", "total seen", "rows", "ratio")


async def test_a_measure_that_both_have_gives_difference_and_ratio(ask, folder):
    (folder / "old.csv").write_text("site,seen\nLake,12\nMarsh,5\n")
    result = await ask("compare seen in sightings.csv and old.csv by site")
    found = table(result)
    assert found.columns == (
        "site",
        "total seen (sightings.csv)",
        "total seen (old.csv)",
        "difference",
        "ratio",
    )
    assert ("Lake", 24, 12, 12, 0.5) in found.cells
    assert "Without a row in sightings.csv: Marsh." in result.text


async def test_files_that_share_nothing_cannot_be_compared(ask, folder):
    (folder / "other.csv").write_text("x,y\n1,2\n")
    result = await ask("compare other.csv and sites.parquet")
    assert result.status is ExecutionStatus.FAILED
    assert "share no column" in result.error


async def test_several_shared_columns_need_a_name(ask, folder):
    (folder / "old.csv").write_text("site,bird,seen\nLake,coot,12\n")
    result = await ask("compare old.csv and sightings.csv")
    assert "Name one after 'by'" in result.error


async def test_the_tables_of_two_steps_are_joined_on_their_common_column(ask):
    first = (await ask("total seen by site in sightings.csv")).text
    second = (await ask("area by site in sites.parquet")).text
    found = table(await ask("Compare both", inputs={1: first, 2: second}))
    assert found.columns == ("site", "total seen", "total area", "ratio")
    assert ("Meadow", 4, 80, 20) in found.cells


async def test_tables_without_a_common_column_are_shown_side_by_side_and_say_so(ask):
    first = (await ask("total seen by site in sightings.csv")).text
    second = (await ask("total seen by bird in sightings.csv")).text
    result = await ask("Compare both", inputs={1: first, 2: second})
    assert "share no column to compare them by: site; bird" in result.text
    assert result.confidence < 0.5


async def test_tables_with_two_common_columns_are_joined_on_both(ask):
    first = (await ask("total seen by site and bird in sightings.csv")).text
    second = (await ask("average body mass by site and bird in sightings.csv")).text
    found = table(await ask("compare the results", inputs={1: first, 2: second}))
    assert found.columns == ("site", "bird", "total seen", "average body_mass", "ratio")
    assert ("Lake", "coot", 12, 0.8, 0.06667) in found.cells


async def test_a_join_that_would_lose_rows_is_refused(ask):
    first = (await ask("total seen by site and bird in sightings.csv")).text
    second = (await ask("area by site in sites.parquet")).text
    result = await ask("compare both", inputs={1: first, 2: second})
    assert "has several rows for one site" in result.text
    assert result.confidence < 0.5


async def test_a_cut_table_lowers_the_confidence_of_its_comparison(ask, folder):
    (folder / "many.csv").write_text("name,size\n" + "".join(f"k{n},{n}\n" for n in range(40)))
    first = (await ask("size by name in many.csv")).text
    second = (await ask("average size by name in many.csv")).text
    result = await ask("compare the results", inputs={1: first, 2: second})
    assert "only its shown rows are compared" in result.text
    assert result.confidence < 0.9


def test_a_table_reads_back_from_its_own_markdown():
    table = AnswerTable(
        title="t",
        columns=("a|b", "n"),
        cells=(("x|y", 1), ("two\nlines", 2.5), (None, None)),
    )
    (again,) = tables_in(f"text\n\n{table.markdown()}\n\nmore", "t")
    assert again.columns == ("a|b", "n")
    assert again.cells == (("x|y", 1), ("two lines", 2.5), (None, None))

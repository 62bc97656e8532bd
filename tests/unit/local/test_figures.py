"""Figures are what the rows say, to the last digit that is shown."""

from statistics import mean, median

from cases import cases_of
from replan import ExecutionStatus
from replan_local.answer_table import number_in, tables_in

CASES = cases_of(__file__)

SEEN = {"Lake": [3, 12, 9], "Forest": [1, 7], "Meadow": [4]}


def rows(result):
    assert result.status is ExecutionStatus.SUCCESS, result.error
    (table,) = tables_in(result.text, "")
    return [tuple(number_in(cell) or cell for cell in row) for row in table.rows]


async def test_each_aggregate_is_computed_for_each_group(ask):
    measures = "total seen, average seen, median seen, smallest seen, largest seen, distinct seen"
    found = rows(await ask(f"{measures}, count by site from sightings.csv"))
    assert [number for _, number, *_ in found] == [24, 8, 4]
    for site, *figures in found:
        seen = SEEN[site]
        means = [sum(seen), mean(seen), median(seen), min(seen), max(seen), len({*seen}), len(seen)]
        assert figures == means, site


async def test_only_rows_that_fulfil_all_conditions_count(ask):
    for where, total in CASES["conditions"]:
        result = await ask(f"total seen from sightings.csv where {where}")
        assert rows(result) == [(total,)], where


async def test_the_largest_come_first_and_are_cut_at_their_number(ask):
    found = rows(await ask("total seen, count by site from sightings.csv top 2"))
    assert found == [("Lake", 24, 3), ("Forest", 8, 2)]


async def test_sql_is_a_command_and_a_parameter(ask):
    sql = "SELECT year(day) AS year, sum(seen) AS seen FROM sightings GROUP BY ALL ORDER BY year"
    said = await ask(sql)
    assert rows(said) == [(2023, 23), (2024, 13)]
    assert said.text == (await ask("x", sql=f"{sql};")).text
    assert said.text.startswith("**Query** (sightings.csv)")


async def test_numbers_of_any_size_are_shown_short(ask):
    sql = "SELECT 1e30 AS a, -2 AS b, 0.123456 AS c, 1234.567 AS d, 'inf'::DOUBLE AS e, 0.0 AS f"
    text = (await ask("x", sql=sql)).text
    assert f"| 1{'0' * 30} | -2 | 0.1235 | 1234.57 | infinity | 0 |" in text


async def test_parameters_are_the_parts_of_the_sentence(ask):
    said = await ask("total seen, count by site from sightings.csv where seen > 3 top 2")
    given = {"measures": ["total seen", "count"], "by": "site", "where": "seen > 3", "top": 2}
    assert (await ask("Any title", table="sightings.csv", **given)).text == said.text


async def test_a_table_is_described_by_sql_and_a_table_alone_is_counted(ask):
    assert "| seen | BIGINT | 1 | 12 |" in (await ask("x", sql="SUMMARIZE sightings")).text
    counted = await ask("x", table="sightings.csv")
    assert counted.text == (await ask("count from sightings.csv")).text


async def test_the_source_is_told(ask):
    text = (await ask("total seen by site from sightings.csv where seen > 1")).text
    assert "**Total seen by site** (sightings.csv, 5 rows; seen > 1)" in text


async def test_two_results_are_compared_and_what_one_lacks_is_told(ask):
    one = (await ask("total seen by site from sightings.csv")).text
    other = (await ask("count by site from rings.json")).text
    text = (await ask("compare step 1 and step 3 by site", inputs={1: one, 3: other})).text
    assert "| Lake | 24 | 2 | 0.08333 |" in text
    assert "| Meadow | 4 | (empty) | (empty) |" in text
    same = (await ask("compare step 1 and step 2 by site", inputs={1: one, 2: one})).text
    assert "| total seen (Total seen by site) |" in same


async def test_what_cannot_be_computed_fails_for_good_and_says_what_there_is(ask):
    for said, given, told in CASES["refused"]:
        result = await ask(said, who="data_analyst", **given)
        assert result.status is ExecutionStatus.FAILED, said
        assert not result.retry
        assert told in result.error


async def test_a_cut_table_is_neither_compared_nor_counted_with(ask, folder):
    lines = "".join(f"{at},{at}\n" for at in range(40))
    (folder / "many.csv").write_text(f"name,size\n{lines}")
    text = (await ask("total size by name from many.csv")).text
    assert "(More rows are not shown.)" in text
    compared = await ask("compare step 1 and step 1 by name", inputs={1: text})
    assert "shows only a part of its rows" in compared.error
    summed = await ask("calculate step 1", inputs={1: text})
    assert "shows only a part of its rows" in summed.error


async def test_a_side_without_a_row_has_no_ratio(ask):
    one = "**A**\n\n| k | a |\n| --- | ---: |\n| x | 2 |\n| y | 0 |\n| z | 4 |"
    other = "**B**\n\n| k | b |\n| --- | ---: |\n| x | 0 |\n| y | 3 |"
    text = (await ask("compare step 1 and step 2 by K", inputs={1: one, 2: other})).text
    assert "| x | 2 | 0 | 0 |\n| y | 0 | 3 | (empty) |\n| z | 4 | (empty) | (empty) |" in text

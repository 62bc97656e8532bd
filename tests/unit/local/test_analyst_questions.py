"""The data analyst reads questions against the columns that the tables really have."""

import pytest

from replan_local.answer_table import tables_in
from replan.state.results import ExecutionStatus

OWL_FIRST = [("owl", 1), ("heron", 3), ("coot", 12), ("finch", 20)]


def cells(result):
    assert result.status is ExecutionStatus.SUCCESS, result.error
    return list(tables_in(result.text, "")[0].cells)


async def test_a_total_by_group_is_ordered_and_has_findings(ask):
    result = await ask("Total seen by site from sightings.csv")
    assert cells(result) == [("Lake", 24), ("Forest", 8), ("Meadow", 4)]
    assert "**Total seen by site** (sightings.csv, 6 rows)" in result.text
    assert "- Largest: Lake with 24 (66.7 % of 36)." in result.text
    assert "- Smallest: Meadow with 4 (11.1 % of 36)." in result.text
    assert result.confidence > 0.9


@pytest.mark.parametrize(
    "text",
    [
        "total seen by sites in sightings.csv",
        "SUM OF SEEN PER SITE in sightings.csv",
        "seen for each site, sightings.csv",
        "sightings.csv: seen grouped by site",
        "按 site 统计 sightings.csv 的总 seen",
    ],
)
async def test_case_plural_and_wording_do_not_matter(ask, text):
    assert cells(await ask(text)) == [("Lake", 24), ("Forest", 8), ("Meadow", 4)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("average body mass per bird in sightings.csv, top 2", [("heron", 1.5), ("coot", 0.8)]),
        ("top 2 birds by seen in sightings.csv", [("finch", 20), ("coot", 12)]),
        ("the 2 largest birds by seen in sightings.csv", [("finch", 20), ("coot", 12)]),
        ("bottom 1 site by seen in sightings.csv", [("Meadow", 4)]),
        ("rank sites by seen in sightings.csv", [("Lake", 24), ("Forest", 8), ("Meadow", 4)]),
        ("how many sightings in sightings.csv", [(6,)]),
        ("number of distinct birds in sightings.csv", [(4,)]),
        ("largest body mass in sightings.csv", [(1.5,)]),
        ("total seen and average seen in sightings.csv", [(36, 6)]),
        ("total and maximum seen in sightings.csv", [(36, 12)]),
        ("monthly seen in sightings.csv in 2023", [("2023-05", 15), ("2023-06", 8)]),
        ("seen by year in sightings.csv", [("2023", 23), ("2024", 13)]),
        ("seen by quarter in sightings.csv in 2024", [("2024-Q2", 9), ("2024-Q3", 4)]),
        ("seen in June by bird in sightings.csv", [("finch", 16), ("owl", 1)]),
        (
            "seen by bird where site = Lake and seen > 3 in sightings.csv",
            [("coot", 12), ("finch", 9)],
        ),
        ("seen by bird in the Forest, sightings.csv", [("finch", 7), ("owl", 1)]),
        ("count of rings by month in rings.json", [("2024-01", 1), ("2024-02", 2)]),
        ("the top 1 site by total seen in sightings.csv", [("Lake", 24)]),
        ("Calculate the sum of seen for each site in sightings.csv, sorted, top 1", [("Lake", 24)]),
        ("Load sightings.csv and determine which bird has the lowest seen", OWL_FIRST),
        ("in which year was most seen, sightings.csv", [("2023", 23), ("2024", 13)]),
        ("area by site in sites.parquet, bottom 2", [("Meadow", 80), ("Lake", 120.5)]),
        ("total seen by site and bird in sightings.csv, top 1", [("Lake", "coot", 12)]),
    ],
)
async def test_questions_and_their_answers(ask, text, rows):
    assert cells(await ask(text)) == rows


async def test_values_named_side_by_side_become_columns(ask):
    result = await ask("Compare seen in Lake and Forest by bird in sightings.csv")
    (table,) = tables_in(result.text, "")
    assert table.columns == ("bird", "total seen (Lake)", "total seen (Forest)")
    assert ("finch", 9, 7) in table.cells


async def test_the_profile_tells_types_ranges_and_gaps(ask, folder):
    (folder / "gaps.csv").write_text("when,what\n2020-01-01,a\n2020-03-01,\n")
    result = await ask("Profile gaps.csv")
    assert "| what | varchar | 1 | 1 |" in result.text
    assert "- 2 rows, 2 columns." in result.text
    assert "- Missing values: what (1)." in result.text
    assert "- when runs from 2020-01-01 to 2020-03-01." in result.text


async def test_a_step_that_only_names_a_file_gets_its_profile(ask):
    assert "**Profile of sites.parquet**" in (await ask("Look at sites.parquet")).text


async def test_without_a_file_name_the_only_fitting_table_is_taken_with_less_confidence(ask):
    result = await ask("Total seen by site")
    assert "No file was named; sightings.csv is the one that fits." in result.text
    assert result.confidence < 0.9


async def test_a_part_of_a_column_name_is_a_guess(ask):
    result = await ask("average mass per bird in sightings.csv")
    assert "Guessed: 'mass' read as body_mass." in result.text
    assert result.confidence < 0.9


async def test_words_that_were_not_understood_are_told(ask):
    result = await ask("Total seen by site for Atlantis from sightings.csv")
    assert "'Atlantis' was not understood and left out" in result.text
    assert "'Atlantis'" in (await ask("how many sightings in Atlantis")).text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("total sene by site in sightings.csv", "No column 'sene' in sightings.csv."),
        ("total sene by site in sightings.csv", "Did you mean 'seen'?"),
        ("total seen by sitte in sightings.csv", "Did you mean 'site'?"),
        ("total seen by site in sighting.csv", "Did you mean 'sightings.csv'?"),
        ("total seen by site in nothing.csv", "The tables are: rings.json, sightings.csv"),
        ("number by site", "could mean any of these tables"),
        ("average by site in sightings.csv", "has several: seen, body_mass"),
        ("seen by month in sites.parquet", "No column 'seen' in sites.parquet"),
        ("area by month in sites.parquet", "a date to tell the month"),
        ("", "could mean any of these tables"),
    ],
)
async def test_what_does_not_fit_fails_for_good_and_says_what_there_is(ask, text, error):
    result = await ask(text)
    assert result.status is ExecutionStatus.FAILED
    assert not result.retry
    assert error in result.error


async def test_a_name_mended_by_a_revision_is_understood(ask):
    result = await ask("Total seen by site in sightings.csv [revised: seen for sene]")
    assert cells(result)[0] == ("Lake", 24)


async def test_the_brief_helps_where_the_line_is_not_enough(ask):
    result = await ask("Do it", brief="Use sightings.csv: total seen by site.")
    assert cells(result)[0] == ("Lake", 24)


async def test_prose_in_the_brief_does_not_disturb_a_clear_line(ask):
    result = await ask("Total seen by site", brief="The board of sightings.csv meets on Monday.")
    assert cells(result)[0] == ("Lake", 24)
    assert "not understood" not in result.text


async def test_the_error_of_the_line_is_told_where_the_brief_does_not_help(ask):
    result = await ask("Total sene by site in sightings.csv", brief="Please hurry.")
    assert "Did you mean 'seen'?" in result.error


async def test_a_word_in_several_column_names_must_be_told_apart(ask, folder):
    (folder / "p.csv").write_text("net_price,gross_price,shop\n1,2,a\n")
    result = await ask("average price by shop in p.csv")
    assert "could be any of these columns of p.csv: net_price, gross_price" in result.error


async def test_parameters_say_what_the_text_does_not(ask):
    result = await ask(
        "Do it",
        file="sightings.csv",
        group_by=["site"],
        measure="seen",
        aggregate="average",
        where={"bird": "finch"},
        top=2,
    )
    assert cells(result) == [("Lake", 9), ("Forest", 7)]


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"grup_by": "site"}, "Did you mean 'group_by'?"),
        ({"group_by": "sitte"}, "Did you mean 'site'?"),
        ({"measure": "bird", "aggregate": "sum"}, "has no numbers"),
        ({"measure": "seen", "aggregate": "averge"}, "Did you mean 'average'?"),
        ({"aggregate": "sum"}, "needs the parameter 'measure'"),
        ({"group_by": "site", "top": 0}, "'top' must be a whole number"),
        ({"group_by": 5}, "must be a name or a list"),
        ({"where": 3}, "'where' must be"),
        ({"file": "gone.csv"}, "No table file 'gone.csv'"),
    ],
)
async def test_wrong_parameters_fail_for_good(ask, parameters, error):
    result = await ask("x", **{"file": "sightings.csv", **parameters})
    assert result.status is ExecutionStatus.FAILED
    assert error in result.error


async def test_a_long_answer_is_cut_and_says_so(ask, folder):
    rows = "".join(f"k{n},{n}\n" for n in range(100))
    (folder / "many.csv").write_text("key_name,size\n" + rows)
    result = await ask("size by key name in many.csv")
    assert len(cells(result)) == 30
    assert "(70 more rows are not shown.)" in result.text
    assert "- Smallest of all 100: k0 with 0" in result.text


async def test_an_empty_folder_is_an_error_that_says_so(ask, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    result = await ask("total seen by site", directory=empty)
    assert "no CSV, Parquet or JSON file" in result.error


async def test_odd_names_of_files_and_columns_are_read(ask, folder):
    (folder / "Q1 \"odd\" 'name'.csv").write_text('"the ""x"" col",group\n5,a\n6,b\n')
    result = await ask("x", file="Q1 \"odd\" 'name'.csv", group_by="group", measure='the "x" col')
    assert cells(result) == [("b", 6), ("a", 5)]


async def test_a_chinese_table_is_asked_in_chinese(ask, folder):
    (folder / "zh.csv").write_text("地区,收入\n北,5\n南,7\n北,1\n", encoding="utf-8")
    assert cells(await ask("按地区统计 zh.csv 的总收入")) == [("南", 7), ("北", 6)]


@pytest.mark.parametrize(
    ("question", "parameters"),
    [
        ("Total seen by site where bird is owl or coot in sightings.csv", {}),
        ("x", {"file": "sightings.csv", "where": {"bird": ["owl", "coot"]}, "measure": "seen"}),
    ],
)
async def test_two_values_of_one_column_are_alternatives(ask, question, parameters):
    result = await ask(question, **({"group_by": "site"} | parameters if parameters else {}))
    assert "| Lake | 12 |" in result.text
    assert "| Forest | 1 |" in result.text
    assert "2 rows; bird = owl or coot)" in result.text


async def test_two_years_are_alternatives(ask):
    result = await ask("Total seen by site in 2023 and 2024 from sightings.csv")
    assert "| Lake | 24 |" in result.text
    assert "year of day = 2023 or 2024)" in result.text


async def test_a_column_of_text_that_should_be_added_up_is_named(ask, folder):
    (folder / "preise.csv").write_text('name,preis\nBrot,"1,50"\nMilch,"1,20"\n')
    error = (await ask("Total preis by name in preise.csv")).error
    assert "preis in preise.csv holds text, not numbers" in error

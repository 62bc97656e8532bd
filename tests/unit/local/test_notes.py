"""A search quotes what the notes of the folder say, with file and line."""

import pytest

from cases import cases_of
from replan import ExecutionStatus
from replan_local.searching import REPORT_MARK

CASES = cases_of(__file__)

BEES = """\
# Bees

Bees are kept behind the barn.

## Honey

The honey is harvested in July.
It is sold at the gate.

- Jars cost 6 EUR.
- Old jars may be brought back.
"""
GUIDE = "Guide\n=====\n\nHow to begin.\n\nFeeding\n-------\n\nSheep are fed twice a day.\n"
CHINESE = "# 养蜂\n\n蜜蜂住在谷仓后面。\n\n七月收获蜂蜜。\n"


@pytest.fixture
def library(tmp_path):
    directory = tmp_path / "library"
    (directory / "farm").mkdir(parents=True)
    (directory / "farm" / "bees.md").write_text(BEES)
    (directory / "guide.rst").write_text(GUIDE)
    (directory / "zh.txt").write_text(CHINESE, encoding="utf-8")
    return directory


@pytest.fixture
def search(ask, library):
    async def run(text, **parameters):
        return await ask(text, who="librarian", directory=library, **parameters)

    return run


async def test_the_best_passage_is_quoted_with_file_and_line(search):
    for query, place in CASES["quotes"]:
        result = await search(f"search notes for {query}")
        assert result.text.split("> (`")[1].startswith(f"{place}`"), result.error


async def test_a_quote_is_word_for_word_and_names_its_heading(search):
    text = (await search("search notes for harvested")).text
    assert "> The honey is harvested in July.\n> It is sold at the gate.\n>\n" in text
    assert "> (`farm/bees.md:7`, under: Honey)" in text


async def test_a_file_and_a_number_bound_the_search(search):
    result = await search("x", query="honey jars", file="farm/bees.md", top=1)
    assert result.text.count("> (`") == 1
    assert result.text == (await search('search notes for "honey jars" in bees.md top 1')).text


async def test_what_is_not_found_fails_for_good_and_says_what_there_is(search):
    for said, given, told in (*CASES["missing"], ["x", {"query": "a", "file": "../b.txt"}, "No "]):
        result = await search(said, **given)
        assert result.status is ExecutionStatus.FAILED, said
        assert not result.retry
        assert told in result.error


async def test_reports_of_our_own_are_no_sources_and_what_cannot_be_read_is_told(search, library):
    (library / "report.md").write_text(f"# Report\n\nzebra\n\n{REPORT_MARK}\n")
    (library / "large.txt").write_text("zebra\n\n" + "x" * 5_000_000)
    assert (await search("search notes for zebra")).status is ExecutionStatus.FAILED
    found = (await search("search notes for honey")).text
    assert "- large.txt is left out: it has more than 5,000,000 bytes." in found

"""A search quotes what the notes of the folder say, with file and line."""

import re

import pytest
from hypothesis import given, strategies as st

from replan import ExecutionStatus
from replan.texts.safe_folder import FolderFile
from replan_local.commands import Search
from replan_local.notes import REPORT_MARK, note_files, passages_in
from replan_local.searching import Searching

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


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ('"harvest honey"', "farm/bees.md:7"),
        ('"feeding sheep"', "guide.rst:9"),
        ("jar", "farm/bees.md:10"),
        ("蜂蜜", "zh.txt:5"),
        ("仓", "zh.txt:3"),
    ],
)
async def test_the_best_passage_is_quoted_with_file_and_line(search, query, place):
    result = await search(f"search notes for {query}")
    assert result.status is ExecutionStatus.SUCCESS, result.error
    assert result.text.split("> (`")[1].startswith(f"{place}`")


async def test_a_quote_is_word_for_word_and_names_its_heading(search):
    text = (await search("search notes for harvested")).text
    assert "> The honey is harvested in July.\n> It is sold at the gate.\n>\n" in text
    assert "> (`farm/bees.md:7`, under: Honey)" in text


async def test_a_file_and_a_number_bound_the_search(search):
    result = await search("x", query="honey jars", file="farm/bees.md", top=1)
    assert result.text.count("> (`") == 1
    assert result.text == (await search('search notes for "honey jars" in bees.md top 1')).text


@pytest.mark.parametrize(
    ("said", "given", "told"),
    [
        ("search notes for hoeny", {}, "has 'hoeny'. Did you mean 'honey'?"),
        ('search notes for "hoeny zebra"', {}, "any of these words: hoeny, zebra."),
        ("search notes for honey in guid.rst", {}, "Did you mean 'guide.rst'?"),
        ("What do the notes say about honey?", {}, "is not a command"),
        ("x", {"qery": "honey"}, "Did you mean 'query'?"),
        ("x", {"query": 5}, "The parameter 'query' cannot be 5"),
        ("x", {"query": "?!"}, "has 0 words to look for, not 1 to 12"),
    ],
)
async def test_what_is_not_found_fails_for_good_and_says_what_there_is(search, said, given, told):
    result = await search(said, **given)
    assert result.status is ExecutionStatus.FAILED
    assert not result.retry
    assert told in result.error


async def test_a_folder_without_notes_says_so(ask, tmp_path):
    result = await ask("search notes for honey", directory=tmp_path / "none")
    assert "nothing to read" in result.error


async def test_no_link_leads_out_of_the_folder(search, library, tmp_path):
    (tmp_path / "secret.txt").write_text("swordfish")
    (library / "link.txt").symlink_to(tmp_path / "secret.txt")
    (library / "linked").symlink_to(tmp_path, target_is_directory=True)
    for result in (
        await search("search notes for swordfish"),
        await search("x", query="swordfish", file="../secret.txt"),
    ):
        assert result.status is ExecutionStatus.FAILED


async def test_reports_of_our_own_and_files_that_are_no_text_are_no_sources(search, library):
    (library / "report.md").write_text(f"# Report\n\nzebra\n\n{REPORT_MARK}\n")
    (library / "binary.txt").write_bytes(b"zebra\x00\x01")
    assert (await search("search notes for zebra")).status is ExecutionStatus.FAILED


async def test_a_file_that_is_too_large_is_read_in_part_and_that_is_said(search, library):
    (library / "large.txt").write_text("zebra\n\n" + "x" * 1_000_000 + "\n\nokapi\n")
    found = (await search("search notes for zebra")).text
    assert "Only the first 1,000,000 bytes were read of: large.txt." in found
    assert (await search("search notes for okapi")).status is ExecutionStatus.FAILED


@pytest.mark.parametrize("odd", ['"', "NEAR(", "a AND", "x*", "col:umn", "'", "(", "\x00", "é"])
async def test_signs_that_mean_something_to_the_index_are_only_text(search, odd):
    assert "bees.md" in (await search("x", query=f"honey {odd}")).text


async def test_stopped_work_reads_no_further_file(library):
    searching = Searching(library)
    searching.stop()
    with pytest.raises(Exception, match="No passage"):
        searching.answer(Search(query="honey"))


def test_long_lines_are_cut_and_code_keeps_its_signs(tmp_path):
    (tmp_path / "a.md").write_text(f"{'y' * 2000}\n\n```\n# no heading\n\ncode\n```\n")
    passages = passages_in(note_files(tmp_path)[0])
    assert max(len(each.text) for each in passages) <= 900
    assert passages[-1].text == "```\n# no heading\n\ncode\n```"
    assert {each.heading for each in passages} == {""}


MARKS = (
    "# ",
    "---",
    "===",
    "- ",
    "1. ",
    "```",
    "\n",
    "\n\n",
    "\r\n",
    "\x0c",
    "\u2028",
    "\x00",
    "蜂",
)
NOTES = st.lists(st.sampled_from(MARKS) | st.text(max_size=20), max_size=30).map("".join)


@given(st.binary(max_size=200) | NOTES.map(lambda text: text.encode("utf-8", "replace")))
def test_whatever_stands_in_a_file_its_passages_stand_at_their_lines(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "noted.txt"
    path.write_bytes(b" " + content)
    # Only these end a line, as in editors; others, such as U+2028, stand within one.
    lines = re.split(r"\r\n|\r|\n", f" {content.decode('utf-8', 'replace')}")
    for passage in passages_in(FolderFile(name="noted.txt", path=path)):
        first = re.split(r"\r\n|\r|\n", passage.text)[0]
        assert first in lines[passage.line - 1]

"""The librarian quotes what the texts of its folder say, with file and line."""

from contextlib import closing

import anyio
import pytest
from hypothesis import given, strategies as st

from replan.plan.model import PlanStep
from replan_local import Librarian
from replan_local.folder import FolderFile
from replan_local.library.index import Index
from replan_local.library.research import Research, Search
from replan_local.library.terms import terms_of
from replan_local.library.texts import passages_of, text_files
from replan_local.report_mark import REPORT_MARK
from replan.state.results import ExecutionContext, ExecutionStatus

BEES = """\
# Bees

Bees are kept behind the barn.

## Honey

The honey is harvested in July.
It is sold at the gate.

- Jars cost 6 EUR.
- Old jars may be brought back.
"""
GUIDE = """\
=====
Guide
=====

How to begin.

Feeding
-------

Sheep are fed twice a day.

----

The end.
"""
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
def search(library):
    async def run(text, *, brief="", directory=library, **parameters):
        context = ExecutionContext(
            task_description=text,
            plan_step=PlanStep(id=4, description=text, brief=brief),
            parameters=parameters,
        )
        return await Librarian(directory).run(context, {})

    return run


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Find what our notes say about the harvest of honey", "farm/bees.md:7"),
        ("What do the documents say about feeding sheep?", "guide.rst:10"),
        ("jar", "farm/bees.md:10"),
        ("\u8702\u871c", "zh.txt:5"),
        ("\u67e5\u627e\u5173\u4e8e\u8c37\u4ed3\u7684\u6587\u6863", "zh.txt:3"),
        ("\u4ed3", "zh.txt:3"),
        ("\u4f4f", "zh.txt:3"),
    ],
)
async def test_the_best_passage_is_quoted_with_file_and_line(search, text, place):
    result = await search(text)
    assert result.status is ExecutionStatus.SUCCESS, result.error
    assert result.text.split("> (`")[1].startswith(f"{place}`")


async def test_a_quote_is_word_for_word_and_names_its_headings(search):
    text = (await search("harvested")).text
    assert "> The honey is harvested in July.\n> It is sold at the gate.\n>\n" in text
    assert "> (`farm/bees.md:7`, under: Bees, Honey)" in text


async def test_what_covers_more_of_the_question_is_surer(search):
    whole = await search("honey harvested")
    half = await search("honey zebras")
    assert whole.confidence > half.confidence
    assert "- None of these passages speaks of: zebras." in half.text


async def test_what_is_nowhere_fails_for_good_with_the_nearest_word(search):
    result = await search("Find what the notes say about hoeny")
    assert result.status is ExecutionStatus.FAILED
    assert not result.retry
    assert "has 'hoeny'. Did you mean 'honey'?" in result.error
    several = await search("hoeny and zebras")
    assert "any of these words: hoeny, zebras. 'hoeny': Did you mean 'honey'?" in several.error


async def test_a_folder_that_the_step_names_is_preferred(search, library):
    (library / "jars.txt").write_text("Jars, jars, jars.\n")
    assert "jars.txt:1" in (await search("jars")).text
    assert "jars.txt" not in (await search("What does the farm folder say about jars?")).text


async def test_parameters_say_what_the_text_does_not(search):
    result = await search("Do it", query="honey or jars", file="farm/bees.md", top=1)
    assert result.text.count("> (`") == 1


async def test_a_named_file_alone_shows_its_beginning(search):
    assert "How to begin." in (await search("Look at guide.rst")).text


async def test_the_brief_is_asked_where_the_line_says_nothing(search):
    assert "bees.md" in (await search("Search the notes", brief="honey")).text


@pytest.mark.parametrize(
    ("text", "parameters", "error"),
    [
        ("Search the notes", {}, "does not say what to look for"),
        ("Read guid.rst", {}, "No text file 'guid.rst'"),
        ("Read guid.rst", {}, "Did you mean 'guide.rst'?"),
        ("x", {"qery": "honey"}, "Did you mean 'query'?"),
        ("x", {"query": 5}, "must be a text"),
        ("honey", {"top": 0}, "must be a whole number from 1"),
        ("honey", {"file": {"a": 1}}, "must be a name or a list"),
    ],
)
async def test_what_does_not_fit_fails_for_good_and_says_what_there_is(
    search, text, parameters, error
):
    result = await search(text, **parameters)
    assert result.status is ExecutionStatus.FAILED
    assert error in result.error


async def test_a_folder_without_texts_says_so(search, tmp_path):
    assert "nothing to read" in (await search("honey", directory=tmp_path / "none")).error


async def test_no_link_leads_out_of_the_folder(search, library, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("swordfish")
    (library / "link.txt").symlink_to(secret)
    (library / "linked").symlink_to(tmp_path, target_is_directory=True)
    for result in (await search("swordfish"), await search("x", file="../secret.txt")):
        assert result.status is ExecutionStatus.FAILED


async def test_reports_of_our_own_and_files_that_are_no_text_are_no_sources(search, library):
    (library / "report.md").write_text(f"# Report\n\nzebra\n\n{REPORT_MARK}\n")
    (library / "binary.txt").write_bytes(b"zebra\x00\x01")
    assert (await search("zebra")).status is ExecutionStatus.FAILED


async def test_other_encodings_are_read(search, library):
    (library / "utf16.txt").write_text("Z\u00fcrich zebra", encoding="utf-16")
    (library / "latin.txt").write_bytes("Gen\u00e8ve okapi".encode("latin-1"))
    assert "utf16.txt:1" in (await search("zurich")).text
    assert "latin.txt:1" in (await search("okapi")).text


async def test_a_file_that_is_too_large_is_read_in_part_and_that_is_said(search, library):
    (library / "large.txt").write_text("zebra\n\n" + "x" * 1_000_000 + "\n\nokapi\n")
    assert "Only the first 1,000,000 bytes were read of: large.txt." in (await search("zebra")).text
    assert (await search("okapi")).status is ExecutionStatus.FAILED


def test_long_lists_are_divided_into_items_and_long_lines_are_cut(tmp_path):
    items = "".join(f"- item {n} {'word ' * 10}\n" for n in range(20))
    (tmp_path / "a.md").write_text(f"{items}\n{'y' * 2000}\n\n```\n# no heading\n\ncode\n```\n")
    passages = passages_of(text_files(tmp_path)[0])
    assert [each.line for each in passages[:3]] == [1, 2, 3]
    assert max(len(each.text) for each in passages) <= 900
    assert passages[-1].text == "```\n# no heading\n\ncode\n```"
    assert {each.heading for each in passages} == {""}


@pytest.mark.parametrize(
    "odd", ['"', "NEAR(", "a AND", "x*", "col:umn", "'", "(", "\x00", "\ud800"]
)
async def test_signs_that_mean_something_to_the_index_are_only_text(search, odd):
    result = await search(f"honey {odd}", query=f"honey {odd}")
    assert "bees.md" in result.text


async def test_stopped_work_reads_no_further_file(library):
    research = Research(library, Search(text="honey"))
    research.stop()
    with pytest.raises(Exception, match="No passage"):
        await anyio.to_thread.run_sync(research.answer)


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


@given(st.binary(max_size=200) | NOTES.map(lambda text: text.encode("utf-8", "replace")), st.text())
def test_whatever_stands_in_a_file_its_passages_stand_at_their_lines(
    tmp_path_factory, content, sought
):
    path = tmp_path_factory.getbasetemp() / "noted.txt"
    path.write_bytes(b" " + content)
    passages = passages_of(FolderFile(name="noted.txt", path=path))
    with closing(Index(passages)) as index:
        found = [hit.passage for hit in index.find(terms_of(sought))]

    lines = content.decode("utf-8", "replace").splitlines()
    assert set(found) <= set(passages)
    for passage in passages:
        assert passage.text.splitlines()[0].strip() in lines[passage.line - 1]

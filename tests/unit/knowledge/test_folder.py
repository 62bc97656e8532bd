"""A folder as knowledge: found by words, up to date, and nothing outside of it."""

import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from replan.base.texts.files import files_below
from replan.errors import RetrievalError
from replan.knowledge import FolderRetriever, SearchRequest
from replan.knowledge.index import opened


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "docs"
    (folder / "farm").mkdir(parents=True)
    (folder / "farm" / "bees.md").write_text(
        "# Bees\n\nBees are kept behind the barn.\n\n## Honey\n\nHoney is harvested in July.\n"
    )
    (folder / "zh.txt").write_text("# 退货\n\n商品可在三十天内退货。\n\n礼品卡不能退款。\n")
    (folder / "page.html").write_text(
        "<html><head><title>No</title><style>p {}</style></head>\n<body><h2>Wax &amp; more</h2>\n"
        "<p>Wax is <b>melted</b>\nslowly.</p>\n<script>honey()</script></body></html>"
    )
    return folder


@pytest.fixture
def retriever(folder, tmp_path):
    return FolderRetriever(folder, cache=tmp_path / "cache")


def places(retriever, query, **request):
    found = retriever.search(SearchRequest(query=query, **request))
    return [(each.source, each.line, each.heading) for each in found.chunks]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("When is the honey harvested?", ("farm/bees.md", 7, "Honey")),
        ("礼品卡可以退款吗", ("zh.txt", 3, "退货")),
        ("How is wax melted", ("page.html", 3, "Wax & more")),
    ],
)
def test_the_best_passage_has_its_file_its_line_and_its_heading(retriever, query, place):
    assert places(retriever, query)[0] == place


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_is_what_an_editor_counts_as_one(retriever, folder, end):
    lines = ["# Lamps\x0c", "", "First\u2028page.\x0b\x85", "", "\x1c", "", "A lantern."]
    (folder / "odd.md").write_text(end.join(lines), newline="")
    (hit,) = retriever.search(SearchRequest(query="lantern")).chunks
    assert (hit.source, hit.line, hit.heading) == ("odd.md", 3, "Lamps")
    assert hit.content.split("\n")[7 - hit.line] == "A lantern."


def test_what_changes_while_the_process_runs_is_found_at_once(retriever, folder):
    bees = folder / "farm" / "bees.md"
    before = bees.stat()
    assert places(retriever, "honey")
    text = bees.read_text().replace("Honey is harvested in July", "Honey is harvested in June")
    bees.write_text(text)
    os.utime(bees, ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "new.md").write_text("A zebra.\n")
    found = retriever.search(SearchRequest(query="harvested"))
    assert "June" in found.chunks[0].content
    assert places(retriever, "zebra") == [("new.md", 1, "")]
    bees.unlink()
    (folder / "new.md").unlink()
    assert places(retriever, "honey zebra") == []


def test_files_that_cannot_be_read_are_left_out_and_named(retriever, folder):
    (folder / "binary.md").write_bytes(b"honey\x00")
    (folder / "huge.txt").write_text("honey " * 1_000_000)
    (folder / "many.txt").write_text("# a\n\nb\n\n" * 10_001)
    found = retriever.search(SearchRequest(query="honey"))
    assert {each.source for each in found.chunks} == {"farm/bees.md"}
    assert found.skipped == [
        "binary.md is left out: it is not text.",
        "huge.txt is left out: it has more than 5,000,000 bytes.",
    ]


@pytest.mark.parametrize(("file", "who"), [("farm/bees.md", "farm/bees.md"), ("farm", "farm/")])
@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read all files")
def test_what_is_not_ours_to_read_is_named(retriever, folder, file, who):
    (folder / file).chmod(0)
    (told,) = retriever.search(SearchRequest(query="honey")).skipped
    assert told.startswith(f"{who} is left out: it cannot be read")


def test_what_of_a_folder_is_not_looked_into_is_named(folder):
    (folder / "farm" / "deep").mkdir()
    found = files_below(folder, [".md", ".txt"], deepest=2, most=1)
    assert [each.name for each in found.files] == ["farm/bees.md"]
    assert found.left_out == (
        "farm/deep/ is left out: it lies too deep.",
        "All files but the first 1 are left out.",
    )


def test_a_name_or_a_text_in_another_encoding_is_told_and_keeps_nothing_from_being_found(
    retriever, folder
):
    (folder / os.fsdecode(b"h\xf6nig.md")).write_text("Honey is H\u00f6nig.\n")
    (folder / "old.txt").write_bytes("Der H\u00f6nig.\n".encode("latin-1"))
    found = retriever.search(SearchRequest(query="h\u00f6nig"))
    assert [each.source for each in found.chunks] == ["h\\xf6nig.md"]
    assert found.skipped == ["old.txt is left out: it is not written in UTF-8."]


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("Die Straße ist zu.", ["Straße", "STRASSE", "strasse"]),
        ("Die Ru\u0308ckgabe.", ["R\u00fcckgabe", "Ru\u0308ckgabe", "ruckgabe"]),
        ("İstanbul'da.", ["İstanbul", "istanbul"]),
        ("Der o\ufb03zielle Weg.", ["OFFIZIELLE", "o\ufb03zielle"]),
        ("Und λόγος.", ["λόγος", "ΛΌΓΟΣ"]),
    ],
)
def test_a_word_is_found_in_whatever_way_its_letters_are_written(retriever, folder, text, queries):
    (folder / "word.md").write_text(text)
    for query in queries:
        assert places(retriever, query) == [("word.md", 1, "")], query


def test_no_link_leads_out_of_the_folder_and_hidden_files_do_not_count(retriever, folder, tmp_path):
    (tmp_path / "secret.md").write_text("swordfish")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    (folder / ".hidden.md").write_text("swordfish")
    (folder / "inner.md").symlink_to(folder / "farm" / "bees.md")
    assert places(retriever, "swordfish") == []
    assert {place[0] for place in places(retriever, "honey")} == {"farm/bees.md", "inner.md"}


def test_the_index_is_for_this_user_alone_and_not_in_the_folder(retriever, folder, tmp_path):
    before = sorted(folder.rglob("*"))
    places(retriever, "honey")
    (index,) = (tmp_path / "cache").glob("*.db")
    assert index.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert sorted(folder.rglob("*")) == before


def test_a_damaged_index_is_made_anew(retriever, tmp_path):
    places(retriever, "honey")
    (index,) = (tmp_path / "cache").glob("*.db")
    index.write_bytes(b"no database at all" * 100)
    assert places(retriever, "honey")
    with closing(sqlite3.connect(index)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


def test_where_the_index_cannot_be_written_it_is_said(folder, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(RetrievalError, match=r"cannot be used: .* name another cache"):
        places(FolderRetriever(folder, cache=tmp_path / "cache"), "honey")


def test_many_at_once_bring_the_index_up_to_date_together(retriever, folder):
    for number in range(50):
        (folder / f"{number}.md").write_text(f"okapi number {number}\n")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(places(retriever, "okapi", top_k=50)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(each) for each in found] == [50] * 8


def test_each_tenant_has_a_folder_of_its_own(folder, tmp_path):
    for tenant in ("north", "south"):
        (folder / tenant).mkdir()
        (folder / tenant / "a.md").write_text(f"The {tenant} opens at nine.\n")
    retriever = FolderRetriever(folder / "{tenant}", cache=tmp_path / "cache")
    found = retriever.search(SearchRequest(query="opens", tenant_id="north"))
    assert [each.content for each in found.chunks] == ["The north opens at nine."]
    for tenant in ("", "..", "../docs", "no/rth"):
        with pytest.raises(RetrievalError, match="needs a tenant"):
            places(retriever, "opens", tenant_id=tenant)


def test_a_filter_bounds_the_files_and_an_unknown_one_is_refused(retriever):
    assert places(retriever, "honey", filters={"file": "zh*"}) == []
    assert places(retriever, "honey", filters={"file": "farm/*"})
    with pytest.raises(RetrievalError, match="no filter owner"):
        places(retriever, "honey", filters={"owner": "me"})


@pytest.mark.parametrize("odd", ['"', "NEAR(", "a AND", "x*", "col:umn", "'", "(", "\x00", "é", ""])
def test_signs_that_mean_something_to_the_index_are_only_text(retriever, odd):
    assert bool(places(retriever, f"honey {odd}")) is True
    places(retriever, odd)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RetrievalError, match=r"there is no folder .*nowhere"):
        places(FolderRetriever(tmp_path / "nowhere", cache=tmp_path / "cache"), "honey")


def test_several_threads_make_a_new_index_at_once(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.md").write_text("# Refunds\n\nThey take 30 days.\n")
    with ThreadPoolExecutor(4) as threads:
        for number in range(60):
            place, begun = tmp_path / str(number) / "index.db", Barrier(4)

            def found(_, place=place, begun=begun):
                begun.wait()
                with opened(place) as index:
                    index.update(folder)
                    return len(index.search("refunds", 3))

            assert [*threads.map(found, range(4))] == [1] * 4


@pytest.mark.parametrize("others", [0, 1, 2, 30, 200])
def test_a_score_means_the_same_in_a_small_and_in_a_large_folder(tmp_path, others):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "all.md").write_text("Refunds of parcels are paid within 30 days.\n")
    (folder / "some.md").write_text("Parcels and their refunds.\n")
    (folder / "one.md").write_text("Parcels have a label.\n")
    for number in range(others):
        (folder / f"{number}.md").write_text(f"Article {number} is kept in hall {number}.\n")
    retriever = FolderRetriever(folder, cache=tmp_path / "cache")
    request = SearchRequest(query="When are refunds of parcels paid?")
    found = {each.source: each.score for each in retriever.search(request).chunks}
    assert [(name, round(score, 2)) for name, score in found.items()] == [
        ("all.md", 1.0),
        ("some.md", 0.67),
        ("one.md", 0.33),
    ]
    enough = retriever.search(request.replace(min_score=0.5))
    assert [each.source for each in enough.chunks] == ["all.md", "some.md"]
    assert [each.source for each in enough.below] == ["one.md"]


def test_scores_fall_with_the_rank_and_lie_between_0_and_1(retriever, folder):
    for number in range(20):
        words = "honey harvest summer barn bees"[: 5 + number]
        (folder / f"{number}.md").write_text(f"# {number}\n\n{words * (number % 3 + 1)}\n")
    for query in ("honey", "bees in the barn", "the honey of summer", "who", "是什么 honey", "of"):
        scores = [each.score for each in retriever.search(SearchRequest(query=query)).chunks]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)

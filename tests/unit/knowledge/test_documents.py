"""HTML, PDF and DOCX in a folder: found at their places, and none of them can do harm."""

from pathlib import Path

import pytest

from made_documents import pdf, word, word_of
from replan.base.texts.passages import passages_of
from replan.knowledge import FolderRetriever, SearchRequest, document_program, documents, read_files

ENTITIES = b"""<?xml version="1.0"?><!DOCTYPE d [
<!ENTITY a "zebra zebra zebra zebra zebra"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY file SYSTEM "file:///etc/hostname">]>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
<w:p><w:r><w:t>Okapi &c;&file; here</w:t></w:r></w:p></w:body></w:document>"""

SPANS = b"""<?xml version="1.0"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="600"/></w:tcPr><w:p/></w:tc>
<w:tc><w:tcPr><w:gridSpan w:val="300000000"/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>
</w:body></w:document>"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def retriever(folder, tmp_path):
    return FolderRetriever(folder, cache=tmp_path / "cache")


def search(retriever, query):
    found = retriever.search(SearchRequest(query=query))
    chunks = [(each.source, each.line, each.heading, each.content) for each in found.chunks]
    return chunks, list(found.skipped)


def test_a_passage_of_a_pdf_has_its_page(retriever, folder):
    (folder / "manual.pdf").write_bytes(pdf("Lamps need oil.", "", "The  zebra\tis striped."))
    assert search(retriever, "striped zebra") == (
        [("manual.pdf", 3, "", "The zebra is striped.")],
        [],
    )


def test_a_passage_of_a_docx_has_its_paragraph_and_its_heading(retriever, folder):
    (folder / "a.docx").write_bytes(
        word("# Honey", "It is sweet.", "Bees make it.", "# Prices", ("Lamp", "20 EUR"))
    )
    assert search(retriever, "bees honey sweet")[0] == [
        ("a.docx", 2, "Honey", "It is sweet.\nBees make it.")
    ]
    assert search(retriever, "lamp")[0] == [("a.docx", 5, "Prices", "Lamp | 20 EUR")]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.pdf", b"%PDF-1.4 and nothing more", "it is damaged"),
        ("a.docx", b"PK\x03\x04 nothing", "it is damaged"),
        ("a.pdf", pdf("", ""), "it has no text, as a scan has none"),
        ("a.pdf", pdf(*[""] * 2_001), "it has more than 2,000 pages"),
        (
            "a.docx",
            word_of(b" ", claimed=100_000_001),
            "more than 100,000,000 bytes when it is unpacked",
        ),
        ("a.docx", word_of(ENTITIES), "it declares entities of its own"),
        ("a.docx", word_of(SPANS), "it has a table of more than 1,000 columns"),
        ("a.html", b"<p>&#" + b"1" * 4_301 + b";</p>", "it is damaged (ValueError)"),
    ],
    # A name made of the content would have the time of a ZIP file in it.
    ids=[
        "no PDF",
        "no ZIP",
        "no text",
        "pages",
        "unpacked",
        "entities",
        "columns",
        "digits",
    ],
)
def test_a_document_that_cannot_be_read_is_left_out_and_named(
    retriever, folder, monkeypatch, name, content, problem
):
    monkeypatch.setattr(documents, "SECONDS", 600)
    (folder / name).write_bytes(content)
    (folder / "b.md").write_text("A zebra.\n")
    chunks, (left_out,) = search(retriever, "zebra")
    assert [each[0] for each in chunks] == ["b.md"]
    assert left_out.startswith(f"{name} is left out: ")
    assert problem in left_out


def test_a_document_of_too_many_paragraphs_is_left_out(retriever, folder, tmp_path, monkeypatch):
    # To read half a million takes many seconds: here the program has a smaller bound.
    program = tmp_path / "program.py"
    text = Path(document_program.__file__).read_text("utf-8")
    program.write_text(text.replace("MOST_LINES = 500_000", "MOST_LINES = 1_000"), "utf-8")
    monkeypatch.setattr(document_program, "__file__", str(program))
    (folder / "a.html").write_bytes(b"<p>a" * 1_000)
    (folder / "b.html").write_bytes(b"<p>a" * 1_001)
    chunks, left_out = search(retriever, "a")
    assert {name for name, *_ in chunks} == {"a.html"}
    assert left_out == ["b.html is left out: it has more than 1,000 paragraphs."]


def test_a_document_that_is_too_large_is_left_out(retriever, folder, monkeypatch):
    monkeypatch.setattr(documents, "LARGEST", 1_000)
    (folder / "a.pdf").write_bytes(b" " * 1_001)
    assert search(retriever, "zebra") == (
        [],
        ["a.pdf is left out: it has more than 1,000 bytes."],
    )


@pytest.mark.parametrize(
    ("name", "content"), [("a.pdf", pdf("A zebra.")), ("a.html", b"<p" * 2_400_000)]
)
def test_a_document_that_takes_too_long_is_left_out(retriever, folder, monkeypatch, name, content):
    monkeypatch.setattr(documents, "SECONDS", 0.001)
    (folder / name).write_bytes(content)
    (folder / "b.md").write_text("A zebra.\n")
    chunks, left_out = search(retriever, "zebra")
    assert [each[0] for each in chunks] == ["b.md"]
    assert left_out == [f"{name} is left out: reading it takes more than 0.001 s."]


def test_whatever_a_reader_raises_leaves_out_its_file_alone(retriever, folder, monkeypatch):
    def broken(name, text):
        if name == "a.rst":
            raise ZeroDivisionError(text)
        return passages_of(name, text)

    monkeypatch.setattr(read_files, "passages_of", broken)
    (folder / "a.rst").write_text("A zebra.\n")
    (folder / "b.md").write_text("A zebra.\n")
    chunks, left_out = search(retriever, "zebra")
    assert [each[0] for each in chunks] == ["b.md"]
    assert left_out == ["a.rst is left out: it cannot be read (ZeroDivisionError)."]


@pytest.mark.parametrize("name", ["a.md", "a.html"])
def test_a_heading_stands_at_each_of_its_passages_only_as_long_as_a_passage(
    retriever, folder, name
):
    long = "zebra " * 10_000
    title = f"<h1>{long}</h1><p>Okapi.</p>" if name == "a.html" else f"# {long}\n\nOkapi.\n"
    (folder / name).write_text(title)
    ((_, _, heading, _),), _ = search(retriever, "okapi")
    assert len(heading) == 900


def test_a_page_is_divided_at_its_blocks_and_their_lines(retriever, folder):
    page = "<title>Zoo</title>\n<h1>Okapi</h1>\n<p>An <b>okapi</b>\neats.</p>\n"
    (folder / "a.HTM").write_text(f"{page}<script>okapi()</script>")
    assert search(retriever, "eats") == ([("a.HTM", 3, "Okapi", "An okapi eats.")], [])
    (folder / "a.HTM").write_text("<script>nothing to read</script>")
    assert search(retriever, "eats") == ([], [])


def test_a_name_that_shows_as_another_one_is_written_as_numbers(retriever, folder):
    (folder / "a\nSYSTEM: b.md").write_text("A zebra.\n")
    (folder / "a\\nSYSTEM: b.md").write_text("A zebra.\n")
    (folder / "c\u202efdp.md").write_text("A zebra.\n")
    (folder / "d\u2028.pdf").write_bytes(b"no PDF")
    chunks, left_out = search(retriever, "zebra")
    names = {each[0] for each in chunks}
    assert names == {r"a\nSYSTEM: b.md", r"a\\nSYSTEM: b.md", r"c\u202efdp.md"}
    assert left_out[0].startswith(r"d\u2028.pdf is left out: ")


def test_the_extra_is_named_and_the_file_is_read_as_soon_as_it_is_there(
    retriever, folder, monkeypatch
):
    (folder / "a.pdf").write_bytes(pdf("A zebra."))
    with monkeypatch.context() as without:
        without.setitem(documents.PACKAGES, ".pdf", "no_such_package")
        assert search(retriever, "zebra") == (
            [],
            ["a.pdf is left out: to read it, pip install 'replan[documents]'."],
        )
    assert search(retriever, "zebra") == ([("a.pdf", 1, "", "A zebra.")], [])

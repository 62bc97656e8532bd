"""Marks that cite sources are listed, marks that name none go, all other text stays."""

import pytest

from replan.knowledge import Source
from replan.replies.citations import cited

SOURCES = (
    Source(source="a/refunds.md", line=3, last_line=6, heading="Refunds"),
    Source(source="https://example.org/x"),
    Source(source="Smith, J; notes.md", line=1, last_line=4),
)


@pytest.mark.parametrize(
    ("text", "kept", "listed"),
    [
        ("Yes [[a/refunds.md:3]].", "Yes [[a/refunds.md:3]].", ["a/refunds.md:3 (Refunds)"]),
        ("Yes [[a/refunds.md:6]].", "Yes [[a/refunds.md:6]].", ["a/refunds.md:6 (Refunds)"]),
        ("Yes [[a/refunds.md:7]].", "Yes.", []),
        ("Yes [[refunds.md:3]] [[made up]].", "Yes.", []),
        (
            "Yes [[a/refunds.md:3-5; b.md:1, https://example.org/x]]!",
            "Yes [[a/refunds.md:3]], [[https://example.org/x]]!",
            ["a/refunds.md:3 (Refunds)", "https://example.org/x"],
        ),
        (
            "Yes [[Smith, J; notes.md:2]].",
            "Yes [[Smith, J; notes.md:2]].",
            ["Smith, J; notes.md:2"],
        ),
        (
            "Yes [[Smith, J; notes.md:2-3, a/refunds.md:4]].",
            "Yes [[Smith, J; notes.md:2]], [[a/refunds.md:4]].",
            ["Smith, J; notes.md:2", "a/refunds.md:4 (Refunds)"],
        ),
        ("`[[1]]` and\n```\n[[x]]\n```\n[[x]]", "`[[1]]` and\n```\n[[x]]\n```\n", []),
        ("[x](y) [1] [[1, 2], [3, 4]]", "[x](y) [1] [[1, 2], [3, 4]]", []),
    ],
)
def test_what_is_cited_is_listed_once_and_false_marks_go(text, kept, listed):
    told, sources = cited(text, SOURCES)
    assert told == kept
    assert sources.splitlines()[2:] == [f"- {each}" for each in listed]


def test_a_run_without_sources_keeps_its_answer_byte_for_byte():
    assert cited("See [[wiki]].", ()) == ("See [[wiki]].", "")

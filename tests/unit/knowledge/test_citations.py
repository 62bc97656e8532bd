"""Marks that cite sources are listed, marks that name none go, all other text stays."""

import pytest

from cases import cases_of, check_cases
from replan.knowledge import Source
from replan.prompts.replies.citations import cited

SOURCES = (
    Source(source="a/refunds.md", line=3, last_line=6, heading="Refunds"),
    Source(source="https://example.org/x"),
    Source(source="Smith, J; notes.md", line=1, last_line=4),
)


@pytest.mark.parametrize("name", cases_of(__file__))
def test_of_a_text_is_kept_and_listed_what_the_page_has(name):
    check_cases(__file__, name, lambda _, text: "\n".join(cited(text, SOURCES)))


def test_a_run_without_sources_keeps_its_answer_byte_for_byte():
    assert cited("See [[wiki]].", ()) == ("See [[wiki]].", "")

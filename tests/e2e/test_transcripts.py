"""What people type and are answered, as the pages of `transcripts/` have it."""

from pathlib import Path

import pytest

from transcripts import carry_out, sections_of

PAGES = sorted((Path(__file__).parent / "transcripts").glob("*.md"))
SESSIONS = [(page, name) for page in PAGES for name in sections_of(page) if name]


@pytest.mark.parametrize(
    ("page", "heading"), SESSIONS, ids=[f"{page.stem}: {name}" for page, name in SESSIONS]
)
def test_people_are_answered_as_the_page_has_it(page, heading, tmp_path):
    now, told = carry_out(page, heading, tmp_path)
    assert now == told

"""The files that the guides for developers name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (ROOT / "src" / "replan", ROOT / "src", ROOT)
NAMED = re.compile(r"`(\w[\w.]*(?:/[\w.]+)+/?)`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_each_path_of_a_page_leads_to_something(page):
    named = NAMED.findall((ROOT / page).read_text(encoding="utf-8"))
    assert named
    assert [each for each in named if not any((place / each).exists() for place in PLACES)] == []

"""The files that the guides for developers name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (ROOT / "src" / "replan", ROOT / "src", ROOT)
NAMED = re.compile(r"`(\w[\w.]*(?:/[\w.]+)+/?|\w+\.(?:py|toml|yaml))`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_each_path_of_a_page_leads_to_something(page):
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert any(map(NAMED.search, lines))
    assert [each for line in lines for each in lost(line)] == []


def lost(line):
    """The paths of a line that lead nowhere; a bare name is in a folder that the line named."""
    folders = [*PLACES]
    for named in NAMED.findall(line):
        there = [each / named for each in folders if (each / named).exists()]
        if not there:
            yield named
        folders += [path if path.is_dir() else path.parent for path in there]


def test_what_make_check_fuzzes_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (named,) = re.findall(r"(?ms)^FUZZED := \$\(addprefix (\S+?),(.*?)\)$", makefile)
    before, paths = named
    fuzzed = paths.replace("\\", " ").split()
    assert len(fuzzed) > 5
    assert [each for each in fuzzed if not (ROOT / f"{before}{each}").exists()] == []

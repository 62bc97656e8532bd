"""The documentation builds as a site, and its reference has every public name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import replan
import replan.testing

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# What a browser would fetch by itself when it shows a page.
FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//""")

PUBLIC = [f"replan.{name}" for name in replan.__all__]
PUBLIC += [f"replan.testing.{name}" for name in replan.testing.__all__]


def named_on_pages() -> dict[str, str]:
    """The page of each name of the reference."""
    pages: dict[str, str] = {}
    for page in sorted(REFERENCE.glob("*.md")):
        for name in NAMED.findall(page.read_text(encoding="utf-8")):
            assert name not in pages, f"{name} stands on {pages.get(name)} and on {page.name}"
            pages[name] = page.name
    return pages


def test_every_public_name_stands_in_the_reference():
    assert set(PUBLIC) - set(named_on_pages()) == set()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    site = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "WARNING" not in ended.stderr
    return site


def test_every_public_name_has_its_docstring_in_the_site(site: Path):
    for name, page in named_on_pages().items():
        text = (site / "reference" / page).with_suffix(".html").read_text(encoding="utf-8")
        _, found, below = text.partition(f'id="{name}"')
        assert found, f"{name} is not on {page}"
        assert re.search(r'<div class="doc doc-contents[^"]*">\s*<p>\w', below), name


def test_the_site_needs_no_server(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    for page in pages:
        assert FETCHED.search(page.read_text(encoding="utf-8")) is None, page.name
    assert "fonts.g" not in (site / "index.html").read_text(encoding="utf-8")

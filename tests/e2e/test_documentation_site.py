"""The documentation builds as a site, and its reference has every public name."""

import html
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.main import get_command
from typer.testing import CliRunner

import replan
import replan.testing
from replan.cli.main import app
from replan.events.types import BaseEvent

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# What a browser would fetch by itself when it shows a page.
FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//""")

# What people type wrong, and a piece of what they are told.
TOLD = {
    "run gone.md": "There is no plan document",
    "run x --limit rounds=1": "is not a limit",
    "runs --storage gone.db": "There is no storage",
    "show last --storage gone.db": "There is no storage",
    "init .": "already; nothing was written",
}

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


def test_every_public_name_has_signature_docstring_and_example_in_the_site(site: Path):
    headings = re.compile(r'<h2 id="replan[\w.]*"')
    for name, page in named_on_pages().items():
        text = (site / "reference" / page).with_suffix(".html").read_text(encoding="utf-8")
        _, found, below = text.partition(f'<h2 id="{name}"')
        assert found, f"{name} is not on {page}"
        own = headings.split(below)[0]
        assert re.search(r'<div class="doc doc-contents[^"]*">\s*<p>\w', own), name
        if name in PUBLIC:
            assert "<strong>Example</strong>" in own, name
            told = html.unescape(re.sub(r"<[^>]+>", "", own.partition("doc-contents")[0]))
            assert fields_of(name) <= set(re.findall(r"(\w+):", told)), name


def fields_of(name: str) -> set[str]:
    """What a signature has to tell: the fields, if pydantic makes the class."""
    kind = getattr(replan.testing if "testing" in name else replan, name.rpartition(".")[2])
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return set(kind.model_fields) if is_model else set()


def test_the_site_needs_no_server(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    for page in pages:
        assert FETCHED.search(page.read_text(encoding="utf-8")) is None, page.name
    assert "fonts.g" not in (site / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The hook of the site, with its neighbours."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return runpy.run_path(str(ROOT / "docs" / "site_pages.py"))


def test_every_event_error_setting_and_command_has_its_anchor(site: Path, script: dict[str, Any]):
    pages = {
        "event": {kind.model_fields["type"].default for kind in script["_below"](BaseEvent)},
        "error": {
            *(each for each in vars(replan) if each.endswith("Error")),
            "there-is-no-plan-document-check-the-path",
        },
        "setting": {
            f"{part.__name__}.{n}" for part in script["SETTINGS"] for n in part.model_fields
        },
        "command": {
            "-".join(words) for words, _ in script["_commands"](get_command(app), ("replan",))
        },
    }
    for page, anchors in pages.items():
        text = (site / "reference" / f"every_{page}.html").read_text(encoding="utf-8")
        assert {each for each in anchors if f'id="{each}"' not in text} == set()


def test_what_people_are_told_is_on_the_page_of_errors(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team.yaml").touch()
    texts = [each.text for each in script["error_texts"]()]
    for words, piece in TOLD.items():
        ended = CliRunner().invoke(app, shlex.split(words))
        told = " ".join(ended.output.split())
        forms = [text for text in texts if piece in text]
        assert any(re.search(form_of(text), told) for text in forms), f"{words}: {told}"


def form_of(text: str) -> str:
    """What a text looks like with names and values in the places of `...`."""
    return ".+?".join(map(re.escape, text.removesuffix(".").split("...")))


def test_the_search_finds_a_page_from_the_disk(site: Path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(program).exists():
        pytest.skip("there is no Chromium: apt-get install chromium, or set CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "reference" / "limits.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("idempotency key")
        found = page.wait_for_selector("a.md-search-result__link", timeout=30_000)
        target = found.get_attribute("href")
        page.goto(target)
        title = page.title()
        browser.close()
    assert title.endswith("Replan")
    assert target.startswith("file:")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_every_extra_stands_in_the_table_of_the_start_page():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    table = re.findall(
        r"^\| `([\w-]+)` \|", (ROOT / "docs" / "index.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(table) == sorted(extras["optional-dependencies"])


def test_the_texts_of_errors_that_the_troubleshooting_names_are_those_of_the_program():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    _, _, section = page.partition("## By the text of the error\n")
    texts = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
    source = " ".join(each.read_text("utf-8") for each in (ROOT / "src").rglob("*.py"))
    # A text may be cut into pieces over lines, and begin with an f.
    joined = re.sub(r'["\']\s+f?["\']', "", source)
    assert len(texts) > 8
    assert [text for text in texts if text not in joined] == []


def test_each_figure_stands_in_the_tables_of_the_benchmarks():
    measured = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    page = (ROOT / "docs" / "figures.md").read_text("utf-8")
    figures = re.findall(r"^\| [^|]+ \| ([\d.]+) \|", page, re.MULTILINE)
    assert len(figures) > 10
    assert [each for each in figures if not re.search(rf"\b{re.escape(each)}\b", measured)] == []

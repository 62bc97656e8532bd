"""The documentation builds as a site, and its reference has every public name."""

import html
import os
import re
import runpy
import shlex
import tomllib
from collections.abc import Callable
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect
from pydantic import BaseModel
from typer.main import get_command
from typer.testing import CliRunner

import replan
import replan.testing
import warm
from replan.base.public_names import PACKAGES
from replan.cli.main import app
from replan.events import BaseEvent

# The site takes its time to build, more so on a busy machine.
pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# What a browser would fetch by itself when it shows a page.
FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//""")


def team_of(model: str) -> Any:
    """A graph of one specialist."""
    worker = replan.Specialist("worker", "Works.", run=str)
    return replan.build_graph(replan.Team(replan.Host(model), [worker]))


# What people type wrong, and a piece of what they are told.
TOLD = {
    "run gone.md": "There is no plan document",
    "run x --set rounds=1": "is not a limit",
    "runs --storage gone.db": "There is no storage",
    "show last --storage gone.db": "There is no storage",
    "init .": "already; nothing was written",
}

# The same and others, as people paste them into the search, by the anchors of their entries.
SEARCHED = {
    "run gone.md": "there-is-no-plan-document-check-the-path",
    "run x --set rounds=1": "is-not-a-limit-write-name-value-with",
    "show last --storage gone.db": "there-is-no-storage-name-an-existing-file",
    "init .": "has-already-nothing-was-written-choose-another-folder",
    "check": "there-is-nothing-to-check-name-a-plan",
    "runs --outcome done": "outcome-does-not-exist-use-one-of",
}
RAISED: dict[str, Callable[[], object]] = {
    "it-names-no-provider-write-offline-openai-name": lambda: team_of("gpt"),
    "step-waits-for-step-which-this-plan-does": lambda: replan.PlanDocument.parse(
        "- [ ] 1. Write @a (after 7)\n"
    ),
    "replan-does-not-know-this-kind-of-storage": lambda: replan.open_runtime(
        team_of("offline"), storage="mysql://here"
    ).__enter__(),
    "ask-user-was-called-outside-a-specialist-s": lambda: replan.ask_user("Which colour?"),
    "names-whom-the-team-does-not-have-use": lambda: replan.run_sync(
        team_of("offline"), {"plan": "- [ ] 1. Write @writer\n"}
    ),
    "there-is-nothing-to-do-give-messages-with": lambda: replan.run_sync(team_of("offline"), ""),
}

PUBLIC = [f"{each}.{name}" for each in PACKAGES for name in import_module(each).__all__]
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
    with chdir(ROOT):
        ended = warm.run(
            *("-m", "mkdocs", "build", "--strict", "--site-dir", site),
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            timeout=280,
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
        assert re.search(r'<div class="doc doc-contents[^"]*">\s*<p>(?:<code>)?\w', own), name
        if name in PUBLIC:
            assert "<strong>Example</strong>" in own, name
            told = html.unescape(re.sub(r"<[^>]+>", "", own.partition("doc-contents")[0]))
            assert fields_of(name) <= set(re.findall(r"(\w+):", told)), name


def fields_of(name: str) -> set[str]:
    """What a signature has to tell: the fields, if the class is one of our values."""
    package, _, own = name.rpartition(".")
    kind = getattr(import_module(package), own, None) if package in PACKAGES else None
    is_value = isinstance(kind, type) and issubclass(kind, BaseModel)
    return set(kind.model_fields) if is_value else set()


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
            *(
                each.rpartition(".")[2]
                for each in named_on_pages()
                if each.endswith("Error") and "testing" not in each
            ),
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


@pytest.fixture(scope="module")
async def asked() -> list[str]:
    """What the page of the site asks for."""
    return []


@pytest.fixture(scope="module")
async def page(site: Path, module_chromium: Browser, asked: list[str]) -> Page:
    """A page of the site in a browser, from the disk: its search reads the index once."""
    page = await module_chromium.new_page()
    page.on("request", lambda request: asked.append(request.url))
    await page.goto((site / "reference" / "limits.html").as_uri())
    await page.click("input.md-search__input")
    return page


async def test_the_search_has_the_page_of_a_name_first_and_knows_operators_in_long_queries(
    page: Page,
):
    # A guide stands before the reference of its name; a sign before a word is no pasted text.
    cases = {
        "errors": ["reference/errors.html"],
        "jobs": ["jobs.html", "reference/jobs.html"],
        "which word has a meaning here +glossary -jobs": ["glossary.html", "coming_from.html"],
    }
    base = page.url.removesuffix("reference/limits.html")
    found = page.locator("li.md-search-result__item > a.md-search-result__link:first-child")
    for query, first in cases.items():
        await page.fill("input.md-search__input", query)
        await page.keyboard.press("End")
        for at, target in enumerate(first):
            await expect(found.nth(at)).to_have_attribute(
                "href", re.compile(re.escape(base + target) + r"(\?|$)"), timeout=30_000
            )


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Texts of errors as people see them, and the anchors of their entries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team.yaml").touch()
    commands = {command_told(words): anchor for words, anchor in SEARCHED.items()}
    return commands | {raised(does): anchor for anchor, does in RAISED.items()}


async def test_the_search_finds_the_entry_of_an_error_by_its_whole_text(
    told: dict[str, str], page: Page
):
    assert len(told) > 9
    for text, anchor in told.items():
        await page.fill("input.md-search__input", text)
        await page.keyboard.press("End")  # the search begins when a key is released
        # Of each page, its best section is visible; the other ones are folded below it.
        pages = "li.md-search-result__item:nth-child(-n+3)"
        entry = page.locator(f"{pages} a.md-search-result__link[href*='#{anchor}']")
        await entry.first.wait_for(state="attached", timeout=30_000)


async def test_the_search_finds_a_page_from_the_disk_and_asks_no_server(
    page: Page, asked: list[str]
):
    await page.fill("input.md-search__input", "idempotency key")
    await page.keyboard.press("End")
    found = page.locator("a.md-search-result__link[href*='effects.html']")
    await found.first.wait_for(state="attached", timeout=30_000)
    target = await found.first.get_attribute("href")
    await page.goto(target)
    assert (await page.title()).endswith("Replan")
    assert target.startswith("file:")
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def command_told(words: str) -> str:
    return " ".join(CliRunner().invoke(app, shlex.split(words)).output.split())


def raised(does: Callable[[], object]) -> str:
    with pytest.raises(replan.ReplanError) as caught:
        does()
    return str(caught.value)


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

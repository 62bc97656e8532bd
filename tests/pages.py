"""The pages of `replan ui` on a free port of loopback, and the Chromium that opens them."""

import os
import shutil
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import async_playwright

import warm
from replan.cli.page.served_pages import open_pages

OWNER = "the-token-of-the-owner"
SCREENS = "REPLAN_TEST_SCREENS"
"""Names a folder for pictures of the pages."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# The last ones spare processes: for pictures, of which it has no hardware, and for each page.
_OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--in-process-gpu"]
_OPTIONS += ["--renderer-process-limit=1"]


def chromium():
    """The browser of this machine: what REPLAN_TEST_CHROMIUM says, else the one on the path."""
    named = os.environ.get("REPLAN_TEST_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        told = "There is no Chromium: apt-get install chromium, or set REPLAN_TEST_CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    return found


class PageClient(httpx.AsyncClient):
    """A client whose paths are those of links, or without what is before each of them."""

    def build_request(self, method, url, **options):
        """Make a request."""
        before, sign, after = str(url).partition("/ui/")
        is_link = sign and not before.startswith("http")
        return super().build_request(method, after if is_link else url, **options)


@asynccontextmanager
async def shown(team, storage, tokens=OWNER, **options):
    """The pages, and a client that has a token."""
    teams = team if isinstance(team, dict) else {"house": team}
    async with (
        open_pages(teams, storage, tokens, **options) as address,
        PageClient(
            base_url=address.partition("enter")[0],
            headers={"Authorization": f"Bearer {OWNER}"},
            trust_env=False,
            timeout=60,
        ) as client,
    ):
        client.opening = address
        yield client


@contextmanager
def program(folder, port):
    """`replan ui house.yaml` as a program, and the address that it printed."""
    words = ["-m", "replan", "ui", str(folder / "house.yaml"), "--port", str(port)]
    words += ["--storage", str(folder / "runs.db"), "--shutdown-timeout", "1"]
    reads, writes = os.pipe()
    with os.fdopen(reads) as errors, warm.Process(words, stderr=writes) as program:
        os.close(writes)
        told = errors.readline()
        assert told.startswith("Open http://127.0.0.1:"), told
        yield told.split()[1]
        program.terminate()
        assert program.wait() == 0


@asynccontextmanager
async def browser():
    """A browser without a screen."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium(), args=_OPTIONS)
        try:
            yield started
        finally:
            await started.close()


async def screen(page, name):
    """Keep a picture of a page, if people want to look through them."""
    if folder := os.environ.get(SCREENS):
        await page.screenshot(path=Path(folder, f"{name}.png"), full_page=True)

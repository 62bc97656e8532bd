"""The pages of `replan ui` on a free port of loopback, and the Chromium that opens them."""

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import async_playwright

from replan.ui.serving import open_pages

OWNER = "the-token-of-the-owner"
SCREENS = Path(__file__).parent.parent / "build" / "screens"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium():
    """The browser of this machine: what REPLAN_CHROMIUM says, else the one on the path."""
    named = os.environ.get("REPLAN_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        told = "There is no Chromium. Get it: apt-get install chromium, or set REPLAN_CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    return found


@asynccontextmanager
async def shown(team, storage, tokens=OWNER, **options):
    """The pages, and a client that has a token."""
    teams = team if isinstance(team, dict) else {"house": team}
    async with (
        open_pages(teams, storage, tokens, **options) as address,
        httpx.AsyncClient(
            base_url=address.partition("enter")[0],
            headers={"Authorization": f"Bearer {OWNER}"},
            trust_env=False,
            timeout=60,
        ) as client,
    ):
        client.opening = address
        yield client


@asynccontextmanager
async def browser():
    """A browser without a screen."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield started
        finally:
            await started.close()


async def screen(page, name):
    """Keep a picture of a page for people to look through."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=SCREENS / f"{name}.png", full_page=True)

"""Take the picture of a run on the page again.

    python docs/make_page_picture.py

runs the demo, opens its page in the Chromium of this machine, and writes `docs/images/page.png`.
"""

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from replan import open_runtime, open_storage
from replan.cli.page.served_pages import open_pages
from replan_local import local_team

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "page.png"
SIZE = {"width": 1180, "height": 1020}


async def main() -> None:
    """Run the demo, and take the picture."""
    task = re.search(r"^DEMO_TASK := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    if task is None:
        raise LookupError("The Makefile has no DEMO_TASK.")
    with tempfile.TemporaryDirectory() as out:
        team = local_team(ROOT / "examples" / "data", Path(out))
        async with open_storage(":memory:") as storage:
            async with open_runtime(team, storage=storage) as runtime:
                await (await runtime.start(task[1], run_id="demo"))
            async with open_pages({"local": team}, storage, "the-token-of-the-picture") as address:
                await taken(address)


async def taken(address: str) -> None:
    """Open the page of the run, and take the picture."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page(viewport=SIZE, device_scale_factor=1.25)
        await page.goto(address)
        await page.goto(f"{address.partition('enter')[0]}runs/demo")
        await page.screenshot(path=PICTURE)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())

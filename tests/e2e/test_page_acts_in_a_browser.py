"""The page driven in a real Chromium: by two people, by the keyboard, while its run is killed."""

import asyncio
import os

from acts_teams import END, Fence
from kept_runs import TEAM, KeptRun, kill_once_seen
from pages import OWNER, screen, shown
from replan import open_storage
from replan.testing import ScriptedModel, always

PLAN = (
    "- [ ] 1. Measure @worker\n- [ ] 2. Paint @painter (after 1)\n- [ ] 3. Pay @worker (after 2)\n"
)


async def entered(client, chromium, **options):
    """A page of a browser that has come in with a token."""
    context = await chromium.new_context(**options)
    page = await context.new_page()
    page.set_default_timeout(15_000)
    await page.goto(f"{client.base_url}enter")
    await page.fill("#token", OWNER)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("h1 >> text=Runs")
    return page


async def focused(page, selector):
    """Go to an element by the tab key alone."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate(f"document.activeElement?.matches({selector!r}) ?? false"):
            return
    raise AssertionError(f"the tab key does not reach {selector}")


async def test_two_people_act_on_one_run_and_the_second_is_told_what_is_asked_now(chromium):
    fence = Fence()
    model = ScriptedModel({"think": always(f"---\ncomplexity: complex\n---\n{PLAN}"), **END})
    async with (
        open_storage(":memory:") as storage,
        shown(fence.team(model, approval="plan"), storage) as client,
    ):
        one = await entered(client, chromium, viewport={"width": 1280, "height": 900})
        phone = {"viewport": {"width": 390, "height": 844}, "java_script_enabled": False}
        two = await entered(client, chromium, **phone)
        await _started(one)
        where = one.url
        # Without scripts, on a phone, and by the keyboard alone.
        await two.goto(where)
        await _edited(one)
        await _too_late(two)
        # What one person types stays, while the other one answers.
        await one.fill("textarea[name=text]", "red")
        await focused(two, "textarea[name=text]")
        await two.keyboard.type("blue")
        await focused(two, "#asks button")
        await two.keyboard.press("Enter")
        await two.wait_for_url(where)
        await one.wait_for_selector("#head .o-completed")
        assert fence.painted == ["blue"]
        await one.goto(f"{where}?tab=history")
        assert "owner answered 2/painter/1: blue" in await one.inner_text("main")
        await one.goto(f"{where}/steps/1")
        await one.click("text=Retry")
        await one.wait_for_selector("text=keeps no step, and runs step 1, Measure; ")
        await screen(one, "retry_confirm")
        await _chatted(one, client)
        assert fence.painted == ["blue", "green"]


async def test_a_run_that_is_killed_under_an_open_page_goes_on_and_its_doubt_is_decided_there(
    chromium, tmp_path
):
    kept = KeptRun(tmp_path, str(tmp_path / "runs.db"), traps={3: kill_once_seen})
    (tmp_path / "team.yaml").write_text(TEAM.replace(", effects: pure", ""))
    os.mkfifo(tmp_path / "seen")
    async with (
        open_storage(kept.where) as storage,
        shown(Fence().team(), storage) as client,
    ):
        page, faults = await entered(client, chromium), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        dies = asyncio.ensure_future(asyncio.to_thread(kept.die, kept.begin))
        async with asyncio.timeout(30):
            while not (records := await storage.runs.recent(1)) and not dies.done():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await page.goto(f"{client.base_url}runs/{records[0].run_id}")
        await page.wait_for_selector("#n3.s-running")
        await page.wait_for_selector("#n2.s-done")
        await asyncio.to_thread((tmp_path / "seen").write_text, "")
        await dies
        kept.traps.clear()
        await page.wait_for_selector("#head .o-interrupted")
        await screen(page, "killed")
        with kept.at_work():
            await page.click("text=Resume…")
            await page.click("button >> text=Resume")
            await page.wait_for_selector("#asks >> text=unknown outcome")
            await screen(page, "unknown_outcome")
            await _sees_what_answers_lead_to(page)
            await page.click("text=Run it again…")
            await page.wait_for_selector("h1 >> text=Run it again?")
            await page.click("button.main")
            await page.wait_for_selector("#head .o-completed")
        assert sorted(kept.effects) == [1, 2, 3, 4, 5, 6]
        assert faults == []


async def _sees_what_answers_lead_to(page):
    asked = await page.inner_text("#asks")
    assert "It is done: what you write becomes its result, and the steps that" in asked
    # Who has buttons needs no words to type, and what is asked stands there once.
    assert "REASON" not in asked
    assert "{" not in asked


async def _started(page):
    await page.click("text=Start")
    await page.fill("textarea[name=task]", "Build a fence")
    await screen(page, "start")
    await focused(page, "button.main")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#asks .ask")
    await screen(page, "asked_plan")


async def _edited(page):
    await page.click("#asks >> text=Edit the plan")
    text = await page.input_value("textarea[name=plan]")
    await page.fill("textarea[name=plan]", text.replace("3. Pay", "3. Thank"))
    await page.click("text=Show what would run")
    await page.wait_for_selector(".d-added >> text=Thank")
    await screen(page, "edit_confirm")
    await page.click("text=Let it run")
    await page.wait_for_selector("#asks >> text=Hue?")
    await page.wait_for_selector("#n3 >> text=Thank")
    await screen(page, "asked_question")


async def _too_late(page):
    await focused(page, "#asks button[value=approve]")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("h1 >> text=Nothing was done")
    assert "Hue?" in await page.inner_text("main")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await screen(page, "phone_stale")


async def _chatted(page, client):
    await page.goto(f"{client.base_url}chat")
    await page.click("text=New chat")
    await page.fill("textarea[name=text]", "Build another fence")
    await focused(page, "button.main")
    await page.keyboard.press("Enter")
    await page.click(".ask button[value=approve]")
    await page.click("button.main >> text=Approve")
    await page.wait_for_selector("text=Hue?")
    await page.fill("textarea[name=text]", "green")
    await page.click("text=Send")
    await page.wait_for_selector(".by-assistant >> text=The end.")
    await screen(page, "chat")

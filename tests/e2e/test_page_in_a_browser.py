"""The pages in a real Chromium: a run that goes on, a server that ends, texts that mean harm."""

import asyncio
import re

from langchain_core.messages import AIMessage

from harmful import Harm, harmful_events
from pages import OWNER, screen, shown
from replan import Host, Specialist, Team, ask_user, open_runtime, open_storage
from replan.log.rows import KeptText
from replan.ports.ask_user import ask
from replan.testing import ScriptedModel, always
from replan.views.run.timeline import LEGEND

END = {"feedback": always("---\nverdict: complete\n---\nThe **end**.")}
PLAN = """# Fence

- [ ] 1. Measure @worker
- [ ] 2. Buy wood @worker (after 1)
- [ ] 3. Choose a colour @painter (after 1)
- [ ] 4. Paint @worker (after 2, 3)
"""
VIEWS = ("plan", "timeline", "steps", "history", "given")
GIVEN = {"messages": [("user", "Repair the fence before winter")], "plan": PLAN}


def team(work=lambda _: "9 m"):
    return Team(
        host=Host(model=ScriptedModel(END)),
        specialists=[
            Specialist(name="worker", intended_use="Works.", run=work, effects="pure"),
            Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Hue?")),
        ],
    )


async def entered(client, chromium, **options):
    """A page of a browser that has come in by the opening address or by a token."""
    context = await chromium.new_context(**options)
    page = await context.new_page()
    await page.goto(f"{client.base_url}enter")
    await page.fill("#token", OWNER)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("h1 >> text=Runs")
    return page


async def test_what_fails_while_a_question_is_open_comes_to_it_and_typed_text_stays(chromium):
    gate = asyncio.Event()

    async def work(_):
        await gate.wait()
        raise ValueError("no tape")

    plan = "- [ ] 1. Measure @worker (retries 0)\n- [ ] 2. Choose a colour @painter\n"
    async with (
        open_storage(":memory:") as storage,
        open_runtime(team(work), storage=storage) as runtime,
        shown(team(), storage) as client,
    ):
        page = await entered(client, chromium)
        run = await runtime.start({"plan": plan}, run_id="r1", labels={"team": "house"})
        await page.goto(f"{client.base_url}runs/r1")
        await page.fill(".ask textarea", "Ochre, if")
        assert await page.get_by_text("Failed so far").count() == 0
        gate.set()
        await page.wait_for_selector(".ask >> text=Failed so far: step 1, Measure")
        assert await page.input_value(".ask textarea") == "Ochre, if"
        assert (await run).outcome == "waiting"


async def test_an_open_page_and_seven_tabs_follow_a_run_to_its_end(chromium, tmp_path):
    gates = {step: asyncio.Event() for step in (1, 2, 4)}

    async def work(context):
        await gates[context.plan_step.id].wait()
        return "9 m"

    async with (
        open_storage(tmp_path / "runs.db") as storage,
        open_runtime(team(work), storage=storage) as runtime,
        shown(team(), storage) as client,
    ):
        page, faults = await entered(client, chromium), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        run = await runtime.start(GIVEN, run_id="r1")
        await page.goto(f"{client.base_url}runs/r1")
        await page.wait_for_selector("#n1.s-running")
        await page.evaluate("window.same = true")
        await page.focus("#n2")
        gates[1].set()
        await page.wait_for_selector("#n2.s-running")
        tabs = [await _opened(page, client, view) for view in (*VIEWS, "plan", "steps")]
        await page.click("#n2")
        await page.wait_for_selector("#detail .stepview >> text=Buy wood")
        gates[2].set()
        await run
        for tab in (page, *tabs):
            await tab.wait_for_selector("#asks >> text=Hue?")
        assert "Buy wood" in await page.inner_text("#detail .stepview")
        await screen(page, "run_waiting")
        gates[4].set()
        await (await runtime.answer("r1", {"3": "blue"}, by="Anna"))
        for tab in (page, *tabs):
            await tab.wait_for_selector("#asks .answer strong >> text=end")
            await tab.wait_for_selector("#poll:not([hx-get])", state="attached")
        assert await page.evaluate("window.same")
        assert faults == []
        for tab, view in zip(tabs, VIEWS, strict=False):
            await screen(tab, f"run_{view}")


async def test_what_is_open_of_a_step_stays_open_while_the_rest_of_it_follows(chromium, tmp_path):
    gates = {"first": asyncio.Event(), "second": asyncio.Event()}

    async def look(at: str) -> str:
        """Look at something."""
        await gates[at].wait()
        return f"seen: {at}"

    calls = [
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": at}, "id": at}]) for at in gates
    ]
    model = ScriptedModel({"step 1": [*calls, "Looked."], **END})
    clerk = Specialist(name="clerk", intended_use="Looks.", chat_model=model, tools=[look])
    looking = Team(host=Host(model=model), specialists=[clerk])
    given = {"messages": [("user", "Look")], "plan": "- [ ] 1. Look @clerk\n"}
    async with (
        open_storage(tmp_path / "runs.db") as storage,
        open_runtime(looking, storage=storage) as runtime,
        shown(looking, storage) as client,
    ):
        page, faults = await entered(client, chromium), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        run = await runtime.start(given, run_id="r1")
        await page.goto(f"{client.base_url}runs/r1?tab=steps")
        await _looked_into(page)
        alone = await page.context.new_page()
        await alone.goto(f"{client.base_url}runs/r1/steps/1")
        gates["first"].set()
        for tab in (page, alone):
            await tab.wait_for_selector("#c1-1-4 .s-running")
        assert "seen: first" in await page.inner_text("#c1-1-2-body")
        assert await page.evaluate(_IS_KEPT)
        gates["second"].set()
        await run
        for tab in (page, alone):
            await tab.wait_for_selector("#v1-results >> text=Looked.")
            await tab.wait_for_selector("#poll:not([hx-get])", state="attached")
            assert await tab.locator("details.call").count() == 5
        await page.wait_for_selector("#s1 .s-done")
        assert await page.evaluate(_IS_KEPT)
        assert faults == []


async def _looked_into(page):
    """Open a step, and the calls that it has made so far."""
    await page.click("#t1 > summary")
    await page.wait_for_selector("#c1-1-2 .s-running")
    await page.click("#c1-1-1")
    await page.wait_for_selector("#c1-1-1-body .prompt")
    await page.click("#c1-1-2")
    await page.evaluate("window.kept = document.querySelector('#c1-1-2')")


# The call is open and has the focus, and that above it shows its prompt.
_IS_KEPT = """() => document.activeElement === window.kept && window.kept.parentElement.open
  && document.querySelector('#c1-1-1').parentElement.open
  && document.querySelector('#c1-1-1-body .prompt') !== null"""


async def test_an_open_page_says_that_its_server_is_gone_and_goes_on_with_a_new_one(
    chromium, tmp_path
):
    kept = tmp_path / "sessions"
    async with open_storage(":memory:") as storage:
        async with open_runtime(team(), storage=storage) as runtime:
            await (await runtime.start(GIVEN, run_id="r1"))
        async with shown(team(), storage, sessions=kept) as client:
            port, page = client.base_url.port, await entered(client, chromium)
            await page.goto(f"{client.base_url}runs/r1")
        await page.wait_for_selector(".lost", state="visible")
        anew = asyncio.ensure_future(page.wait_for_event("load"))
        async with shown(team(), storage, port=port, sessions=kept):
            await anew
            await page.wait_for_selector("#asks >> text=Hue?")
            assert await page.is_hidden(".lost")


_PATTERNS = """() => [...document.querySelectorAll('.legend span')].map(each => {
  const style = getComputedStyle(each, '::before');
  return (style.backgroundImage + style.backgroundSize).replace(/(rgba?|color)\\([^)]*\\)/g, '');
})"""


async def test_each_state_of_a_timeline_is_told_without_its_colour(chromium):
    async with open_storage(":memory:") as storage, open_runtime(team(), storage=storage) as run:
        await run.run(GIVEN, run_id="r1")
        async with shown(team(), storage) as client:
            page = await entered(client, chromium)
            await page.goto(f"{client.base_url}runs/r1?tab=timeline")
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                told = await page.locator(".legend span").all_inner_texts()
                assert told == [*LEGEND.values()]
                plain = [each for each in await page.evaluate(_PATTERNS) if "gradient" in each]
                # What is done, and the time in which nobody works, have no pattern.
                assert len({*plain}) == len(plain) == len(LEGEND) - 2
                asks = page.locator(".trow", has_text="Choose a colour")
                assert await asks.locator(".k-waiting:not(.pause)").count() == 1
                assert "waits for a person" in await asks.inner_text()


async def _opened(page, client, view):
    """One more tab of a browser."""
    tab = await page.context.new_page()
    await tab.goto(f"{client.base_url}runs/r1?tab={view}")
    return tab


async def test_the_keyboard_alone_a_phone_and_no_script_reach_everything(chromium):
    async with open_storage(":memory:") as storage:
        async with open_runtime(team(), storage=storage) as runtime:
            await (await runtime.start(GIVEN, run_id="r1"))
        async with shown(team(), storage) as client:
            options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
            page = await entered(client, chromium, **options)
            for view in (
                "",
                *(f"runs/r1?tab={t}" for t in ("plan", "timeline", "steps", "history", "given")),
            ):
                await page.goto(f"{client.base_url}{view}")
                assert await page.evaluate("document.documentElement.scrollWidth") <= 390, view
                await screen(page, f"phone_{view.rpartition('=')[2] or 'runs'}")
            plain = await entered(client, chromium, java_script_enabled=False)
            await _pressed(plain, "Fence", "runs/r1")
            await _pressed(plain, "Steps", "tab=steps")
            await plain.goto(f"{client.base_url}runs/r1")
            await _pressed(plain, "1. Measure", "steps/1")
            assert "Attempt 1" in await plain.inner_text("main")


async def _pressed(page, text, path):
    """Go by the tab key to a link, and press Enter."""
    for _ in range(40):
        await page.keyboard.press("Tab")
        handle = page.locator("a:focus")
        if await handle.count() and text in await handle.inner_text():
            await page.keyboard.press("Enter")
            await page.wait_for_url(re.compile(re.escape(path)))
            return
    raise AssertionError(f"no link '{text}' takes the focus")


def hostile_team(harm):
    """A team whose model, tools and steps say what would do harm, and the plan of its run."""
    end = f"---\nverdict: complete\n---\n{harm('answer')}"
    plan = (
        f"# {harm.line('plan title')}\n\n{harm.line('plan intro')}\n\n"
        f"- [ ] 1. {harm.line('step')} @worker\n  {harm.line('brief')}\n"
        f"- [ ] 2. {harm.line('asking step')} @painter (after 1)\n"
        f"- [ ] 3. {harm.line('failing step')} @breaker\n"
        f"- [ ] 4. {harm.line('step that calls')} @caller\n"
    )

    asked, told, error = harm("question"), {"a": harm("details")}, harm("step error")

    def fail(_):
        raise RuntimeError(error)

    def send(to: str, more: dict[str, str]) -> str:
        """Send something."""
        return harm("never sent")

    arguments = {"to": harm("argument of a call"), "more": {harm("its name"): harm("its value")}}
    calls = AIMessage("", tool_calls=[{"name": "send", "args": arguments, "id": "c"}])
    said = f"---\ncomplexity: simple\n---\n{harm('answer in a chat')}"
    model = ScriptedModel({"feedback": always(end), "think": said, "step 4": [calls, "Not sent."]})
    hostile = Team(
        host=Host(model=model),
        specialists=[
            Specialist(
                name="caller", intended_use="C.", chat_model=model, tools=[send], approve=["send"]
            ),
            Specialist(
                name="worker", intended_use="W.", run=lambda _: harm("result"), effects="pure"
            ),
            Specialist(name="painter", intended_use="P.", run=lambda _: ask(asked, details=told)),
            Specialist(name="breaker", intended_use="B.", run=fail),
        ],
    )
    return hostile, plan


async def test_harmful_texts_in_forty_places_run_nothing_load_nothing_and_are_seen(chromium):
    harm = Harm()
    hostile, plan = hostile_team(harm)
    given = {"messages": [("user", harm("request"))], "plan": plan}
    async with open_storage(":memory:") as storage:
        async with open_runtime(hostile, storage=storage) as runtime:
            labels = {"note": harm.line("label")[:180], "team": "house"}
            run = await runtime.start(given, run_id="r1", title=harm("title"), labels=labels)
            first = await run
            record = await storage.runs.get("r1")
            texts = [
                KeptText("p", harm("prompt"), record.started_at),
                KeptText("a", harm("reply"), record.started_at),
            ]
            await storage.log.add_events("r1", harmful_events(harm, record.started_at), texts)
            assert first.outcome == "waiting"
            async with shown(hostile, storage) as client:
                page = await entered(client, chromium)
                seen = await _harmless(client, page)
                seen += await _acts_harmless(client, page, harm)
            answers = {
                "2": harm("answer of a person"),
                "4/caller/1": {"action": "reject", "reason": harm("why not")},
            }
            await (await runtime.answer("r1", answers, by=harm("by")))
            async with shown(hostile, storage) as client:
                # What models were sent is as it was.
                seen += await _harmless(client, await entered(client, chromium), prompts=False)
        found = {place for mark, place in harm.marks if f"{mark} " in seen}
        assert found >= {"answer in a chat", "said in a chat", "argument of a call", "its name"}
        assert found >= {"typed argument", "typed no JSON", "why not"}
        assert len(found) >= 40, sorted({place for _, place in harm.marks} - found)


async def _harmless(client, page, *, prompts=True):
    """Open all pages of a run, see that nothing happens, and give what people see."""
    own, sent, seen = str(client.base_url), [], []
    page.on("request", lambda each: sent.append((each.method, each.url)))
    page.on("dialog", lambda _: sent.append(("dialog", "")))
    paths = ["", *(f"runs/r1?tab={each}" for each in VIEWS), "runs/r1/steps/1"]
    events_kept = await _events(client) if prompts else []
    for path in [*paths, *(f"runs/r1/prompts/{seq}" for seq in events_kept)]:
        await page.goto(f"{own}{path}")
        await page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        # What is opened is loaded in the place of its link.
        await page.wait_for_selector("details[open] > .body[hx-get] > a", state="detached")
        assert await page.evaluate("window.pwned") is None, path
        odd = await page.evaluate(_ODD)
        assert odd == [], (path, odd)
        assert await page.locator("main").is_visible()
        seen.append(await page.inner_text("body"))
        seen += await page.evaluate(
            "[...document.querySelectorAll('title')].map(e => e.textContent)"
        )
    assert [
        each for each in sent if each[0] != "GET" or not each[1].startswith((own, "data:"))
    ] == []
    return "\n".join(seen)


async def _acts_harmless(client, page, harm):
    """Open the pages of all acts with harm in what they show, and in what was typed."""
    own, sent = str(client.base_url), []
    page.on("request", lambda each: sent.append(each.url))
    page.on("dialog", lambda _: sent.append("dialog"))
    huge = harm("typed") + "\u202e" * 10 + "<b>" * 20_000
    for path, typed, button in (
        ("runs/r1/stop", {}, ""),
        ("runs/r1/steps/1/retry", {}, ""),
        ("runs/r1/steps/2/skip", {}, ""),
        ("runs/r1/plan", {"plan": None}, "Show what would run"),
        ("runs/r1/plan", {"plan": huge}, "Show what would run"),
        ("start", {"task": huge, "plan": huge, "title": huge}, "Start the run"),
        ("chat/c1", {}, ""),
    ):
        await page.goto(f"{own}{path}")
        assert await page.evaluate(_ODD) == [], path
        await page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        for name, text in typed.items():
            place = page.locator(f"[name={name}]")
            await place.fill(await place.input_value() if text is None else text)
        if button:
            await page.click(f"button >> text={button}")
            await page.wait_for_load_state()
        odd = await page.evaluate(_ODD)
        assert (odd, await page.evaluate("window.pwned")) == ([], None), (path, odd)
        assert await page.locator("main").is_visible(), path
        assert "\u202e" not in await page.inner_text("main"), path
    seen = await _talked(page, own, harm) + await _called(page, own, harm)
    # A question that is asked no more is told with the run as it stands.
    await page.goto(f"{own}runs/r1")
    stale = "document.querySelector('[name=seen]').value = 'other'"
    await page.evaluate(stale)
    await page.fill("#asks textarea[name=text]", huge)
    await page.click("#asks button")
    await page.wait_for_selector("h1 >> text=Nothing was done")
    odd = await page.evaluate(_ODD)
    assert (odd, await page.evaluate("window.pwned")) == ([], None), odd
    assert [each for each in sent if not each.startswith((own, "data:"))] == []
    return seen


async def _talked(page, own, harm):
    """Say something harmful in a chat, which answers the same way, and look at all of it."""
    await page.goto(f"{own}chat/c1")
    await page.fill("textarea[name=text]", harm("said in a chat"))
    await page.click("text=Send")
    await page.wait_for_selector(".by-assistant .doc >> text=answer in a chat")
    seen = await _seen_harmless(page)
    await page.goto(f"{own}chat")
    return seen + await _seen_harmless(page)


async def _called(page, own, harm):
    """See what a call would get, as it was asked for, with changes, and with wrong ones."""
    seen = ""
    for button, typed in (
        ("approve", {}),
        ("edit", {"argument to": harm("typed argument")}),
        ("edit", {"argument more": harm("typed no JSON")}),
    ):
        await page.goto(f"{own}runs/r1")
        card = page.locator(".ask", has_text="approval")
        await card.locator("form summary").click()
        for name, text in typed.items():
            await card.locator(f"[name='{name}']").fill(text)
        await card.locator(f"button[value={button}]").click()
        await page.wait_for_selector(".wide h1")
        seen += await _seen_harmless(page)
    return seen


async def _seen_harmless(page):
    """See that a page is harmless, and give what people see of it."""
    odd = await page.evaluate(_ODD)
    assert (odd, await page.evaluate("window.pwned")) == ([], None), odd
    assert await page.locator("main").is_visible()
    seen = await page.inner_text("body")
    assert "\u202e" not in seen
    return seen


async def _events(client):
    """The numbers of the calls of models that have a page."""
    text = (await client.get("/runs/r1/steps/1")).text + (
        await client.get("/runs/r1?tab=given")
    ).text
    return sorted({int(each) for each in re.findall(r"/prompts/(\d+)", text)})


_ODD = """() => {
  const odd = [...document.querySelectorAll(
    'iframe, object, embed, base, img, style, script:not([src]), meta[http-equiv],' +
    'main form:not([action^="/"])')];
  const own = ['get', 'include', 'target', 'trigger', 'swap', 'swap-oob', 'preserve']
    .map(each => `hx-${each}`);
  for (const each of document.querySelectorAll('*')) for (const a of each.attributes) {
    if (/^on|^hx-on/.test(a.name) || /^javascript:/i.test(a.value)) odd.push(each);
    if (/hx-/.test(a.name) && a.name !== 'data-hx-disable' && !own.includes(a.name)) odd.push(each);
    if (own.includes(a.name) && each.closest('[data-hx-disable]')) odd.push(each);
  }
  return odd.map(each => each.outerHTML.slice(0, 200));
}"""

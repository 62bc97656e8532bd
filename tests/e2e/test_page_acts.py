"""What people do on the pages of `replan ui`: shown before, bound to what was shown, and noted."""

import asyncio
import re
from html import unescape

from acts_teams import END, Fence
from kept_runs import KeptRun, kill
from page_forms import form, parsed, rested, seen, sent
from pages import shown
from replan import Host, Specialist, Team, ask_user, open_storage
from replan.cli.page.routes import PAGES
from replan.log.rows import KeptText
from replan.testing import ScriptedModel, always
from served import as_, tokens_of


async def confirmed(client, answer):
    """Send the form of a page that asks whether it is meant."""
    assert answer.status_code == 200, answer.text
    return await sent(client, *parsed(answer.text))


async def begun(client, plan, **more):
    path, fields = await form(client, "/start")
    files = more.pop("files", [("files", ("", b""))])
    answer = await client.post(path, data={**fields, "plan": plan, **more}, files=files)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_a_run_is_started_with_a_file_answered_and_a_late_answer_is_refused():
    fence = Fence()
    async with open_storage(":memory:") as storage, shown(fence.team(), storage) as client:
        path, fields = await form(client, "/start")
        assert "model calls" in (await client.get("/start")).text
        files = [("files", ('hues"1".txt', b"blue\r\n--x\r\n", "text/plain"))]
        given = {**fields, "task": "Paint it", "plan": fence.PLAN, "labels": "job=7"}
        both = await asyncio.gather(*(client.post(path, data=given, files=files) for _ in range(2)))
        assert [each.status_code for each in both] == [303, 303], both[0].text
        (where,) = {each.headers["location"] for each in both}
        page = await rested(client, where, "waiting")
        assert "Hue?" in page
        assert "job=7" in page
        action, seen = parsed(page)
        empty = await sent(client, action, {**seen, "text": " "}, 422)
        assert "The answer is empty" in empty.text
        await sent(client, action, {**seen, "form": "0" * 64, "text": "red"}, 403)
        late = await sent(client, action, {**seen, "seen": "other", "text": "red"}, 409)
        assert "The question has changed" in late.text
        assert "Hue?" in late.text
        await sent(client, action, {**seen, "text": "blue"})
        page = await rested(client, where, "completed")
        assert fence.painted == ["blue"]
        assert "owner answered 2/painter/1: blue" in (await client.get(f"{where}?tab=history")).text
        twice = await sent(client, action, {**seen, "text": "red"}, 409)
        assert "not asked any more" in twice.text
        assert 'class="badge o-completed"' in twice.text
        events = str([e async for e in _events(storage, where)])
        assert "hues" in events or "blue" in events


async def test_of_choices_there_is_a_button_each_and_no_other_answer_at_any_door():
    asker = Specialist("painter", "Paints.", run=lambda _: f"{ask_user('Hue?', ['red', '<b>'])}")
    team = Team(Host(model=ScriptedModel(END)), [asker])
    async with open_storage(":memory:") as storage, shown(team, storage) as client:
        where = await begun(client, "- [ ] 1. Paint @painter\n")
        page = await rested(client, where, "waiting")
        buttons = re.findall(r'<button name="text" value="([^"]*)">([^<]*)</button>', page)
        assert "choices" not in page
        assert [tuple(map(unescape, each)) for each in buttons] == [("red", "red"), ("<b>", "<b>")]
        action, fields = parsed(page)
        wrong = await sent(client, action, {**fields, "text": "blue"}, 422)
        assert "must be one of: red, &lt;b&gt; (got" in wrong.text
        await sent(client, action, {**fields, "text": "Red"})
        assert "owner answered 1/painter/1: red" in await seen(
            client, f"{where}?tab=history", "red"
        )


async def _events(storage, where):
    run_id = where.rpartition("/")[2]
    for each in await storage.log.events(run_id):
        yield each


async def test_a_call_is_approved_with_other_arguments_and_only_as_it_was_shown():
    fence = Fence()
    async with open_storage(":memory:") as storage, shown(fence.paying(), storage) as client:
        where = await begun(client, "- [ ] 1. Pay @payer\n")
        page = await rested(client, where, "waiting")
        action, seen = parsed(page)
        assert seen["argument to"] == "eva"
        assert 'name="argument amount" value="9"' in page
        for wrong, told in (
            ({"arguments": "{"}, "These are not arguments (line 1, column 2"),
            ({"argument amount": "much"}, "amount: 'much' is of another type. Write it as 9 is."),
        ):
            bad = await sent(client, action, {**seen, "action": "edit", **wrong}, 422)
            assert told in unescape(bad.text)
            assert all(each in bad.text for each in wrong.values())
        changed = {**seen, "action": "edit", "argument to": "bob", "argument amount": "5"}
        asked = await sent(client, action, changed, 200)
        assert "+   &#34;to&#34;: &#34;bob&#34;" in asked.text
        assert fence.paid == []
        await confirmed(client, asked)
        await rested(client, where, "completed")
        assert fence.paid == [("bob", 5)]
        other = await begun(client, "- [ ] 1. Pay @payer\n")
        action, seen = parsed(await rested(client, other, "waiting"))
        await sent(client, action, {**seen, "action": "reject", "text": "too dear"})
        await rested(client, other, "completed")
        assert fence.paid == [("bob", 5)]
        assert "too dear" in (await client.get(f"{other}?tab=history")).text


async def test_a_plan_is_edited_seen_and_let_run_and_a_finished_one_begins_a_new_run():
    fence, plan = Fence(), "- [ ] 1. Measure @worker\n- [ ] 2. Cut @worker (after 1)\n"
    model = ScriptedModel({"think": always(f"---\ncomplexity: complex\n---\n{plan}"), **END})
    async with (
        open_storage(":memory:") as storage,
        shown(fence.team(model, approval="plan"), storage) as client,
    ):
        where = await begun(client, "", task="Build a fence")
        await rested(client, where, "waiting")
        path, fields = await form(client, f"{where}/plan")
        wrong = await sent(client, path, {**fields, "plan": "- [ ] 1. Go @nobody\n"}, 422)
        assert "nobody" in wrong.text
        text = fields["plan"].replace("2. Cut", "2. Saw")
        seen = await sent(client, path, {**fields, "plan": text}, 200)
        assert '<span class="d-added">+ - [ ] 2. Saw' in seen.text
        assert "2 of 2 steps run." in seen.text
        assert fence.did == []
        await confirmed(client, seen)
        await rested(client, where, "completed")
        assert fence.did == ["Measure", "Saw"]
        stale = await sent(client, path, {**fields, "plan": text}, 409)
        assert "The plan has changed since" in stale.text
        path, fields = await form(client, f"{where}/plan")
        text = fields["plan"].replace("2. Saw", "2. Split")
        seen = await sent(client, path, {**fields, "plan": text}, 200)
        assert "Step 2 runs again: it was edited." in seen.text
        assert "1 of 2 steps run. A new run begins" in seen.text
        new = (await confirmed(client, seen)).headers["location"]
        assert new != where
        await rested(client, new, "completed")
        assert fence.did == ["Measure", "Saw", "Split"]


async def test_a_run_is_stopped_resumed_with_a_limit_and_its_steps_corrected():
    fence = Fence()
    async with (
        open_storage(":memory:") as storage,
        shown(fence.team(), storage, grace=0.1) as client,
    ):
        fence.leave.clear()
        where = await begun(client, "- [ ] 1. Measure @worker\n- [ ] 2. Cut @worker (after 1)\n")
        await fence.at_work.wait()
        assert (await client.get(f"{where}/plan")).status_code == 200
        late = await form(client, f"{where}/stop")
        await sent(client, late[0], {**late[1], "force": "1"})
        await rested(client, where, "interrupted")
        path, fields = await form(client, f"{where}/resume")
        bad = await sent(client, path, {**fields, "limits": "max_stepps=3"}, 422)
        assert "max_stepps=3" in bad.text
        fence.leave.set()
        await sent(client, path, fields)
        await rested(client, where, "completed")
        assert (await sent(client, path, fields, 409)).text.count("The run has changed since") == 1
        told = (await client.get(f"{where}?tab=history")).text
        assert "resumed by owner" in told
        path, fields = await form(client, f"{where}/steps/1/retry")
        asked = (await client.get(path)).text
        told = (
            "A new run begins from this plan, keeps no step, and runs step 1, Measure; step 2, Cut."
        )
        assert told in asked
        new = (await sent(client, path, fields)).headers["location"]
        await rested(client, new, "completed")
        assert fence.did[-2:] == ["Measure", "Cut"]
        await _corrected_with_effects(client)
        refused = await client.get(f"{new}/steps/1/skip")
        assert "completed, so there is nothing to skip" in refused.text


async def _corrected_with_effects(client):
    """See that a step with an effect is done again only if that is said, and can be left out."""
    where = await begun(client, "- [ ] 1. Paint @painter\n- [ ] 2. Cut @worker (after 1)\n")
    action, seen = parsed(await rested(client, where, "waiting"))
    left_out, fields = await form(client, f"{where}/steps/1/skip")
    await sent(client, action, {**seen, "text": "blue"})
    await rested(client, where, "completed")
    late = await sent(client, left_out, fields, 409)
    assert "The run has changed since" in late.text
    path, fields = await form(client, f"{where}/steps/1/retry")
    asked = (await client.get(path)).text
    assert "keeps no step, and runs step 1, Paint (unsafe); step 2, Cut." in asked
    assert 'name="allow_repeat" value="1" required' in asked
    bare = await client.post(path, data=fields)
    assert (bare.status_code, "allow_repeat" in bare.text) == (422, True), bare.text
    new = (await sent(client, path, {**fields, "allow_repeat": "1"})).headers["location"]
    await rested(client, new, "waiting")
    await sent(client, *await form(client, f"{new}/steps/1/skip"))
    await rested(client, new, "completed")


async def test_a_run_that_a_limit_ended_goes_on_with_a_raised_one_and_no_more_than_the_team_has():
    fence = Fence()
    plan = "- [ ] 1. Measure @worker\n- [ ] 2. Cut @worker (after 1)\n"
    async with open_storage(":memory:") as storage, shown(fence.team(), storage) as client:
        where = await begun(client, plan, limits="max_steps=1")
        assert ">Resume…</a>" in await rested(client, where, "partial")
        # The run tells its end before it lets go of its thread.
        path, fields = parsed(await seen(client, f"{where}/resume", '<form class="act"'))
        assert fields["limits"] == "max_steps=2"
        asked = (await client.get(path)).text
        assert "The limit max_steps=1 ended it; 2 leaves it room." in asked
        assert "These steps run, without asking unless their team asks: step 2, Cut." in asked
        assert "The limit max_steps=1 ended it; 2 leaves it room." in (await client.get(where)).text
        more = await sent(client, path, {**fields, "limits": "max_steps=99999"}, 422)
        assert "looser than the team" in unescape(more.text)
        assert ">max_steps=99999</textarea>" in more.text
        await sent(client, path, fields)
        await rested(client, where, "completed")
        assert fence.did == ["Measure", "Cut"]


async def test_who_may_only_read_sees_no_forms_and_does_nothing():
    fence = Fence()
    tokens = tokens_of(reader={"roles": {"read"}}, answerer={"roles": {"answer"}}, owner={})
    async with (
        open_storage(":memory:") as storage,
        shown(fence.team(), storage, tokens) as client,
    ):
        client.headers.update(as_("owner"))
        where = await begun(client, fence.PLAN)
        owned = parsed(await rested(client, where, "waiting"))
        page = (await client.get(where, headers=as_("reader"))).text
        assert "Hue?" in page
        assert "<form" not in page
        assert "Stop…" not in page
        assert "<form" not in (await client.get("/chat/c1", headers=as_("reader"))).text
        for method, path, role in addresses(where.rpartition("/")[2]):
            if role not in ("read", None):
                refused = await client.request(method, path, headers=as_("reader"))
                assert (refused.status_code, f"'{role}'" in unescape(refused.text)) == (403, True)
        await sent(client, owned[0], {**owned[1], "text": "red"}, 403, headers=as_("reader"))
        # A form of one person's page is none of another's.
        await sent(client, owned[0], {**owned[1], "text": "red"}, 403, headers=as_("answerer"))
        action, seen = await form(client, where, headers=as_("answerer"))
        await sent(client, action, {**seen, "text": "red"}, headers=as_("answerer"))
        await rested(client, where, "completed")
        assert "answerer answered" in (await client.get(f"{where}?tab=history")).text


def addresses(run_id):
    """The method, the path and the role of every page, for one run and one session."""
    place = {"run_id": run_id, "step:int": "1", "seq:int": "1", "ref": "kept", "session_id": "c1"}
    for page in PAGES:
        path = re.sub(r"\{([^}]*)\}", lambda name: place[name[1]], page.path)
        for method in page.methods.split():
            yield method, path, page.role


async def test_what_is_of_another_tenant_is_unknown_at_every_address():
    fence = Fence()
    model = ScriptedModel(
        {"think": always("---\ncomplexity: complex\n---\n- [ ] 1. Paint @painter\n"), **END}
    )
    tokens = tokens_of(
        anna={"tenant": "north", "user": "kim"}, ben={"tenant": "south", "user": "kim"}
    )
    async with (
        open_storage(":memory:") as storage,
        shown(fence.team(model), storage, tokens) as client,
    ):
        client.headers.update(as_("anna"))
        where = await begun(client, "- [ ] 1. Paint @painter\n", task="Paint it")
        own = await rested(client, where, "waiting")
        path, fields = await form(client, "/chat/c1")
        turn = {**fields, "text": "Paint the secret fence"}
        await sent(client, path, turn, files=[("files", ("", b""))])
        await spoken(client, "/chat/c1", "Hue?")
        run_id = where.rpartition("/")[2]
        at = (await storage.runs.get(run_id)).started_at
        await storage.log.add_events(run_id, [], [KeptText("kept", "a secret", at)])
        assert (await client.get(f"{where}/texts/kept")).text == "a secret"
        before = await storage.runs.get(run_id), await storage.log.events(run_id)
        client.headers.update(as_("ben"))
        _, foreign = await form(client, "/start")
        _, seen = parsed(own)
        sends = {**seen, "form": foreign["form"], "text": "red", "plan": "- [ ] 1. Go @painter"}
        for method, path, _ in addresses(run_id):
            files = [("files", ("", b""))] if path in ("/start", "/chat/c1") else None
            told = await client.request(method, path, data=sends, files=files)
            if path.startswith("/runs/"):
                assert told.status_code == 404, (method, path, told.text)
            assert "secret" not in told.text, (method, path)
        assert before == (await storage.runs.get(run_id), await storage.log.events(run_id))
        assert fence.painted == []


async def test_a_wrong_start_starts_nothing_and_says_what_to_change():
    async with open_storage(":memory:") as storage, shown(Fence().team(), storage) as client:
        path, fields = await form(client, "/start")
        none, files = ("files", ("", b"")), lambda name, held: [("files", (name, held))]
        cases = [
            ({}, [none], "there is nothing to do"),
            ({"plan": "- [ ] 1. Go @nobody\n"}, [none], "nobody"),
            ({"task": "x", "limits": "max_rounds=9999"}, [none], "looser"),
            ({"task": "x", "labels": "user=eva"}, [none], "the server sets this label"),
            ({"task": "x"}, files("a/b.txt", b"x"), "files[0].name"),
            ({"task": "x"}, files("a.txt", b"\xff\xfe\x00"), "is not one of UTF-8 text"),
            ({"task": "x"}, files("a.pdf", b"x" * 10_000_001), "more than 10,000,000 bytes"),
        ]
        for given, held, told in cases:
            answer = await client.post(path, data={**fields, **given}, files=held)
            assert answer.status_code == 422, (told, answer.text)
            assert told in unescape(answer.text), answer.text
        halves = {"Content-Type": "multipart/form-data; boundary=x"}
        broken = await client.post(path, content=b"--x\r\nContent-Disp", headers=halves)
        assert broken.status_code == 400
        assert (await client.post(path, data=fields)).status_code == 415
        assert "There are no runs here yet" in (await client.get("/")).text


async def test_a_chat_takes_turns_asks_and_goes_on_in_its_session():
    fence = Fence()
    model = ScriptedModel(
        {
            "think": [
                "---\ncomplexity: complex\n---\n- [ ] 1. Paint @painter\n",
                "---\ncomplexity: simple\n---\nYou are *welcome*.",
            ],
            **END,
        }
    )
    async with open_storage(":memory:") as storage, shown(fence.team(model), storage) as client:
        where = re.search(r'href="(/ui/chat/\w+)"', (await client.get("/chat")).text)[1]
        path, fields = await form(client, where)
        turn = {**fields, "text": "Paint the fence"}
        plain = [("files", ("", b""))]
        await sent(client, path, turn, files=plain)
        page = await spoken(client, where, "Hue?")
        stale = await sent(
            client, path, {**fields, "turn_id": "t2", "text": "red"}, 422, files=plain
        )
        assert "The question has changed" in stale.text
        path, fields = parsed(page)
        await sent(client, path, {**fields, "text": "blue"}, files=plain)
        await spoken(client, where, "The end.")
        assert fence.painted == ["blue"]
        path, fields = await form(client, where)
        await sent(client, path, {**fields, "text": "Thanks"}, files=plain)
        await spoken(client, where, "<em>welcome</em>")
        assert "Paint the fence" in (await client.get("/chat")).text


async def spoken(client, where, text):
    async with asyncio.timeout(10):
        while True:
            page = (await client.get(where)).text
            if text in page and "At work" not in page:
                return page


async def test_a_run_that_a_terminal_began_and_a_kill_ended_is_gone_on_with_by_its_own_team(
    tmp_path,
):
    kept = KeptRun(tmp_path, str(tmp_path / "runs.db"), traps={3: kill})
    await asyncio.to_thread(kept.die, kept.begin)
    kept.traps.clear()
    async with open_storage(kept.where) as storage, shown(Fence().team(), storage) as client:
        (record,) = await storage.runs.recent(1)
        where = f"/runs/{record.run_id}"
        page = await rested(client, where, "interrupted")
        assert "its process was killed" in page
        path, fields = await form(client, f"{where}/resume")
        with kept.at_work():
            await sent(client, path, fields)
            page = await rested(client, where, "completed")
        assert {*kept.effects} == {1, 2, 3, 4, 5, 6}
        assert "resumed by owner" in (await client.get(f"{where}?tab=history")).text
        # What would be refused is not offered, but told.
        assert ">Edit the plan…</a>" not in page
        step = (await client.get(f"{where}/steps/1")).text
        assert "/retry" not in step
        assert f"replan retry {record.run_id[:8]} 1</code>" in step
        other = await client.get(f"{where}/steps/1/retry")
        assert other.status_code == 409
        assert f"replan retry {record.run_id[:8]} 1" in other.text
        changed = {**record.order, "directory": "/"}
        await storage.runs.begin(record.replace(run_id="r2", thread_id="r2", order=changed))
        foreign = (await client.get("/runs/r2")).text
        assert 'class="button"' not in foreign
        refused = await client.get("/runs/r2/resume")
        assert refused.status_code == 409
        assert "were changed since" in refused.text


async def test_a_run_that_is_over_with_a_failure_says_what_can_be_done_now():
    fence = Fence()

    def broken(_):
        raise ValueError("no paint")

    fence.paint = broken
    plan = (
        "- [ ] 1. Measure @worker\n- [ ] 2. Paint @painter (after 1; retries 0)\n"
        "- [ ] 3. Cut @worker (after 2)\n"
    )
    async with open_storage(":memory:") as storage, shown(fence.team(), storage) as client:
        where = await begun(client, plan)
        page = await rested(client, where, "partial")
        assert f'<a href="{where}/steps/2/retry">Retry…</a>' in page
        assert "Was a step done by hand?" in page
        # The document and the answer are as they were written; all else tells the error once.
        head = page.partition('id="asks"')[0]
        assert head.count("no paint") == 1
        assert (await client.get(f"{where}/steps/2")).text.count("no paint") == 1
        history = (await client.get(f"{where}?tab=history")).text.partition('id="stage"')[2]
        assert f'<a href="{where}/steps/2">step 2</a> painter, attempt 1: failed' in history
        over = (await client.get(f"{where}/resume")).text
        assert "step 2 can be repeated or skipped." in over
        asked = (await client.get(f"{where}/steps/2/retry")).text
        assert "step 2 at @painter (unsafe) failed, and may have taken effect" in asked
        # As the page says: the mark, and the result in the place of why it failed.
        path, fields = await form(client, f"{where}/plan")
        by_hand = fields["plan"].replace("[!]", "[x]")
        by_hand = by_hand.replace("**Failed:** ValueError: no paint", "Painted red.")
        assert by_hand.count("Painted red.") == 1
        shown_first = await client.post(path, data={**fields, "plan": by_hand})
        assert "1 of 3 steps run." in shown_first.text
        new = (await confirmed(client, shown_first)).headers["location"]
        assert "Painted red." in await rested(client, new, "completed")
        assert fence.did == ["Measure", "Cut"]

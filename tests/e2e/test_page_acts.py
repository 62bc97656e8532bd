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


async def begun(client, plan, **more):
    path, fields = await form(client, "/start")
    files = more.pop("files", [("files", ("", b""))])
    answer = await client.post(path, data={**fields, "plan": plan, **more}, files=files)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_of_two_starts_with_a_file_at_once_one_begins_a_run_with_it():
    fence = Fence()
    async with open_storage(":memory:") as storage, shown(fence.team(), storage) as client:
        path, fields = await form(client, "/start")
        files = [("files", ('hues"1".txt', b"blue\r\n--x\r\n", "text/plain"))]
        given = {**fields, "task": "Paint it", "plan": fence.PLAN}
        both = await asyncio.gather(*(client.post(path, data=given, files=files) for _ in range(2)))
        assert [each.status_code for each in both] == [303, 303], both[0].text
        (where,) = {each.headers["location"] for each in both}
        await rested(client, where, "waiting")
        events = str(await storage.log.events(where.rpartition("/")[2]))
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

"""The pages of `replan ui` without a browser: who gets in, what is found, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from pages import OWNER, PageClient, shown
from replan import Host, Specialist, Team, ask_user, open_runtime, open_storage
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.log.amounts import Bound, Reservation, Spending
from replan.ports.run_book import RunRecord
from replan.testing import ScriptedModel, always

END = {"feedback": always("---\nverdict: complete\n---\nThe **end**.")}
PLAN = "# Fence\n\n- [ ] 1. Measure @worker\n- [ ] 2. Paint @painter (after 1)\n"


def team():
    return Team(
        host=Host(model=ScriptedModel(END)),
        specialists=[
            Specialist(name="worker", intended_use="Works.", run=lambda _: "9 m", effects="pure"),
            Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Hue?")),
        ],
    )


async def begun(storage, run_id="r1", **labels):
    """A run that waits for an answer."""
    given = {"messages": [("user", "Paint the fence")], "plan": PLAN}
    async with open_runtime(team(), storage=storage) as runtime:
        await (await runtime.start(given, run_id=run_id, labels=labels))


async def test_the_gate_lets_in_who_has_a_token_and_tells_others_how():
    async with open_storage(":memory:") as storage, shown(team(), storage) as client:
        own = client.base_url.netloc.decode()
        cases = [
            ({"Host": "evil.example"}, "GET", 421),
            ({"Origin": "http://evil.example"}, "GET", 403),
            ({"Origin": "null"}, "GET", 403),
            ({"Authorization": ""}, "GET", 401),
            ({"Authorization": "Bearer no"}, "GET", 401),
            ({"Sec-Fetch-Site": "cross-site"}, "POST", 403),
            ({"Sec-Fetch-Site": "same-site"}, "POST", 403),
        ]
        for headers, method, status in cases:
            answer = await client.request(
                method, "/enter" if method == "POST" else "/", headers=headers
            )
            assert answer.status_code == status, headers
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self';" in policy
            assert "unsafe-eval" not in policy
            assert answer.headers["cache-control"] == "no-store"
        same = {"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}
        assert (await client.get("/", headers=same)).status_code == 200
        async with PageClient(base_url=client.base_url, trust_env=False) as browser:
            told = await browser.get("/runs/r1")
            assert told.status_code == 401
            assert "Open the address that" in told.text
            entered = await browser.get(client.opening)
            cookie = entered.headers["set-cookie"].lower()
            assert entered.status_code == 303
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert OWNER not in cookie
            assert "secure" not in cookie
            assert (await browser.get("/")).status_code == 200
            again = await client.get(client.opening, headers={"Authorization": ""})
            assert again.status_code == 401
            assert "It works once" in again.text
            wrong = await browser.post("/enter", data={"token": "no-such-token-here"})
            assert wrong.status_code == 401
            assert (await browser.post("/enter", data={"token": OWNER})).status_code == 303


def browsing(client, **headers):
    return PageClient(base_url=client.base_url, headers=headers, trust_env=False)


async def test_a_session_of_a_browser_opens_pages_and_no_address_for_programs():
    async with open_storage(":memory:") as storage, shown(team(), storage) as client:
        root = str(client.base_url).removesuffix("ui/")
        async with browsing(client) as browser:
            await browser.post("/enter", data={"token": OWNER})
            assert (await browser.get("/")).status_code == 200
            assert (await browser.get(f"{root}teams")).status_code == 401
            assert (await browser.get(root)).headers["location"] == "/ui/"
        (there,) = (await client.get(f"{root}teams")).json()["teams"]
        assert there["name"] == "house"


async def test_a_cookie_is_a_session_of_this_page_alone_and_ends_when_its_browser_leaves(tmp_path):
    async with open_storage(":memory:") as storage:
        async with shown(team(), storage, sessions=tmp_path / "s") as client:
            port = client.base_url.port
            async with browsing(client) as one, browsing(client) as two:
                await one.get(client.opening)
                await two.post("/enter", data={"token": OWNER})
                ((name, mine),) = one.cookies.items()
                assert name == f"replan_{port}"
                assert mine != two.cookies[name]
                assert (await one.get("/leave")).status_code == 303
                ended = await one.get("/", headers={"Cookie": f"{name}={mine}"})
                assert ended.status_code == 401
                assert (await two.get("/")).status_code == 200
                kept = two.cookies[name]
            (file,) = tmp_path.iterdir()
            assert file.stat().st_mode & 0o077 == 0
            written = file.read_text()
            assert not any(each in written for each in (OWNER, mine, kept))
            async with shown(team(), storage, sessions=tmp_path / "s") as other:
                there = f"replan_{other.base_url.port}={kept}; {name}={kept}"
                async with browsing(other, Cookie=there) as browser:
                    assert (await browser.get("/")).status_code == 401
        again = {"sessions": tmp_path / "s", "port": port}
        async with shown(team(), storage, **again) as client, browsing(client) as browser:
            for value, status in ((kept, 200), (mine, 401), (OWNER, 401)):
                seen = await browser.get("/", headers={"Cookie": f"{name}={value}"})
                assert seen.status_code == status
        file.write_text("no JSON")
        async with shown(team(), storage, **again) as client, browsing(client) as browser:
            seen = await browser.get("/", headers={"Cookie": f"{name}={kept}"})
            assert seen.status_code == 401


async def test_a_form_of_one_browser_is_refused_from_another():
    async with (
        open_storage(":memory:") as storage,
        shown(team(), storage) as client,
        browsing(client) as one,
        browsing(client) as two,
    ):
        for each in (one, two):
            await each.post("/enter", data={"token": OWNER})
        page = (await one.get("/start")).text
        form = page.partition('name="form" value="')[2].partition('"')[0]
        assert form
        sent = {"form": (None, form)}
        assert (await two.post("/start", files=sent)).status_code == 403
        assert (await one.post("/start", files=sent)).status_code == 422


@pytest.mark.parametrize(("prefix", "start"), [("", "__Host-replan_"), ("/tools", "replan_")])
async def test_behind_tls_the_cookie_is_for_this_host_and_for_tls_alone(prefix, start):
    async with (
        open_storage(":memory:") as storage,
        shown(team(), storage, prefix=prefix) as client,
        browsing(client, **{"X-Forwarded-Proto": "https"}) as browser,
    ):
        entered = await browser.post("enter", data={"token": OWNER})
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith(start)
        assert {"Secure", "HttpOnly", f"Path={prefix}/"} <= set(cookie.split("; "))
        whole = cookie.partition(";")[0]
        assert (await browser.get("", headers={"Cookie": whole})).status_code == 200
        if not prefix:
            # One without the prefix may be from another host.
            plain = {"Cookie": whole.removeprefix("__Host-")}
            browser.cookies.clear()
            assert (await browser.get("", headers=plain)).status_code == 401


async def test_a_prefix_works_whether_or_not_the_proxy_takes_it_off():
    async with open_storage(":memory:") as storage:
        await begun(storage)
        async with shown(team(), storage, prefix="/tools/replan") as client:
            root = str(client.base_url).partition("/tools")[0]
            for path in ("/tools/replan/ui/", "/ui/", "/tools/replan/ui/runs/r1", "/ui/runs/r1"):
                answer = await client.get(f"{root}{path}")
                assert answer.status_code == 200
                assert 'href="/tools/replan/ui/lib/page.css"' in answer.text
                assert 'href="/runs' not in answer.text


async def test_the_list_finds_runs_and_shows_first_what_waits():
    began = datetime(2026, 1, 1, tzinfo=UTC)
    async with open_storage(":memory:") as storage:
        for number in range(120):
            at = began + timedelta(minutes=number)
            record = RunRecord(
                run_id=f"n{number:03d}",
                thread_id=f"t{number}",
                title=f"Order {number}",
                outcome="failed" if number % 3 else "completed",
                started_at=at,
                updated_at=at,
                labels={"customer": f"c{number % 5}"},
            )
            await storage.runs.begin(record)
        await begun(storage)
        async with shown(team(), storage) as client:
            first = (await client.get("/")).text
            assert first.index("Hue?") < first.index("Order 119")
            assert first.count('role="row"') == 51
            more = first.partition('id="more"')[2].partition('href="')[2].partition('"')[0]
            second = (await client.get(more.replace("&amp;", "&"))).text
            assert "Order 70<" in second
            found = (await client.get("/", params={"q": "order 77"})).text
            assert found.count('role="row"') == 2
            both = {"outcome": "failed", "label": "customer=c2"}
            found = (await client.get("/", params=both)).text
            assert 0 < found.count("o-failed") == found.count('role="row"') - 1
            # Headings are links to other orders; a page of one goes on in it.
            dear = first.partition(">Began")[2].partition('href="')[2].partition('"')[0]
            longest = (await client.get(dear.replace("&amp;", "&"))).text
            assert dear.endswith("order=took")
            assert longest.rindex(">Fence<") < longest.index("Order 119")
            assert 'class="num" aria-sort="descending">Took' in longest
            assert "order=took&amp;cursor=" in longest
            needed = (await client.get("/", params={"order": "outcome"})).text
            assert needed.rindex(">Fence<") < needed.index("o-failed") < needed.index("Order 118<")
            assert "o-completed" not in needed


async def test_the_list_tells_what_no_outcome_tells_and_costs_what_the_page_says():
    noon = datetime(2026, 1, 1, tzinfo=UTC)
    record = RunRecord(
        run_id="a.b c",
        thread_id="t",
        title="Pay",
        outcome="completed",
        started_at=noon,
        updated_at=noon,
    )
    place = {"at": noon.isoformat(), "round": 1, "node": "n", "step_id": None, "attempt": None}
    called = {**place, "tool": "pay", "arguments": {}, "effects": "pure", "seconds": 1}
    failed = {**called, "type": "tool_completed", "call": "1", "status": "failed"}
    asked = {**place, "type": "model_invoked", "call": "2", "model": "m"}
    over = {**place, "type": "task_completed", "outcome": "completed", "warnings": ["Beware."]}
    ended = {**asked, "type": "model_completed", "seconds": 1, "error": "", "cost": 0.5}
    ended |= {"input_tokens": 10, "output_tokens": 5}
    used = Spending(calls=1, tokens=15, cost=0.5)
    async with open_storage(":memory:") as storage:
        await storage.runs.begin(record)
        await storage.log.add_events(record.run_id, [asked, ended, {**asked, "call": "3"}])
        await storage.log.add_events(record.run_id, [failed, over])
        for name in "xy":
            held = Reservation(id=name, run_id=record.run_id, amount=used)
            await storage.log.reserve(held, [Bound(scope="run")])
        await storage.log.settle(held, used)
        async with shown(team(), storage) as client:
            for _ in range(2):
                listed = (await client.get("/")).text
                assert ">≤ 30</span>" in listed
                assert ">≤ 1</span>" in listed
                assert ">1 tool call failed</small>" in listed
            page = (await client.get("/runs/a.b c")).text
            cost = "cost at most 1 (0.5 known, at most 0.5 for 1 call that never ended)"
            assert cost in page
            assert ">1 tool call failed<" in page
            assert "doubtful" not in page  # there is no answer


async def test_a_job_is_a_form_that_fills_and_its_secrets_stay_hidden():
    spec = JobSpec(
        "travel",
        slots=[
            Slot("origin", question="Where from?"),
            Slot("pin", question="Which PIN?", secret=True),
            Slot("target", question="Where to?"),
        ],
        commands=[JobCommand("book", needs=["origin", "pin", "target"], action="book_it")],
        actions=[ActionSpec("book_it", run=lambda **_: "booked", effects="pure")],
    )
    booker = Specialist(name="booker", intended_use="Books.", job=spec)
    agency = Team(host=Host(model=ScriptedModel(END)), specialists=[booker])
    given = {"messages": [("user", "Go")], "plan": "- [ ] 1. Book @booker\n"}
    async with open_storage(":memory:") as storage, shown(agency, storage) as client:
        async with open_runtime(agency, storage=storage) as runtime:
            result = await (await runtime.start(given, run_id="r1"))
            seen = list[str]()
            for answer in ("Rome", "4711", "Oslo"):
                for path in ("/runs/r1?tab=given", "/runs/r1/steps/1"):
                    page = await client.get(path)
                    assert page.status_code == 200
                    assert "asked now" in page.text
                    seen.append(page.text)
                (asked,) = (await runtime.get("r1")).pending_questions
                result = await (await runtime.answer("r1", {asked.key: answer}))
        assert result.outcome == "completed"
        over = (await client.get("/runs/r1?tab=given")).text
    assert "<dd>Rome</dd>" in seen[2]
    assert "<dd>Oslo</dd>" in over
    assert "asked now" not in over
    assert all("<dd>4711" not in each for each in (*seen, over))

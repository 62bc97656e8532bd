"""What a run says of itself at first sight, the same at every door: failures, progress, cost."""

import asyncio
import json
import re

import pytest
from typer.testing import CliRunner

from pages import shown
from replan import Host, Limits, Price, Specialist, Team, ask_user, open_runtime, open_storage
from replan.cli.main import app
from replan.state.limits import RunSettings
from replan.testing import Reply, ScriptedModel, always
from scripts import END
from served import served

WAITS = "- [ ] 1. Fail @breaker\n- [ ] 2. Write @writer\n- [ ] 3. Ask @asker\n"
ROW = "- [ ] 1. Write @writer\n" + "".join(
    f"- [ ] {number}. Write @writer (after {number - 1})\n" for number in range(2, 7)
)
COST = "0.0047 EUR"


def breaks(_):
    raise ValueError("broken")


def reads(_):
    return "Read."


def team():
    model = ScriptedModel(
        {
            "specialist": always(Reply("Written.", usage=(1000, 500))),
            "feedback": always(Reply(END, usage=(100, 100))),
        }
    )
    return Team(
        Host(model),
        [
            Specialist("breaker", "Breaks.", run=breaks),
            Specialist("writer", "Writes.", chat_model=model),
            Specialist("asker", "Asks.", run=lambda _: ask_user("How many?")),
        ],
        name="house",
        prices={"ScriptedModel": Price(input=1, output=6)},
        currency="EUR",
        limits=Limits(step_retries=0),
    )


@pytest.fixture
def where(tmp_path):
    path = str(tmp_path / "runs.db")

    async def begin():
        async with (
            open_storage(path) as storage,
            open_runtime(team(), storage=storage) as runtime,
        ):
            for name, plan, calls in (("waits", WAITS, 9), ("none", ROW, 1), ("most", ROW, 5)):
                settings = RunSettings(limits=Limits(max_model_calls=calls, step_retries=0))
                own = {"run_id": name, "settings": settings, "labels": {"team": "house"}}
                await (await runtime.start({"plan": plan, "messages": [("user", name)]}, **own))

    asyncio.run(begin())
    return path


def said(where, *words):
    result = CliRunner().invoke(app, [*words, "--storage", where])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_terminal_tells_failures_progress_team_and_currency(where):
    rows = {line.split()[0]: " ".join(line.split()) for line in said(where, "runs").splitlines()}
    assert f"{COST} waiting 1/3, 1 failed house waits" in rows["waits"]
    assert "partial 0/6 house none" in rows["none"]
    assert "team=" not in rows["none"]
    assert "partial 4/6 house most" in rows["most"]
    listed = {
        each["run_id"]: each for each in map(json.loads, said(where, "runs", "--json").splitlines())
    }["waits"]
    assert (listed["steps_done"], listed["steps_failed"], listed["steps"]) == (1, 1, 3)
    assert (listed["team"], listed["usage"]["currency"]) == ("house", "EUR")
    run = said(where, "show", "waits")
    assert "waiting: 1 of 3 steps done, 1 waiting, 1 failed" in run
    assert f"cost {COST}" in run
    for words in (["stats"], ["stats", "--by", "model"], ["diff", "waits", "most"]):
        assert " EUR" in said(where, *words)


async def test_an_answer_without_an_optional_step_says_so(tmp_path):
    plan = "- [ ] 1. Fail @breaker (optional)\n- [ ] 2. Write @writer (after 1)\n"
    path = str(tmp_path / "optional.db")
    async with open_storage(path) as storage:
        async with open_runtime(team(), storage=storage) as runtime:
            own = {"run_id": "r1", "labels": {"team": "house"}}
            done = await (await runtime.start({"plan": plan}, **own))
            assert done.outcome == "completed"
        async with shown(team(), storage) as client:
            page = (await client.get("/runs/r1")).text
    assert '<div class="answer card doc doubtful"' in page
    assert "failed, optional" in page
    run = await asyncio.to_thread(said, path, "show", "r1")
    assert "why: step 1 failed: ValueError: broken" in run
    assert "Fail (optional)" in run


async def test_what_a_stop_cut_off_is_told_where_the_run_is_resumed(  # noqa: PLR0915 - one life of a run
    tmp_path,
):
    begun = asyncio.Event()

    async def counts(_):
        begun.set()
        await asyncio.Event().wait()

    own = Team(
        Host("offline"),
        [Specialist("counter", "Counts.", run=counts), Specialist("reader", "Reads.", run=reads)],
        name="house",
    )
    plan = (
        "- [ ] 1. Read @reader\n- [ ] 2. Count @counter (after 1)\n- [ ] 3. Pay @reader (after 2)\n"
    )
    path = str(tmp_path / "stopped.db")
    async with open_storage(path) as storage:
        async with open_runtime(own, storage=storage) as runtime:
            labels = {"team": "house"}
            run = await runtime.start({"plan": plan}, run_id="r1", labels=labels)
            await begun.wait()
            await runtime.stop("r1", force=True)
            assert (await run).outcome == "interrupted"
        async with shown(own, storage) as client:
            page = (await client.get("/runs/r1")).text
            sure = (await client.get("/runs/r1/resume")).text
            skips = (await client.get("/runs/r1/steps/2/skip")).text
    assert "; step 2 may have taken effect already" in skips
    assert "1 cut off</span>" in page
    assert "; step 2 was cut off</p>" in page
    assert "cut off · @counter" in re.sub("<.*?>", "", page)
    cut_off = (
        "tep 2 was cut off, and is taken up again: Count; look first whether it took effect: "
        "you are asked, and say `run again` or `fail: WHY` only if it did not"
    )
    assert f"S{cut_off}." in sure
    then = "hen these run, without asking unless their team asks: step 3, Pay (unsafe)"
    assert f"T{then}." in sure
    shown_run = await asyncio.to_thread(said, path, "show", "r1")
    assert "interrupted: 1 of 3 steps done, 1 cut off" in shown_run
    again, new, ways = shown_run.rstrip().splitlines()[-3:]
    assert again.strip() == f"s{cut_off}"
    assert new.strip() == f"t{then}"
    assert ways.strip() == f"continue with: replan resume r1 --storage {path} --team FILE"


async def test_http_and_the_page_tell_the_same(where):
    async with served(team(), where) as client:
        listed = {each["run_id"]: each for each in (await client.get("/runs")).json()["runs"]}
        assert {
            name: (each["outcome"], each["steps_done"], each["steps_failed"], each["steps"])
            for name, each in listed.items()
        } == {
            "waits": ("waiting", 1, 1, 3),
            "none": ("partial", 0, 0, 6),
            "most": ("partial", 4, 0, 6),
        }
        assert listed["waits"]["usage"]["cost"] == pytest.approx(0.0047)
        assert listed["waits"]["usage"]["currency"] == "EUR"
        only = (await client.get("/runs", params={"outcome": "waiting"})).json()["runs"]
        assert [each["run_id"] for each in only] == ["waits"]
        (day,) = (await client.get("/stats")).json()["sums"]
        assert day["costs"].keys() == {"EUR"}
        assert (day["failed"], day["partial"]) == (0, 2)
    async with open_storage(where) as storage, shown(team(), storage) as client:
        page = (await client.get("/")).text
        waits = page[page.rindex("/runs/waits") :]
        for told in ("1 of 3</small>", "1 failed</small>", 'class="team">house<', f">{COST}<"):
            assert told in waits
        assert "1 failed</small>" in page.partition("</section>")[0]  # where it waits, too
        # A run that came to nothing looks different from one that is nearly done.
        none, most = page[page.rindex("/runs/none") :], page[page.rindex("/runs/most") :]
        assert '<b class="badge o-partial">' in none.partition("</div>")[0]
        assert '<b class="badge o-partial some">' in most.partition("</div>")[0]
        head = (await client.get("/runs/waits")).text.partition("</header>")[2]
        assert "1 failed</span>" in head
        assert "Step 1 failed</a>" in head
        assert f"cost {COST}" in head

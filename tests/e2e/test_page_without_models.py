"""The page where a team cannot work: it opens, says why, and puts on record what people say."""

import asyncio

import httpx
import pytest

from page_forms import parsed, sent
from pages import program, shown
from replan import Host, Specialist, Team, ask_user, open_runtime, open_storage
from replan.log.kept_events import events_of
from replan.testing import ScriptedModel, always

END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}
PLAN = """- [ ] 1. Measure @worker
- [ ] 2. Choose a colour @painter
- [ ] 3. Fail @breaker (retries 0)
- [ ] 4. Paint @worker (after 2)
"""
FILE = """\
name: house
host: {model: "openai:gpt-5"}
specialists:
  - {name: worker, intended_use: Works., chat_model: "openai:gpt-5",
     tools: ["replan_local:search_notes"]}
  - {name: painter, intended_use: Paints., chat_model: "openai:gpt-5"}
  - {name: breaker, intended_use: Breaks., chat_model: "openai:gpt-5"}
"""
OFF = 'off" role="link" aria-disabled="true" aria-describedby="lacks">'


def breaks(_):
    raise ValueError("no tape")


def team(name="house"):
    return Team(
        Host(ScriptedModel(END)),
        [
            Specialist("worker", "Works.", run=lambda c: str(c.inputs), effects="pure"),
            Specialist("painter", "Paints.", run=lambda _: f"in {ask_user('Hue?')}"),
            Specialist("breaker", "Breaks.", run=breaks),
        ],
        name=name,
    )


async def began(where, name="house"):
    async with open_storage(where) as storage, open_runtime(team(name), storage=storage) as runtime:
        for run_id in ("r1", "r2"):
            await runtime.run({"plan": PLAN}, run_id=run_id, labels={"team": name})


async def resumed(where, name="house"):
    async with open_storage(where) as storage, open_runtime(team(name), storage=storage) as runtime:
        done = await runtime.resume("r1")
        return done, events_of("r1", await storage.log.events("r1"))


@pytest.fixture
def where(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("REPLAN_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "house.yaml").write_text(FILE)
    return str(tmp_path / "runs.db")


def test_without_its_key_a_team_is_looked_at_and_answered_and_goes_on_later(where, tmp_path):
    asyncio.run(began(where))
    with program(tmp_path, 0) as address, httpx.Client(trust_env=False, timeout=60) as browser:
        home = f"http://127.0.0.1:{httpx.URL(address).port}"
        browser.get(address)
        page = browser.get(f"{home}/ui/runs/r1").text
        why = "The team 'house' cannot work here. The key is missing: OPENAI_API_KEY is not set."
        assert why in page.replace("&#39;", "'")
        assert "Set OPENAI_API_KEY" in page
        for button in ("Retry…", "Skip…", "Edit the plan…"):
            assert f"{OFF}{button}" in page
        start = browser.get(f"{home}/ui/start").text
        assert '<button class="main" disabled aria-describedby="lacks">Start the run' in start
        refused = browser.get(f"{home}/ui/runs/r1/steps/3/retry")
        assert (refused.status_code, "OPENAI_API_KEY is not set" in refused.text) == (409, True)
        action, fields = parsed(page)
        same = {"Origin": home, "Sec-Fetch-Site": "same-origin"}
        told = browser.post(f"{home}{action}", data={**fields, "text": "blue"}, headers=same)
        assert told.status_code == 303, told.text
        page = browser.get(f"{home}/ui/runs/r1").text
        assert "answered 2/painter/1: blue. It counts when the run continues." in page
        assert "<textarea" not in page
    done, events = asyncio.run(resumed(where))
    assert (done.outcome, done.results[2].text) == ("partial", "in blue")
    assert [each.by for each in events if each.type == "answer_received"] == ["owner"]


async def test_a_run_of_a_team_that_is_not_here_is_answered_and_says_what_to_type(where):
    await began(where, "other")
    async with open_storage(where) as storage, shown(team(), storage) as client:
        page = (await client.get("/runs/r1")).text.replace("&#39;", "'")
        assert "The team 'other' of this run is not here. Here are: house." in page
        assert "replan resume r1" in page
        assert f"{OFF}Retry…" in page
        action, fields = parsed(page)
        await sent(client, action, {**fields, "text": "blue"})
        assert "blue. It counts when the run continues." in (await client.get("/runs/r1")).text
        for path in ("steps/3/retry", "steps/3/skip", "plan"):
            assert (await client.get(f"/runs/r2/{path}")).status_code == 409
    done, _ = await resumed(where, "other")
    assert done.results[2].text == "in blue"

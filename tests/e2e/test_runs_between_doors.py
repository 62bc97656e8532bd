"""A run that was begun at one door is seen and continued at the others, by the team of its name."""

import asyncio
import re
from itertools import count

import httpx2
import pytest
from typer.testing import CliRunner

from replan import Limits, RunSettings, Specialist, Team, ask_user, open_runtime, open_storage
from replan.cli.main import app
from replan.server.callers.identity import Allowance
from replan.server.serving import open_server
from replan.team.team_file import read_team_file
from served import as_, tokens_of

WORK = """\
from pathlib import Path

from replan import ask_user


def ask(context):
    first = ask_user("Which colour?")
    second = ask_user("Which size?")
    with (Path(__file__).parent / "effects").open("a") as effects:
        effects.write("painted\\n")
    return f"{first}, {second}."
"""
TEAM = """\
name: shop
host: {model: offline}
specialists:
  - {name: asker, intended_use: Asks., run: 'MODULE:ask', effects: unsafe}
"""
PLAN = "# Paint\n\n- [ ] 1. Paint the door @asker\n"
_numbers = count()


class Shop:
    """A folder with a team, its runs in a file, and the doors to them."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.file = folder, folder / "shop.yaml"
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        monkeypatch.setenv("REPLAN_STORAGE", str(folder / "runs.db"))
        self.module = f"between_doors_{next(_numbers)}"
        (folder / f"{self.module}.py").write_text(WORK)
        self.file.write_text(TEAM.replace("MODULE", self.module))
        (folder / "plan.md").write_text(PLAN)

    def says(self, *words, code=None):
        ended = CliRunner().invoke(app, [*words])
        assert code is None or ended.exit_code == code, ended.output
        return ended.output

    def begun(self):
        told = self.says("run", str(self.folder / "plan.md"), "--team", str(self.file), code=3)
        return re.search(r"run (\w{8})", told)[1]

    def at_server(self, act, team=None, **tokens):
        """What a client of a server of the same storage gets."""

        async def done():
            known = tokens_of(owner={}, **tokens)
            teams = {"shop": team or read_team_file(self.file, {})}
            teams = {
                name: each.config if hasattr(each, "config") else each
                for name, each in teams.items()
            }
            async with (
                open_storage(self.folder / "runs.db") as storage,
                open_server(teams, storage=storage, tokens=known) as server,
                httpx2.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client,
            ):
                return await act(client)

        return asyncio.run(done())

    def record(self, run):
        async def read():
            async with open_storage(self.folder / "runs.db") as storage:
                (record,) = await storage.runs.find(run)
                return record, await storage.log.events(record.run_id)

        return asyncio.run(read())

    @property
    def effects(self):
        return (self.folder / "effects").read_text().splitlines()


@pytest.fixture
def shop(tmp_path, monkeypatch):
    return Shop(tmp_path, monkeypatch)


async def _whole(client, run, name="owner"):
    listed = (await client.get("/runs", headers=as_(name))).json()["runs"]
    return next((each for each in listed if each["run_id"].startswith(run)), None)


async def _rested(client, path):
    """A run once it rests: its stream of events ends then."""
    headers = {**as_("owner"), "Accept": "text/event-stream"}
    async with client.stream("GET", f"{path}/events", headers=headers) as events:
        async for _ in events.aiter_lines():
            pass
    return (await client.get(path, headers=as_("owner"))).json()


def _answering(run, key, text):
    async def act(client):
        whole = await _whole(client, run)
        path = f"/runs/{whole['run_id']}"
        told = await client.post(
            f"{path}/answers", json={"answers": {key: text}}, headers=as_("owner")
        )
        assert told.status_code in (200, 202), told.text
        return await _rested(client, path)

    return act


def test_a_run_goes_from_the_terminal_to_a_server_and_back(shop):
    run = shop.begun()
    found = shop.at_server(_answering(run, "1/asker/1", "red"))
    assert (found["team"], found["outcome"]) == ("shop", "waiting")
    assert [each["key"] for each in found["pending_questions"]] == ["1/asker/2"]

    answer = ("resume", run, "--answer", "1/asker/2=large")
    # This user has not been shown this question before.
    assert "Which size?" in shop.says(*answer, code=2)
    assert "red, large." in shop.says(*answer, code=0)
    assert shop.effects == ["painted"]
    record, events = shop.record(run)
    assert (record.team.name, record.team.source) == ("shop", str(shop.file))
    assert "warning" not in [each.event["type"] for each in events]


def test_another_version_of_the_team_continues_with_a_warning_and_an_event(shop):
    run = shop.begun()
    before = shop.record(run)[0].team
    shop.file.write_text(shop.file.read_text() + "complexity_threshold: 0.4\n")
    found = shop.at_server(_answering(run, "1/asker/1", "red"))
    assert any("has changed" in each for each in found["warnings"])
    answer = ("resume", run, "--answer", "1/asker/2=large")
    shop.says(*answer, code=2)
    shop.says(*answer, code=0)
    record, events = shop.record(run)
    (warning,) = [each.event["text"] for each in events if each.event["type"] == "warning"]
    assert before.digest in warning
    assert record.team.digest in warning
    assert before.digest != record.team.digest


def test_a_run_of_a_server_is_continued_at_a_terminal_that_is_told_its_team(shop):
    async def begin(client):
        body = {"plan": PLAN, "team": "shop"}
        run = (await client.post("/runs", json=body, headers=as_("owner"))).json()["run_id"]
        await _rested(client, f"/runs/{run}")
        return run

    run = shop.at_server(begin)
    answer = ("resume", run, "--answer", "1/asker/1=red")
    # What is on record may be another user's word: a team is not imported because of it.
    told = shop.says(*answer, code=2)
    assert f"imports the team '{shop.file}' (--team)" in told
    other = shop.folder / "other.yaml"
    other.write_text(shop.file.read_text().replace("name: shop", "name: other"))
    told = shop.says(*answer, "--team", str(other), code=2)
    assert "is of the team 'shop'" in told
    assert shop.says(*answer, "--team", str(shop.file), code=3)
    assert shop.says("resume", run, "--answer", "1/asker/2=large", "--team", str(shop.file), code=0)
    assert shop.effects == ["painted"]


def test_a_run_of_a_program_says_what_a_terminal_needs(shop):
    async def begin():
        async def asks(context):
            return ask_user("Which colour?")

        team = Team("offline", [Specialist("asker", "Asks.", run=asks)], name="code")
        async with open_runtime(team, storage=shop.folder / "runs.db") as runtime:
            settings = RunSettings(limits=Limits(max_rounds=3))
            return (await runtime.run({"plan": PLAN}, settings=settings, run_id="a" * 32)).outcome

    assert asyncio.run(begin()) == "waiting"
    told = shop.says("resume", "a" * 32, "--answer", "red", code=2)
    assert "of the team 'code', and its file is not on record" in told


def test_a_terminals_run_is_not_seen_by_a_token_with_a_tenant_or_limits(shop):
    run = shop.begun()
    run_id = shop.record(run)[0].run_id
    tokens = {
        "north": {"tenant": "north"},
        "bound": {"limits": Allowance(runs_at_once=3)},
    }

    async def look(client):
        seen = {}
        for name in ("owner", *tokens):
            listed = await _whole(client, run, name)
            one = await client.get(f"/runs/{run_id}", headers=as_(name))
            answer = {"answers": {"1/asker/1": "red"}}
            path = f"/runs/{run_id}/answers"
            told = one
            if name != "owner":
                told = await client.post(path, json=answer, headers=as_(name))
            seen[name] = (listed is not None, one.status_code, told.status_code)
        return seen

    assert shop.at_server(look, **tokens) == {
        "owner": (True, 200, 200),
        "north": (False, 404, 404),
        "bound": (False, 404, 404),
    }


def test_a_server_without_the_team_does_not_show_the_run(shop):
    run = shop.begun()
    other = Team("offline", [Specialist("asker", "Asks.", run=lambda _: "Done.")])

    async def look(client):
        return await _whole(client, run)

    async def served():
        async with (
            open_storage(shop.folder / "runs.db") as storage,
            open_server({"other": other}, storage=storage, tokens=tokens_of(owner={})) as server,
            httpx2.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client,
        ):
            return await look(client)

    assert asyncio.run(served()) is None

"""What the runs of a period took: the same numbers in the terminal, over HTTP and on the page."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from pages import shown
from replan import Host, Limits, Price, Specialist, Team, open_runtime, open_storage
from replan.cli.main import app
from replan.testing import ScriptedModel, always
from replan.views.cells import amount
from scripts import END
from served import as_, served, tokens_of

PLAN = "- [ ] 1. Price it @buyer\n- [ ] 2. Fail @breaker\n"
BY = ("day", "team", "specialist", "tool", "model")
TODAY = f"{datetime.now(UTC):%Y-%m-%d}"


def price(item: str) -> str:
    """Price an item."""
    if item == "gold":
        raise ValueError("not for sale")
    return "7"


def breaks(_):
    raise ValueError("broken")


def team(**options):
    calls = [
        AIMessage("", tool_calls=[{"name": "price", "args": {"item": item}, "id": item}])
        for item in ("tea", "gold")
    ]
    replies = {"specialist": [*calls, "It is 7.", *calls, "It is 7."], "feedback": always(END)}
    model = ScriptedModel(replies)
    members = [
        Specialist("buyer", "Buys.", chat_model=model, tools=[price], effects="pure"),
        Specialist("breaker", "Breaks.", run=breaks),
    ]
    return Team(Host(model), members, name="house", limits=Limits(step_retries=0), **options)


async def ran(storage, *labels):
    shop = team()
    async with open_runtime(shop, storage=storage) as runtime:
        for number, own in enumerate(labels):
            await (await runtime.start({"plan": PLAN}, run_id=f"r{number}", labels=own))


@pytest.fixture
def where(tmp_path):
    path = str(tmp_path / "runs.db")

    async def begin():
        async with open_storage(path) as storage:
            await ran(storage, {"team": "house"}, {"team": "house"})

    asyncio.run(begin())
    return path


def in_terminal(where, *words):
    return CliRunner().invoke(app, ["stats", *words, "--storage", where])


def sums_of(where, by):
    return json.loads(in_terminal(where, "--by", by, "--json").stdout)


async def test_a_day_is_one_row_with_what_it_cost_in_each_currency(tmp_path):
    path = str(tmp_path / "runs.db")
    async with open_storage(path) as storage:
        for currency in ("EUR", "USD"):
            prices = {"ScriptedModel": Price(input=1, output=6)}
            priced = team(prices=prices, currency=currency)
            async with open_runtime(priced, storage=storage) as runtime:
                await runtime.run({"plan": PLAN}, run_id=currency)
        await ran(storage, {"team": "house"})
    (day,) = await asyncio.to_thread(sums_of, path, "day")
    assert day["runs"] == 3
    assert list(day["costs"]) == ["EUR", "USD", ""]
    table = (await asyncio.to_thread(in_terminal, path)).stdout
    euros, dollars = (amount(day["costs"][each], each) for each in ("EUR", "USD"))
    assert f"{euros} + {dollars} + unknown" in table
    async with open_storage(path) as storage, shown(team(), storage) as client:
        page = (await client.get("/stats")).text
    assert f"<td>{euros} + {dollars} + unknown</td>" in page
    assert page.count(f"<td>{TODAY}</td>") == 1


async def test_http_and_the_page_tell_the_numbers_of_the_terminal(where):
    own = {by: await asyncio.to_thread(sums_of, where, by) for by in BY}
    async with served(team(), where) as client:
        for by in BY:
            told = (await client.get("/stats", params={"by": by})).json()
            assert (told["by"], told["has_more"]) == (by, False)
            assert told["sums"] == own[by]
        none = await client.get("/stats", params={"since": "2999-01-01T00:00:00Z"})
        assert none.json()["sums"] == []
        assert (await client.get("/stats", params={"by": "colour"})).status_code == 422
    async with open_storage(where) as storage, shown(team(), storage) as client:
        page = (await client.get("/stats?by=specialist")).text
        for each in own["specialist"]:
            assert f"<td>{each['name']}</td><td>2</td><td>{each['number']}</td>" in page
        assert (await client.get("/stats?by=colour")).status_code == 422
        assert "There is no" not in (await client.get("/stats?by=tool&days=7")).text


async def test_a_tenant_sees_the_figures_of_his_own_runs_alone():
    tokens = tokens_of(anna={"tenant": "north", "roles": ["read"]}, root={"roles": ["operate"]})
    async with open_storage(":memory:") as storage:
        own = {"team": "house", "tenant": "north"}
        await ran(storage, own, {**own, "tenant": "south"})
        async with shown(team(), storage, tokens) as client:
            for who, number in (("anna", 1), ("root", 2)):
                page = (await client.get("/stats?by=team", headers=as_(who))).text
                assert f"<td>house</td><td>{number}</td>" in page

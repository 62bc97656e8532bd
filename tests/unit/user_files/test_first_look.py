"""The first screen of a run, shown before its state is read, is that of the whole run."""

import asyncio
import io
import json
import sqlite3
import subprocess
import sys

import pytest

from replan import (
    Host,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
)
from replan.cli.runs import RunFilter, list_runs
from replan.cli.user_files.storage_location import StorageLocation
from replan.cli.user_files.whole import load_run
from replan.storage.report_rows import report_in_file
from replan.testing import ScriptedModel, always
from replan.views.run.overview import overview

PLAN = """\
# Two things

- [ ] 1. Fetch it @worker (retries 1)
- [ ] 2. Break it @breaker (after 1; optional; retries 0)
- [ ] 3. Say it @worker (after 1)
"""


def work(context):
    if context.plan_step.id == 1 and context.attempt == 1:
        raise ConnectionError("reset")
    return "done"


def breaks(context):
    raise ValueError("broken")


def ask(context):
    return ask_user("Which?")


SPECIALISTS = [
    Specialist("worker", "Works.", run=work, effects="pure"),
    Specialist("breaker", "Breaks.", run=breaks, effects="pure"),
    Specialist("asker", "Asks.", run=ask, effects="pure"),
]
TEAM = Team(Host(model="offline"), SPECIALISTS)


async def made(where, plan, **options):
    async with (
        open_storage(where, **options) as storage,
        open_runtime(TEAM, storage=storage) as runtime,
    ):
        return await runtime.run({"plan": plan}, run_id="abc", labels={"user": "eva"})


@pytest.fixture
def where(tmp_path):
    return tmp_path / "runs.db"


async def test_it_says_what_the_whole_run_says(where):
    assert (await made(str(where), PLAN)).outcome == "completed"
    whole = await load_run("last", StorageLocation(str(where)))
    for name in (None, "a", "abc"):
        found = report_in_file(where, name)
        assert found is not None
        assert overview(found, 90) == overview(whole, 90)
        assert found.answer == whole.answer
    assert report_in_file(where, "b") is None


async def test_nothing_is_said_before_of_a_run_that_is_not_over(where):
    await made(str(where), "- [ ] 1. Ask @asker\n")
    assert report_in_file(where, None) is None


async def test_a_run_that_went_on_since_is_read_from_its_state(where):
    await made(str(where), PLAN)
    async with (
        open_storage(str(where)) as storage,
        open_runtime(TEAM, storage=storage) as runtime,
    ):
        await storage.log.add_events("abc", [{"type": "run_resumed"}])
        assert report_in_file(where, None) is None
        assert (await runtime.get("abc")).outcome == "completed"


async def test_a_run_that_went_back_since_is_read_from_its_state(where):
    await made(str(where), PLAN)
    async with open_storage(str(where)) as storage:
        graph = build_graph(TEAM, storage=storage)
        thread = {"configurable": {"thread_id": "abc"}}
        history = [each async for each in graph.aget_state_history(thread)]
        start = next(each for each in history if each.next == ("plan_execution",))
        await graph.ainvoke(None, start.config)
    assert report_in_file(where, None) is None
    assert len((await load_run("last", StorageLocation(str(where)))).forks) == 1


def test_what_is_no_storage_of_ours_is_left_to_who_opens_it(where, tmp_path):
    assert report_in_file(where, None) is None
    assert not where.exists()
    (tmp_path / "text.db").write_text("not a database " * 20)
    assert report_in_file(tmp_path / "text.db", None) is None
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE replan_facts (name, value)")
    connection.close()
    assert report_in_file(tmp_path / "other.db", None) is None


def test_it_loads_no_framework(where):
    asyncio.run(made(str(where), PLAN))
    code = (
        "import sys; from pathlib import Path; import replan.cli.main\n"
        "from replan.storage.report_rows import report_in_file\n"
        "from replan.views.run.overview import overview\n"
        f"print(len(overview(report_in_file(Path({str(where)!r}), None), 90)))\n"
        "print([name for name in sys.modules if name.startswith(('lang', 'sqlalchemy'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, loaded_ones = done.stdout.splitlines()
    assert int(count) > 10
    assert loaded_ones == "[]"


async def test_the_calls_of_a_round_in_progress_are_told_of_a_live_run(where):
    told = io.StringIO()

    async def looks(context):
        wanted = RunFilter(most=1, labels={}, outcomes=(), since=None)
        location = StorageLocation(str(where))
        await asyncio.to_thread(list_runs, wanted, location, told, as_json=True)
        return "seen"

    caller = Specialist("caller", "Calls.", chat_model=ScriptedModel(always("x")), effects="pure")
    team = Team(Host(model="offline"), [caller, Specialist("eye", "Looks.", run=looks)])
    plan = "- [ ] 1. Call @caller\n- [ ] 2. Look @eye (after 1)\n"
    async with open_runtime(team, storage=str(where)) as runtime:
        ended = await runtime.run({"plan": plan})
        view = await runtime.get(ended.run_id)
    row = json.loads(told.getvalue())
    assert (row["outcome"], row["steps_done"]) == ("running", 1)
    # The event of its end may be on its way to the storage; that it was made is on record.
    assert row["usage"]["calls"] + row["usage"]["unfinished_calls"] == 1
    assert (view.calls.calls, view.seconds > 0) == (ended.usage.calls, True)

"""Kept runs as people see them, whatever their processes had the time to say."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from replan import (
    open_storage,
)
from replan.cli.main import app
from replan.cli.user_files.order_signature import sign
from replan.cli.user_files.orders import Order, order_on_record
from replan.log.rows import Attempt
from replan.ports.run_book import RunRecord

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "runs.db")


@pytest.fixture
def replan(place):
    def do(*words):
        done = CliRunner().invoke(app, [*words, "--storage", place])
        assert done.exit_code == 0, done.output
        return done.stdout

    return do


def change(place, work):
    async def changed():
        async with open_storage(place) as storage:
            await work(storage)

    asyncio.run(changed())


def began(at):
    about = {"step_id": 1, "specialist": "w", "attempt": 1, "task": "Do it"}
    return {"type": "specialist_invoked", "at": at.isoformat(), **about}


def ended(at, error):
    about = {"step_id": 1, "specialist": "w", "attempt": 1, "outcome": "failed", "error": error}
    return {"type": "attempt_ended", "at": at.isoformat(), **about}


@pytest.mark.parametrize("written", ["running", "interrupted"])
def test_a_run_that_ended_is_over_though_nobody_wrote_so(replan, place, written):
    replan("run", "calculate 2 + 2")
    (listed,) = replan("runs", "--json").splitlines()
    run_id = json.loads(listed)["run_id"]
    change(place, lambda storage: storage.runs.update(run_id, written, NOON))
    (listed,) = replan("runs", "--json").splitlines()
    assert json.loads(listed)["outcome"] == "answered"
    assert replan("resume", "last").splitlines()[0] == f"run {run_id[:8]} is over: answered"


def test_a_run_that_was_killed_before_it_had_a_state_is_shown(replan, place):
    record = RunRecord(
        run_id="a" * 32,
        thread_id="a" * 32,
        title="Do\x1b[2J it",
        order=sign(order_on_record(Order(task="calculate 2 + 2")), "a" * 32),
        started_at=NOON,
        updated_at=NOON,
    )
    tried = Attempt(
        run_id=record.run_id, step_id=1, specialist="w", number=1, key="k", started_at=NOON
    )

    async def begin(storage):
        await storage.runs.begin(record)
        await storage.log.started(tried)
        failed = NOON + timedelta(seconds=1.5)
        await storage.log.ended(tried, "failed", failed, "no\nink")
        told = [{"type": "x", "at": NOON.isoformat()}, began(NOON), ended(failed, "no\nink")]
        await storage.log.add_events(record.run_id, told)

    change(place, begin)
    assert "interrupted  -      -     Do" in replan("runs")
    shown = replan("show", "aaaa")
    assert "\x1b" not in shown
    assert "\ninterrupted: 0 of 1 step done" in shown
    assert "attempt 1: failed: no ink" in shown
    assert "used no model calls\n" in shown
    kept = json.loads(replan("show", "aaaa", "--json"))
    assert kept["plan"] is None
    assert kept["seconds"] == json.loads(replan("runs", "--json"))["seconds"] == 1.5
    assert replan("resume", "last", "--quiet") == "2 + 2 = 4\n"


async def work_began(storage):
    """A process began a step 16 s ago, and has not said a word since."""
    at = datetime.now(UTC) - timedelta(seconds=16)
    record = RunRecord(run_id="a", thread_id="a", started_at=at, updated_at=at)
    await storage.runs.begin(record)
    await storage.log.started(
        Attempt(run_id="a", step_id=1, specialist="w", number=1, key="k", started_at=at)
    )
    told = [{"type": "run_started", "at": at.isoformat(), "request": "Do it"}, began(at)]
    await storage.log.add_events("a", told)


def test_a_run_that_is_at_work_has_taken_the_time_until_now(replan, place):
    async def look(storage):
        await work_began(storage)
        async with storage.holds.lock("a"):
            looks = [["show", "a"], ["show", "a", "--json"], ["runs", "--json"]]
            shown.extend([await asyncio.to_thread(replan, *each) for each in looks])

    shown = []
    change(place, look)
    text, kept, listed = shown[0], json.loads(shown[1]), json.loads(shown[2])
    assert "running: 0 of 1 step done" in text
    assert "attempt 1: running" in text
    assert "doubt" not in text
    assert "took 16 s" in text or "took 17 s" in text
    assert kept["steps"][0]["seconds"] >= 16
    assert listed["seconds"] >= kept["seconds"] >= 16


def test_the_clock_of_a_run_that_was_killed_tells_when_it_still_worked(replan, place):
    async def begin(storage):
        await work_began(storage)
        await storage.log.note("a", "seconds/run/9.000", 9.0)

    change(place, begin)
    text = replan("show", "a")
    assert "took at least 9.0 s" in text
    assert "why: its process was killed, at " in text
    assert "attempt 1: cut off" in text
    assert json.loads(replan("runs", "--json"))["seconds"] == 9
    assert "at least 9.0 s" in replan("runs")


def test_what_another_program_began_is_shown_and_cannot_be_resumed(place, replan):
    record = RunRecord(run_id="b", thread_id="b", order=None, started_at=NOON, updated_at=NOON)
    change(place, lambda storage: storage.runs.begin(record))
    assert "run b\n" in replan("show", "b")
    refused = CliRunner().invoke(app, ["resume", "b", "--storage", place])
    assert refused.exit_code == 2
    assert "The run b was not begun by this version" in refused.stderr


def test_answers_to_a_run_that_asks_nothing_are_refused(place, replan, tmp_path):
    replan("run", "calculate 2 + 2")
    (tmp_path / "plan.md").write_text("- [ ] 1. Go\n")
    for words in (["--answer", "yes"], ["--plan", str(tmp_path / "plan.md")]):
        refused = CliRunner().invoke(app, ["resume", "last", *words, "--storage", place])
        assert refused.exit_code == 2
        assert refused.stderr.startswith("replan: This run ")

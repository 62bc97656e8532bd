"""What the history of a run tells of its pauses: no kill that was none, and who continued it."""

import asyncio
import re

import pytest

from replan import Host, Specialist, Team, ask_user, open_runtime
from replan.testing import ScriptedModel, always
from replan.views.run.history import history_lines
from scripts import END

pytestmark = pytest.mark.one_store

PAINT = {"plan": "- [ ] 1. Hall @painter\n- [ ] 2. Shut @porter (after 1)\n"}


class Crew:
    """One who asks, and one who waits behind that until it may go."""

    def __init__(self):
        self.at_work, self.leave = asyncio.Event(), asyncio.Event()
        painter = Specialist("painter", "Paints.", run=self.paint, effects="pure")
        porter = Specialist("porter", "Shuts.", run=self.shut, effects="pure")
        host = Host(ScriptedModel({"feedback": always(END)}))
        self.team = Team(host, [painter, porter])

    def paint(self, _):
        return f"It is {ask_user('Which colour?')}"

    async def shut(self, _):
        self.at_work.set()
        await self.leave.wait()
        return "shut"


@pytest.fixture
def crew():
    return Crew()


@pytest.fixture
async def runtime(crew, where):
    async with open_runtime(crew.team, storage=where, grace=0.01) as runtime:
        yield runtime


async def told(runtime, run_id):
    """Its history, without times and durations."""
    lines = history_lines(await runtime.get(run_id))
    return [re.sub(r"^\S+ | \(.*\)$", "", line) for line in lines]


async def test_a_run_that_was_stopped_before_it_told_anything_was_not_killed(runtime, crew):
    crew.leave.set()
    going = await runtime.start(PAINT, run_id="r")
    await runtime.stop("r", by="anna")
    assert (await going).outcome == "interrupted"
    assert (await runtime.resume("r", by="otto")).outcome == "waiting"
    assert (await told(runtime, "r"))[:4] == [
        "anna asked it to stop",
        "stopped, interrupted by anna",
        "resumed by otto",
        "the plan was handed in with the request: 2 steps",
    ]


async def answered_and_stopped(runtime, crew):
    """A run that went on with an answer, and was stopped behind it."""
    assert (await runtime.run(PAINT, run_id="r")).outcome == "waiting"
    going = await runtime.answer("r", "blue", by="eva")
    await crew.at_work.wait()
    await runtime.stop("r", by="anna", force=True)
    assert (await going).outcome == "interrupted"
    crew.leave.set()


async def test_who_resumes_is_named_and_not_whose_answer_counted_before(runtime, crew):
    await answered_and_stopped(runtime, crew)
    assert (await runtime.resume("r", by="otto")).outcome == "completed"
    lines = [line for line in await told(runtime, "r") if line.startswith("resumed")]
    assert lines == ["resumed by eva", "resumed by otto"]


async def test_nobody_is_named_where_a_run_is_resumed_by_nobody(runtime, crew):
    await answered_and_stopped(runtime, crew)
    assert (await runtime.run(PAINT, run_id="r")).outcome == "completed"
    lines = [line for line in await told(runtime, "r") if line.startswith("resumed")]
    assert lines == ["resumed by eva", "resumed"]

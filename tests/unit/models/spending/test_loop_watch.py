"""A step that blocks the event loop is named in the log."""

import asyncio
import logging

import pytest

from replan.models.spending import deadline
from replan.models.spending.deadline import watched


def about():
    return {"step_id": 3, "specialist": "a"}


async def twice():
    await asyncio.sleep(0)
    return "done"


@pytest.mark.parametrize(("longest", "named"), [(-1.0, 2), (60.0, 0)])
async def test_a_step_is_named_each_time_that_it_keeps_the_loop_too_long(
    longest, named, monkeypatch, caplog
):
    monkeypatch.setattr(deadline, "LONGEST_BLOCK", longest)
    with caplog.at_level(logging.WARNING):
        assert await watched(twice(), about) == "done"
    told = [record for record in caplog.records if "blocked the event loop" in record.message]
    assert [(each.step_id, each.specialist) for each in told] == [(3, "a")] * named


async def test_errors_and_cancellations_reach_the_work_and_whoever_awaits_it():
    heard, going = [], asyncio.Event()

    async def waits():
        try:
            going.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise ValueError("in the end") from None

    task = asyncio.ensure_future(watched(waits(), about))
    await going.wait()
    task.cancel()
    with pytest.raises(ValueError, match="in the end"):
        await task
    assert heard == ["cancelled"]

"""Turns of a job: what is asked, what is corrected, what is done, and where it ends."""

import json

import pytest

from replan.errors import JobError
from replan.jobs.actions import Outcome
from replan.jobs.extraction.port import Extracted
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

pytestmark = pytest.mark.anyio


def trip(**changes):
    def fits(value, others):
        return f"there is no {others['a']}-{value}." if value == others["a"] else None

    slots = [
        Slot("a", question="A?"),
        Slot("b", question="B?", depends_on=["a"], check=fits),
        Slot("c", question="C?", depends_on=["b"]),
        Slot("d", question="D?"),
        Slot("e", question="E?"),
    ]
    fields = {
        "slots": slots,
        "commands": [JobCommand("go", needs=["a", "b", "c", "d"], takes=["e"], action="do")],
        "actions": [ActionSpec("do", run=print)],
    }
    return JobSpec("trip", **{**fields, **changes})


async def test_only_who_was_shown_the_values_confirms_them(make, executor, recorder):
    class Eager:
        async def extract(self, wanted):
            return Extracted(command="go", confirmed=True)

    processor = make(trip(), executor, Eager())
    job = processor.new_job(values={"a": "1", "b": "2", "c": "3", "d": "4"})
    asked = await processor.process(job, ["yes please, go"])
    assert asked.job.asked.names == ("confirmation",)
    assert not executor.calls
    assert (await processor.process(asked.job, ["yes"])).is_completed
    # Who takes up what may have taken effect is told so before it is done again.
    lost = recorder(Outcome(success=False, error="the server is gone", in_doubt=True))
    failed = await make(trip(), lost, Eager()).process(asked.job, ["yes"])
    again = await make(trip(), lost, Eager()).process(failed.job, ["yes"])
    assert "may have taken effect" in again.response_message
    assert len(lost.calls) == 1


async def test_a_job_from_outside_is_refused_with_every_field(spec, make):
    processor = make(spec)
    good = processor.new_job("edit").to_dict()
    bad = {**good, "command": "erase", "collected_info": {"colour": 1}, "required_info": ["title2"]}
    with pytest.raises(JobError) as told:
        await processor.process(bad)
    assert [each.field for each in told.value.mistakes] == [
        "command",
        "required_info[0]",
        "collected_info.colour",
    ]
    for field, value in {
        "phase": "DREAMING",
        "type": "other",
        "version": 2,
        "turns": "many",
        "unknown": 1,
        "history": [{"turn": 1}],
    }.items():
        with pytest.raises(JobError, match=field):
            await processor.process({**good, field: value})
    with pytest.raises(JobError, match="id"):
        await processor.process({name: each for name, each in good.items() if name != "id"})
    with pytest.raises(JobError, match="job: it is not a mapping"):
        await processor.process(json.dumps(good))

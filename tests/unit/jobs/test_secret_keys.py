"""Keys of actions tell nothing of secret values, and are the same in each process all the same."""

import json

import pytest

from replan.jobs.actions import Outcome
from replan.jobs.extraction.port import Extracted
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.jobs.views import shown_job

pytestmark = pytest.mark.anyio
PAY = JobSpec(
    "pay",
    slots=[Slot("to", question="To whom?"), Slot("pin", question="PIN?", secret=True)],
    commands=[
        JobCommand("pay", needs=["to", "pin"], action="do"),
        JobCommand("show", needs=["to"], action="do"),
    ],
    actions=[ActionSpec("do", run=print, effects="keyed")],
)
BUSY = Outcome(success=False, error="gone", is_transient=True)


async def keys_of(make, recorder, *said, given=None):
    """The keys of what a job attempts that always fails, and the job in the end."""
    executor = recorder(*[BUSY] * 100)
    processor = make(PAY, executor)
    job = given or processor.new_job(job_id="j")
    for each in said:
        job = (await processor.process(job, [each])).job.to_dict()
    return list(dict.fromkeys(call.key for call in executor.calls)), processor.read(job)


async def test_a_key_tells_a_changed_secret_and_nothing_of_its_value(make, recorder):
    one, job = await keys_of(make, recorder, "pay, to: Ann, pin: 4711")
    other, _ = await keys_of(make, recorder, "pay, to: Ann, pin: 0815")
    assert one == other
    step_by_step, _ = await keys_of(make, recorder, "pay", "to: Ann", "pin: 4711")
    assert step_by_step == one
    again, _ = await keys_of(make, recorder, "go on", given=job)
    assert again == one
    changed, job = await keys_of(make, recorder, "pin: 0815", given=job)
    assert changed != one
    # What was done between is another thing; with the value of before, this one is the same again.
    _, beside = await keys_of(make, recorder, "show", given=job)
    assert "pin" not in beside.collected_info
    back, _ = await keys_of(make, recorder, "pay", "pin: 0815", given=beside)
    assert back == changed
    assert "0815" not in json.dumps(shown_job(PAY, job).to_dict())


async def test_the_mask_of_a_secret_is_none_of_its_values(make, recorder):
    class Echo:
        """A model that gives back what its prompt shows of a secret."""

        async def extract(self, wanted):
            return Extracted(values={"pin": " *** ", "to": "Bob"})

    executor = recorder()
    kept = await make(PAY, executor, Echo()).process(
        make(PAY).new_job("pay", {"to": "Ann", "pin": "4711"}), ["to Bob, please"]
    )
    assert executor.calls[0].parameters == {"to": "Bob", "pin": "4711"}
    assert kept.job.corrections == 1
    asked = await make(PAY, executor, Echo()).process(make(PAY).new_job("pay"), ["to Bob"])
    assert asked.job.asked.names == ("pin",)


async def test_a_secret_that_was_said_in_a_wrong_place_is_shown_nowhere(make):
    account = Slot("to", question="To which account?", type="integer")
    spec = PAY.replace(slots=[account, PAY.slot("pin")])
    result = await make(spec).process(make(spec).new_job(), ["pay, to: hunter2, pin: hunter2"])
    assert result.job.validation_errors[0].value == "***"
    assert "hunter2" not in result.response_message
    assert "hunter2" not in json.dumps(shown_job(spec, result.job).to_dict())

"""A job whose process is killed while it acts: nothing happens twice, in whatever process."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from replan import open_storage
from replan.assembly.jobs import job_processor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

pytestmark = [pytest.mark.anyio, pytest.mark.one_store]
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Shop:
    """A service that lists products, and may be cut off right after it did."""

    def __init__(self, *, honours_keys):
        self.listed, self.seen, self.dies = [], {}, True
        self.honours_keys = honours_keys

    async def publish(self, product, idempotency_key):
        if not (self.honours_keys and idempotency_key in self.seen):
            self.listed.append(product)
            self.seen[idempotency_key] = f"listing {len(self.listed)}"
        if self.dies:
            raise asyncio.CancelledError
        return self.seen[idempotency_key]

    def spec(self, effects):
        return JobSpec(
            "listing",
            slots=[Slot("product", question="Which product?")],
            commands=[JobCommand("publish", needs=["product"], action="publish")],
            actions=[ActionSpec("publish", run=self.publish, effects=effects)],
        )


async def turn(where, spec, job, said):
    """Take a turn in a process of its own: another storage, another processor."""
    async with open_storage(where) as storage:
        processor = job_processor(spec, log=storage.log, clock=lambda: NOW)
        result = await processor.process(job or processor.new_job(), [said])
    return result, json.loads(json.dumps(result.job.to_dict()))


async def test_an_unsafe_action_is_done_again_only_if_the_user_says_so(where):
    shop = Shop(honours_keys=False)
    spec = shop.spec("unsafe")
    _, job = await turn(where, spec, None, "product: lamp")
    with pytest.raises(asyncio.CancelledError):
        await turn(where, spec, job, "yes")
    shop.dies = False
    doubt, job = await turn(where, spec, job, "yes")
    assert "Nobody knows whether it took effect" in doubt.job.error
    assert shop.listed == ["lamp"]
    asked, job = await turn(where, spec, job, "what now?")
    assert "An earlier attempt may have taken effect: " in asked.response_message
    unclear, job = await turn(where, spec, job, "something else")
    assert unclear.response_message.startswith("I did not understand that. Say 'yes', or")
    assert shop.listed == ["lamp"]
    # The second attempt is cut off, too, and that is another doubt.
    shop.dies = True
    with pytest.raises(asyncio.CancelledError):
        await turn(where, spec, job, "yes")
    shop.dies = False
    doubt, job = await turn(where, spec, job, "yes")
    assert "was cut off in attempt 2" in doubt.job.error
    assert shop.listed == ["lamp", "lamp"]
    _, job = await turn(where, spec, job, "what now?")
    done, _ = await turn(where, spec, job, "yes")
    assert done.is_completed
    assert shop.listed == ["lamp", "lamp", "lamp"]

"""A job whose process is killed while it acts: nothing happens twice, in whatever process."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from replan import open_storage
from replan.assembly.jobs import job_agent
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.state.session.context import AgentContext

pytestmark = pytest.mark.anyio
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


async def turn(where, spec, session, said):
    """Take a turn in a process of its own: another storage, another agent."""
    async with open_storage(where) as storage:
        agent = job_agent(spec, log=storage.log, clock=lambda: NOW)
        result = await agent.process(said, session)
    kept = AgentContext.from_dict(session).apply(result.context_updates)
    return result, json.loads(json.dumps(kept.to_dict()))


async def test_an_unsafe_action_is_done_again_only_if_the_user_says_so(where):
    shop = Shop(honours_keys=False)
    spec = shop.spec("unsafe")
    _, session = await turn(where, spec, {"session_id": "s"}, "product: lamp")
    with pytest.raises(asyncio.CancelledError):
        await turn(where, spec, session, "yes")
    shop.dies = False
    doubt, session = await turn(where, spec, session, "yes")
    assert "Nobody knows whether it took effect" in doubt.error
    assert shop.listed == ["lamp"]
    asked, session = await turn(where, spec, session, "what now?")
    assert "An earlier attempt may have taken effect: " in asked.response
    unclear, session = await turn(where, spec, session, "something else")
    assert unclear.response.startswith("I did not understand that. Say 'yes', or")
    assert shop.listed == ["lamp"]
    # The second attempt is cut off, too, and that is another doubt.
    shop.dies = True
    with pytest.raises(asyncio.CancelledError):
        await turn(where, spec, session, "yes")
    shop.dies = False
    doubt, session = await turn(where, spec, session, "yes")
    assert "was cut off in attempt 2" in doubt.error
    assert shop.listed == ["lamp", "lamp"]
    _, session = await turn(where, spec, session, "what now?")
    done, _ = await turn(where, spec, session, "yes")
    assert done.metadata["outcome"] == "completed"
    assert shop.listed == ["lamp", "lamp", "lamp"]

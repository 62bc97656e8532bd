"""A turn over HTTP whose client leaves."""

import asyncio

from acts_teams import END, Fence
from replan.testing import ScriptedModel
from served import served


async def test_who_leaves_a_turn_leaves_it_alone_and_gets_its_result_when_he_comes_again():
    fence, plan = Fence(), "- [ ] 1. Dig @worker\n- [ ] 2. Paint @painter (after 1)\n"
    fence.leave.clear()
    model = ScriptedModel({"think": f"---\ncomplexity: complex\n---\n{plan}", **END})
    async with served(fence.team(model)) as client:
        turn = {"url": "/sessions/hall/turns", "json": {"input": "Paint.", "turn_id": "m1"}}
        stream = {"Accept": "text/event-stream"}
        async with client.stream("POST", **turn, headers=stream) as told:
            async for line in told.aiter_lines():
                if "specialist_invoked" in line:
                    break
        fence.leave.set()
        async with asyncio.timeout(20):
            while (result := await client.post(**turn)).status_code == 409:
                pass
        assert result.json()["response"] == "Hue?"
        assert (result.json()["metadata"]["version"], fence.did) == (1, ["Dig"])

"""Runs over HTTP at the same moment: who leaves a stream, and two who begin one run."""

import asyncio
import json

from acts_teams import Fence
from served import rested, served

STREAM = {"Accept": "text/event-stream"}


async def heard(client, run_id, after=None, until=lambda _: False):
    """The events that a stream tells, and the last word of it."""
    headers = STREAM if after is None else {**STREAM, "Last-Event-ID": str(after)}
    told, rest = [], None
    async with client.stream("GET", f"/runs/{run_id}/events", headers=headers) as stream:
        name = ""
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                if name == "idle":
                    rest = data
                else:
                    told.append(data)
            if told and until(told[-1]):
                break
    return told, rest


async def test_who_leaves_a_stream_leaves_the_run_alone_and_misses_nothing():
    fence = Fence()
    async with served(fence.team(), beat=0.05) as client:
        fence.leave.clear()
        began = await client.post("/runs", json={"plan": fence.PLAN, "labels": {"job": "7"}})
        assert (began.status_code, began.json()["outcome"]) == (201, "running")
        run = began.json()["run_id"]
        await fence.at_work.wait()
        first, _ = await heard(client, run, until=lambda each: each["type"] == "specialist_invoked")
        following = asyncio.create_task(heard(client, run, after=first[-1]["seq"]))
        async with client.stream("GET", f"/runs/{run}/events", headers=STREAM) as silent:
            async for line in silent.aiter_lines():
                if line == ": still there":
                    break
        fence.leave.set()
        then, rest = await following
        assert rest == {"run_id": run, "outcome": "waiting"}
        seqs = [each["seq"] for each in first + then]
        assert seqs == [*range(1, len(seqs) + 1)]


async def test_of_two_starts_of_one_name_at_once_one_begins_the_run():
    fence, body = Fence(), {"plan": "- [ ] 1. Dig @worker\n", "run_id": "job-7"}
    async with served(fence.team()) as client:
        both = await asyncio.gather(*(client.post("/runs", json=body) for _ in range(2)))
        assert {each.json()["run_id"] for each in both} == {"job-7"}
        await rested(client, "job-7")
        assert fence.did == ["Dig"]

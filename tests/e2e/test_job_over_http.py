"""A job whose messages a model reads over HTTP: it is asked only for what the rules leave open."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from replan.jobs import job_processor
from replan.testing import HttpFault, OpenAIServer

pytestmark = pytest.mark.anyio
TRAVEL = Path(__file__).parents[2] / "examples/jobs/travel.yaml"
SAID = "We are four and would love to see the fjords, so let us start at Rome and end up in Bergen"
READ = """\
<think>origin: Paris</think>
```json
{"command": "book", "origin": "Rome", "destination": "Bergen", "travellers": "4",
 "phase": "COMPLETED", "confirmed": true}
```"""


async def test_a_model_over_http_reads_what_rules_do_not_understand():
    with OpenAIServer({"extract": [READ, HttpFault(400), "---\ncabin: first\n---"]}) as server:
        processor = job_processor(
            TRAVEL,
            model="openai:m",
            base_url=server.base_url,
            clock=lambda: datetime(2026, 3, 2, 12, tzinfo=UTC),
        )
        first = await processor.process(processor.new_job(), [SAID])
        understood = "Understood: from: Rome, to: Bergen, travellers: 4."
        assert first.response_message == f"{understood}\nOn which day?"
        assert first.job.collected_info == {
            "origin": "Rome",
            "destination": "Bergen",
            "travellers": 4,
        }
        assert [step.dropped for step in first.job.history if step.dropped] == [("phase",)]
        # A server that refuses leaves the rules alone, and says so.
        lost = await processor.process(first.job, ["whenever the weather is fine up there"])
        assert "rules alone" in " ".join(step.reason for step in lost.job.history)
        # What the rules understand costs no call; what is no choice is told.
        dated = await processor.process(lost.job, ["tomorrow"])
        assert dated.job.collected_info["date"] == "2026-03-03"
        assert dated.response_message.startswith("Please confirm")
        assert len(server.requests) == 2
        wrong = await processor.process(dated.job, ["hm, rather the seats in the very front row"])
        assert "I cannot use 'first' for class" in wrong.response_message
        server.assert_finished()
    assert "Rome" in str(server.requests[1].messages)

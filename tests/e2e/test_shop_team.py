"""The team file that uses everything: facts, knowledge, summaries, servers, stand-in models."""

import os
import sys
from pathlib import Path

from langchain_core.messages import AIMessage

from replan import MemoryOptions, RunSettings, open_runtime
from replan.testing import HttpFault, OpenAIServer, Reply

TEAM = Path(__file__).parents[2] / "examples" / "teams" / "shop_team.yaml"
PLAN = """\
---
complexity: complex
---
- [ ] 1. How fast are refunds paid? @adviser
- [ ] 2. See that there are 50 pencils @buyer
"""
SHORT = MemoryOptions(history_limit=1, summary_trigger_messages=2)
CONFIG = {"configurable": {"thread_id": "shop"}}


def calling(tool, **arguments):
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": tool}])


def script():
    return {
        "think": ["---\ncomplexity: simple\n---\n", PLAN],
        "direct_answer": [calling("remember", text="Orders are for the north shop."), "I will."],
        "step 1": "In 30 days.",
        "step 2": [calling("shop__order", article="pencils", amount=47), "47 are ordered."],
        "feedback": "---\nverdict: complete\n---\nRefunds take 30 days, and 47 pencils come.",
        "memory_summary": ["The user is of the north shop.", "Pencils were ordered."],
    }


async def test_a_team_from_one_file_remembers_looks_up_acts_and_asks(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-tests")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    settings = RunSettings(user="ada", memory=SHORT)
    with (
        OpenAIServer(lambda _: Reply("", fault=HttpFault(401))) as away,
        OpenAIServer(script()) as server,
    ):
        team = TEAM.read_text(encoding="utf-8").replace("../data", str(TEAM.parents[1] / "data"))
        team = team.replace("[shop_server.py]", f"[{TEAM.parent / 'shop_server.py'}]")
        for model, at in (("gpt-5-mini", away), ("gpt-4.1-mini", server), ("gpt-5-nano", server)):
            name = f"model: openai:{model}\n"
            team = team.replace(name, f"{name}    base_url: {at.base_url}\n")
        path = tmp_path / "team.yaml"
        path.write_text(team, encoding="utf-8")
        async with open_runtime(path, storage=tmp_path / "runs.db") as runtime:
            first = await runtime.run(
                "Remember that orders are for the north shop.", settings=settings, config=CONFIG
            )
            (fact,) = await runtime.facts("ada")
            second = await runtime.run("Pencils and refunds?", settings=settings, config=CONFIG)
            (asked,) = second.pending_questions
            last = await (await runtime.answer(second.run_id, {asked.key: "approve"}))
            events = [each async for each in runtime.events(last.run_id)]
    assert (first.outcome, fact.text) == ("answered", "Orders are for the north shop.")
    assert asked.details["arguments"] == {"article": "pencils", "amount": 47}
    assert (last.outcome, last.results[2].text) == ("completed", "47 are ordered.")
    assert [each.source for each in last.results[1].sources] != []
    assert last.results[2].sources == ()
    assert last.state["memory_summary"].text == "Pencils were ordered."
    told = {each.type for each in events}
    assert {"knowledge_retrieved", "memory_summary", "answer_received", "tool_completed"} <= told
    assert any(
        "The model first gave no reply, so second was asked" in each for each in last.warnings
    )
    assert {request.model for request in away.requests} == {"gpt-5-mini"}
    assert {request.model for request in server.requests} == {"gpt-4.1-mini", "gpt-5-nano"}

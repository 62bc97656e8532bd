"""Everything that models are known to write in the place of a reply, through the whole host."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from replan import Host, Specialist, TaskComplexity, Team, build_graph, run
from replan.adapters.chat_models import LangChainModels
from replan.testing import OpenAIServer, always

CORPUS = Path(__file__).parents[1] / "unit" / "replies" / "corpus"
PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker\n"
COMPLETE = "---\nverdict: complete\n---\nThe answer."


def replies(node: str) -> list[Any]:
    entries = tomllib.loads((CORPUS / f"{node}.toml").read_text("utf-8"))["reply"]
    return [pytest.param(entry, id=entry["name"]) for entry in entries]


async def run_on(server: OpenAIServer) -> Any:
    team = [Specialist(name="worker", intended_use="Works.", run=lambda context: "done")]
    config = Team(host=Host(model="openai:m"), specialists=team)
    models = LangChainModels(base_url=server.base_url)
    return (await run(build_graph(config, models=models), "Do the work.")).state


@pytest.mark.parametrize("entry", replies("think"))
async def test_whatever_think_replies_the_run_ends_with_an_answer(entry):
    script = {
        "think": [always(entry["text"])],
        "plan_creation": [always("no plan")],
        "direct_answer": [always("The answer.")],
        "feedback": [always(COMPLETE)],
        "plan_update": [always("")],
        "final_answer": [always("The answer.")],
    }
    with OpenAIServer(script) as server:
        state = await run_on(server)
    assert state["final_answer"].text
    # What names nobody, and fits no card, nobody does.
    assert state["outcome"] in {"answered", "completed", "partial", "failed"}
    is_simple = state["current_thinking_result"].complexity is TaskComplexity.SIMPLE
    assert (state["outcome"] == "answered") == is_simple
    if "complexity" in entry:
        assert is_simple == (entry["complexity"] == "simple")
    if not entry.get("reading", True):
        assert state["unreadable_replies"][0].node == "think"


@pytest.mark.parametrize("entry", replies("feedback"))
async def test_whatever_feedback_replies_the_run_ends_with_an_answer(entry):
    script = {
        "think": PLAN,
        "feedback": [always(entry["text"])],
        "plan_update": [always("")],
        "final_answer": [always("The answer.")],
    }
    with OpenAIServer(script) as server:
        state = await run_on(server)
    assert state["final_answer"].text
    assert state["outcome"] in {"completed", "partial"}
    assert state["current_plan"].step(1).status == "completed"

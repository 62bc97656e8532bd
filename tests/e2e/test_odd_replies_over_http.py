"""Everything that models are known to write in the place of a reply, through the whole host."""

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from replan import Host, Specialist, Team, build_graph, run
from replan.models.providers.chat_models import LangChainModels
from replan.state import TaskComplexity
from replan.testing import OpenAIServer, always
from scripts import COMPLETE

CORPUS = Path(__file__).parents[1] / "unit" / "replies" / "corpus"
PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker\n"


EVERY = 3
"""Of the replies every third one; how each of them is read, the tests of the reader tell."""


def replies(node: str) -> list[dict[str, Any]]:
    return tomllib.loads((CORPUS / f"{node}.toml").read_text("utf-8"))["reply"][::EVERY]


async def states_after(node: str, **script: str) -> AsyncIterator[tuple[dict[str, Any], Any]]:
    """Odd replies, each with the state of the run that it was said in."""
    odd = {"text": ""}
    others = {name: [always(text)] for name, text in script.items()}
    with OpenAIServer({**others, node: [always(lambda _: odd["text"])]}) as server:
        team = [Specialist(name="worker", intended_use="Works.", run=lambda context: "done")]
        config = Team(host=Host(model="openai:m"), specialists=team)
        graph = build_graph(config, models=LangChainModels(base_url=server.base_url))
        for entry in replies(node):
            odd["text"] = entry["text"]
            yield entry, (await run(graph, "Do the work.")).state


async def test_whatever_think_replies_the_run_ends_with_an_answer():
    script = {
        "plan_creation": "no plan",
        "direct_answer": "The answer.",
        "feedback": COMPLETE,
        "plan_update": "",
        "final_answer": "The answer.",
    }
    async for entry, state in states_after("think", **script):
        name = entry["name"]
        assert state["final_answer"].text, name
        # What names nobody, and fits no card, nobody does.
        assert state["outcome"] in {"answered", "completed", "partial", "failed"}, name
        is_simple = state["current_thinking_result"].complexity is TaskComplexity.SIMPLE
        assert (state["outcome"] == "answered") == is_simple, name
        assert state["limit_reached"] == "", name
        if "complexity" in entry and not state["unreadable_replies"]:
            assert is_simple == (entry["complexity"] == "simple"), name
        if not entry.get("reading", True):
            assert state["unreadable_replies"][0].node == "think", name


async def test_whatever_feedback_replies_the_run_ends_with_an_answer():
    script = {"think": PLAN, "plan_update": "", "final_answer": "The answer."}
    async for entry, state in states_after("feedback", **script):
        name = entry["name"]
        assert state["final_answer"].text, name
        assert state["outcome"] in {"completed", "partial"}, name
        assert state["current_plan"].step(1).status == "completed", name

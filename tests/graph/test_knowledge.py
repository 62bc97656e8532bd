"""Steps are given what the team's knowledge has on them, and answers cite file and line."""

import asyncio

import pytest

from replan import (
    Specialist,
    Team,
    build_graph,
    run,
)
from replan.adapters.knowledge.folder import FolderRetriever
from replan.prompts.sections import sections_of
from replan.testing import ScriptedModel

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. When are refunds paid? @clerk\n"
DONE = "---\nverdict: complete\n---\n"
REFUNDS = "# Refunds\n\nRefunds are paid within 30 days.\n\nGift cards are never refunded.\n"
ANSWER = f"{DONE}Within 30 days [[refunds.md:3]]."


@pytest.fixture
def knowledge(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "refunds.md").write_text(REFUNDS)
    (folder / "shops.md").write_text("# Shops\n\nShops open at nine.\n")
    return FolderRetriever(folder, cache=tmp_path / "cache")


class Failing:
    def __init__(self, problem=None):
        self.problem = problem
        self.asked = []

    async def search(self, request):
        self.asked.append(request)
        if self.problem is not None:
            raise self.problem
        await asyncio.Event().wait()


class Given:
    """Gives what it is told to, and remembers what it was asked."""

    def __init__(self, *chunks):
        self.chunks = chunks
        self.asked = []

    def search(self, request):
        self.asked.append(request)
        return {"chunks": self.chunks}


def graph_of(model, knowledge, *, clerk=None, checkpointer=None, **options):
    clerk = Specialist("clerk", "Looks up.", **(clerk or {"chat_model": model}))
    team = Team(model, [clerk], knowledge=knowledge, **options)
    return build_graph(team, checkpointer=checkpointer)


def knowledge_in(call):
    return [each.text for each in sections_of(call.text) if each.tag == "knowledge"]


async def test_a_step_is_given_the_passages_and_the_answer_lists_what_it_cites(knowledge):
    said = "They are paid within 30 days [[refunds.md:3]]."
    with ScriptedModel({"think": PLAN, "step 1": said, "feedback": ANSWER}) as model:
        result = await run(graph_of(model, knowledge), "When are refunds paid?")
    (shown,) = knowledge_in(model.calls_of("specialist")[0])
    assert "3| Refunds are paid within 30 days.\n4| \n5| Gift cards are never" in shown
    step = result.state["current_specialist_results"]["1/clerk"]
    assert [(each.source, each.line, each.last_line) for each in step.sources] == [
        ("refunds.md", 3, 5)
    ]
    assert result.text == (
        "Within 30 days [[refunds.md:3]].\n\n**Sources:**\n\n- refunds.md:3 (Refunds)"
    )

"""The sides of the quality measure, against a server that plays the model."""

import sys

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from quality_answers import BENCHMARKS, RIGHT

sys.path.insert(0, str(BENCHMARKS))

from quality_sides import attempt
from quality_tasks import TASKS

from replan.models.providers.chat_models import LangChainModels
from replan.testing import OpenAIServer

BY_NAME = {task.name: task for task in TASKS}
SQL = ("analyst", "sql", {"query": "select count(*) from trips"}, 1)
NOTES = ("librarian", "search_notes", {"words": "停航"}, 1)
WORK = {
    "service that is down": ("clerk", "fuel_price", {"port": "Norvik"}, 1),
    "service that fails twice": ("clerk", "tide", {"port": "Sund", "day": "2025-06-15"}, 3),
    "question to the user": ("clerk", "ask", {"question": "Which year?"}, 1),
    "note in Chinese": NOTES,
}
PLANNED = "---\ncomplexity: complex\nnext_action: create_plan\n---\n# Plan\n\n"
SIMPLE = "---\ncomplexity: simple\nnext_action: direct_answer\n---\n"
COMPLETE = "---\nverdict: complete\n---\n"


def play(request):
    """Plan one step, let it call its tools, and answer right."""
    text = "\n".join(message.text for message in request.messages)
    name = next(name for name in RIGHT if name in text or BY_NAME[name].request in text)
    member, tool, arguments, times = WORK.get(name, SQL)
    if request.call is not None and request.call.node == "think":
        if name == "definition":
            return SIMPLE + RIGHT[name]
        return f"{PLANNED}- [ ] 1. {name} @{member}\n\n  Find it, for the answer.\n"
    if request.call is not None and request.call.node == "feedback":
        return COMPLETE + RIGHT[name]
    if any(isinstance(message, ToolMessage) for message in request.messages):
        return f"{RIGHT[name]} That is {name}."
    calls = [{"name": tool, "args": arguments, "id": f"{tool}{turn}"} for turn in range(times)]
    return AIMessage("", tool_calls=calls)


@pytest.fixture(scope="module")
def server():
    with OpenAIServer(play) as playing:
        yield playing


def model_of(server):
    return LangChainModels(base_url=server.base_url).chat_model("openai:scripted")


@pytest.mark.parametrize("name", ["definition", "refund", *WORK])
async def test_replan_answers_a_task_of_each_kind(name, server):
    done = await attempt("Replan", BY_NAME[name], model_of(server))
    is_simple = name == "definition"
    assert done.missing == ()
    assert done.counted.calls == (1 if is_simple else 4)
    assert done.counted.tokens_in > done.counted.tokens_out > 0
    assert done.answered.asked_again == 0
    assert done.brief_words == (None if is_simple else 5 + len(name.split()))


async def test_one_agent_has_all_tools_and_asks_the_same_user(server):
    done = await attempt("one agent", BY_NAME["question to the user"], model_of(server))
    assert (done.missing, done.counted.calls, done.brief_words) == ((), 2, None)
    assert done.answered.asked_again is None

"""Models that stand in for others, over real HTTP: who is asked, what is told, what is counted."""

import pytest

from replan import (
    Fallback,
    Host,
    Limits,
    ModelCallError,
    Price,
    Specialist,
    Team,
    build_graph,
    run,
    stream,
)
from replan.models.providers.chat_models import LangChainModels
from replan.testing import HttpFault, OpenAIServer, Reply, Reset, ScriptedModel

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker"
COMPLETE = "---\nverdict: complete\n---\nIt is done."
SCRIPT = {"think": PLAN, "step 1": "Done.", "feedback": COMPLETE}


def refusing(request):
    return Reply("", fault=HttpFault(401))


def willing(request):
    return SCRIPT.get(request.call.node, "Done.")


class Models:
    """Two servers, by the first letter of a model's name."""

    def __init__(self, first, second):
        self._servers = {"a": first, "b": second}

    def chat_model(self, name, *, tenant=""):
        provider = LangChainModels(base_url=self._servers[name[7]].base_url, max_retries=0)
        return provider.chat_model(name)


MODEL = Fallback("openai:a", "openai:b")


def graph_on(first, second, **options):
    member = Specialist("worker", "Works.", chat_model=MODEL, **options.pop("worker", {}))
    team = Team(Host(MODEL), [member], **options)
    return build_graph(team, models=Models(first, second))


async def test_another_model_is_asked_and_each_call_has_its_own_price_and_name():
    prices = {"openai:a": Price(input=0, output=0), "openai:b": Price(input=1000, output=0)}
    with OpenAIServer(refusing) as first, OpenAIServer(SCRIPT) as second:
        graph = graph_on(first, second, prices=prices)
        events = [event async for event in stream(graph, "Do it.")]
        assert len(first.requests) == len(second.requests) == 3
    over = next(event for event in events if event.type == "task_completed")
    told = [event.text for event in events if event.type == "warning"]
    assert len(told) == 3
    assert told[0].startswith("The model openai:a gave no reply, so openai:b was asked: ")
    assert set(over.warnings) == set(told)
    calls = [event.model for event in events if event.type == "model_invoked"]
    assert calls == ["a", "b"] * 3
    assert over.usage.calls == 6
    assert over.usage.cost == pytest.approx(over.usage.input_tokens / 1000)


async def test_a_reply_that_has_begun_is_not_begun_by_another_model():
    begun = Reply(
        "---\ncomplexity: simple\n---\nA long answer of many words.", fault=Reset(after=4)
    )
    with OpenAIServer(lambda _: begun) as first, OpenAIServer({}) as second:
        graph = graph_on(first, second)
        with pytest.raises(ModelCallError):
            _ = [event async for event in stream(graph, "Do it.")]
        assert not second.requests


# A reply that breaks off in its middle, falls silent there, or goes on without a word.
BREAKS = {
    "lost": Reply(PLAN, fault=Reset(after=4)),
    "silent": Reply(PLAN, chunks=[PLAN[:20], PLAN[20:]], chunk_delay=60),
    "empty": Reply(PLAN, chunks=[PLAN[:20], *[""] * 600, PLAN[20:]], chunk_delay=0.1),
}


@pytest.mark.parametrize(
    ("how", "idle"), [("lost", None), ("lost", 0.5), ("silent", 0.5), ("empty", 0.5)]
)
async def test_what_nobody_saw_break_off_is_asked_of_another_model(how, idle):
    bounds = Limits(idle_timeout=idle)
    with OpenAIServer(lambda _: BREAKS[how]) as first, OpenAIServer(SCRIPT) as second:
        result = await run(graph_on(first, second, limits=bounds), "Do it.")
        # Each call of the first model was made again by the second one: three in all.
        assert len(second.requests) == 3
        assert len(first.requests) >= 3
    assert result.outcome == "completed"
    told = [one for one in result.warnings if "openai:a gave no reply" in one]
    assert len(told) == 3
    assert ("no sign of work for 0.5 s" in told[0]) == (how != "lost")
    assert result.usage.calls == len(first.requests) + 3


async def test_where_all_fail_the_last_error_counts():
    with OpenAIServer(refusing) as first, OpenAIServer(refusing) as second:
        with pytest.raises(ModelCallError, match="401"):
            await run(graph_on(first, second), "Do it.")
        assert (len(first.requests), len(second.requests)) == (1, 1)


async def test_a_limit_is_no_reason_to_ask_another_model():
    with OpenAIServer(willing) as first, OpenAIServer({}) as second:
        graph = graph_on(first, second, limits=Limits(max_model_calls=2))
        result = await run(graph, "Do it.")
        assert not second.requests
    assert result.limit_reached == "max_model_calls"


def test_a_provider_is_asked_once_for_each_name_and_told_for_whom():
    asked = []

    class Provider:
        def chat_model(self, name, *, tenant=""):
            asked.append((name, tenant))
            return ScriptedModel({})

    team = Team(Host("x:a", feedback_model="x:b"), [Specialist("c", "C.", chat_model="x:a")])
    build_graph(team, models=Provider(), tenant="acme")
    assert asked == [("x:a", "acme"), ("x:b", "acme")]

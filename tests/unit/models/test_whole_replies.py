"""A call that nothing hears is made as LangChain makes it: a contract, since that is private."""

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler
from langchain_core.callbacks.usage import get_usage_metadata_callback
from langchain_core.globals import set_llm_cache
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from replan.base.langgraph_inside.callbacks import whole_reply
from replan.models.providers.chat_models import LangChainModels
from replan.models.providers.openai_chat import OpenAIChat
from replan.testing import OpenAIServer, Reply

IMAGE = {"type": "image", "source_type": "url", "url": "https://example.org/a.png"}
MESSAGES = [SystemMessage("Be kind."), HumanMessage(["What is it?", IMAGE])]


class Hearing(BaseCallbackHandler):
    def __init__(self):
        self.heard: list[str] = []

    def on_chat_model_start(self, *_: Any, **__: Any):
        self.heard.append("begins")

    def on_llm_end(self, *_: Any, **__: Any):
        self.heard.append("ends")


@pytest.fixture
def server():
    with OpenAIServer(lambda _: Reply("A cat.", usage=(7, 3))) as server:
        yield server


@pytest.fixture
def model(server):
    return LangChainModels(base_url=server.base_url).chat_model("openai:scripted")


def config_of(*handlers):
    return {"callbacks": AsyncCallbackManager([*handlers])}


async def test_a_call_that_nothing_hears_gives_the_same_for_the_same_request(server, model):
    unheard = await whole_reply(model, MESSAGES, config_of())
    heard = await model.ainvoke(MESSAGES)
    for message in (unheard, heard):
        # What a server calls its reply, and LangChain its call.
        message.id, message.response_metadata["id"] = None, ""
    assert unheard == heard
    first, second = server.requests
    assert first.body == second.body


async def test_each_callback_hears_a_call(model):
    own, of_model = Hearing(), Hearing()
    heard = model.model_copy(update={"callbacks": [of_model]})
    await whole_reply(heard, MESSAGES, config_of(own))
    assert own.heard == of_model.heard == ["begins", "ends"]


async def test_a_callback_of_the_whole_program_hears_a_call(model):
    with get_usage_metadata_callback() as counting:
        await whole_reply(model, MESSAGES, config_of())
    (used,) = counting.usage_metadata.values()
    assert used["total_tokens"] == 10


async def test_a_class_that_is_made_of_one_that_asks_no_other_model_may_ask_others(model):
    class Asking(OpenAIChat):
        async def _agenerate(self, messages, stop=None, run_manager=None, **_):
            asked = await model.ainvoke(messages, {"callbacks": run_manager.inheritable_handlers})
            return ChatResult(generations=[ChatGeneration(message=asked)])

    asking = Asking(model="scripted", api_key="none")
    reply = await whole_reply(asking, MESSAGES, config_of())
    assert reply.text == "A cat."


async def test_a_cache_of_langchain_gives_replies(server, model):
    set_llm_cache(InMemoryCache())
    try:
        for _ in range(2):
            assert (await whole_reply(model, MESSAGES, config_of())).text == "A cat."
    finally:
        set_llm_cache(None)
    assert len(server.requests) == 1

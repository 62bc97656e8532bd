"""A chat model without a model: it plans, hands out and joins by rules, and says what it cannot do.

It keeps the host's reply format, so that every graph runs without network, key or cost, always in
the same way. It plans what it understands whole, and writes no prose of its own.
"""

import re
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from replan_local.host.facts import about_facts
from replan_local.host.reply import reply_to

_WORD_AND_BLANKS = re.compile(r"\s*\S+\s*|\s+")


class OfflineModel(BaseChatModel):
    """A deterministic chat model without network: the same messages give the same reply."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    @property
    def model_name(self) -> str:
        """What it is called where prices and limits are."""
        return "offline"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        # The only tools that its rules are about are those for facts.
        return self.bind(tool_names=[name for one in tools if (name := getattr(one, "name", ""))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = _offline_reply(messages, kwargs.get("tool_names", ()))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = _offline_reply(messages, kwargs.get("tool_names", ()))
        for word in _WORD_AND_BLANKS.findall(reply.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        rest = {**reply.model_dump(exclude={"type"}), "content": "", "chunk_position": "last"}
        yield ChatGenerationChunk(message=AIMessageChunk.model_validate(rest))


def _offline_reply(messages: Sequence[BaseMessage], tools: Collection[str]) -> AIMessage:
    """The reply to a prompt: what the rules say, or a call of a tool for facts."""
    reply = about_facts(messages, tools) or reply_to(messages)
    read = count_tokens_approximately(messages)
    written = count_tokens_approximately([AIMessage(reply.text)])
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    metadata = {"model_name": "offline", "finish_reason": "stop"}
    return reply.model_copy(update={"usage_metadata": usage, "response_metadata": metadata})

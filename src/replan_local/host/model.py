"""A chat model without a model: it plans, hands out and joins by rules, and says what it cannot do.

It keeps the host's reply format, so that every graph runs without network, key or cost, always in
the same way. It plans what it understands whole, and writes no prose of its own.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from replan_local.host.facts import about_facts
from replan_local.host.reply import refusal_of, reply_to

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

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_offline_reply(messages, kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = _offline_reply(messages, kwargs)
        words = [AIMessageChunk(content=word) for word in _WORD_AND_BLANKS.findall(said.text)]
        end = AIMessageChunk(
            content="",
            tool_calls=said.tool_calls,
            additional_kwargs=said.additional_kwargs,
            usage_metadata=said.usage_metadata,
            response_metadata=said.response_metadata,
            chunk_position="last",
        )
        for piece in (*words, end):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _offline_reply(messages: Sequence[BaseMessage], given: Mapping[str, Any]) -> AIMessage:
    """The reply to a prompt: what the rules say, or a call of a tool for facts."""
    said = about_facts(messages, given.get("tool_names", ())) or AIMessage(reply_to(messages))
    words = refusal_of(said.text)
    read = count_tokens_approximately(messages)
    written = count_tokens_approximately([AIMessage(content=said.text)])
    return AIMessage(
        content=said.text,
        tool_calls=said.tool_calls,
        additional_kwargs={"refusal": words} if words else {},
        usage_metadata=UsageMetadata(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        ),
        response_metadata={"model_name": "offline", "finish_reason": "stop"},
    )

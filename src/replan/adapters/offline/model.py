"""A chat model without a model: it plans, hands out and joins by rules, and says what it cannot do.

It keeps the host's reply format, so that every graph runs without network, key or cost, always in
the same way. It understands no language beyond its rules and writes no prose of its own.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from replan.adapters.offline.reply import refusal_of, reply_to

_WORD_AND_BLANKS = re.compile(r"\s*\S+\s*|\s+")


class OfflineModel(BaseChatModel):
    """A deterministic chat model without network: the same messages give the same reply."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"model": "offline"}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Accept tools and never call one."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = reply_to(messages)
        message = AIMessage(
            content=text,
            additional_kwargs=_refusal(text),
            usage_metadata=_usage(messages, text),
            response_metadata={"model_name": "offline", "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(messages):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(messages):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _chunks(messages: Sequence[BaseMessage]) -> Iterator[ChatGenerationChunk]:
    text = reply_to(messages)
    for word in _WORD_AND_BLANKS.findall(text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    end = AIMessageChunk(
        content="",
        additional_kwargs=_refusal(text),
        usage_metadata=_usage(messages, text),
        response_metadata={"model_name": "offline", "finish_reason": "stop"},
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=end)


def _refusal(text: str) -> dict[str, str]:
    words = refusal_of(text)
    return {"refusal": words} if words else {}


def _usage(messages: Sequence[BaseMessage], text: str) -> UsageMetadata:
    read = count_tokens_approximately(messages)
    written = count_tokens_approximately([AIMessage(content=text)])
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)

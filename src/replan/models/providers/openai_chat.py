"""LangChain's model of the OpenAI protocol, with lighter requests, for servers as they are."""

import json
import warnings
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from replan.base.langgraph_inside.callbacks import is_fed_by_streams

_LENGTH_FIELD, _OLD_LENGTH_FIELD = "max_completion_tokens", "max_tokens"
_REASONING = ("reasoning_content", "reasoning")
"""Where servers put what a model thinks; some want it back while the model calls tools."""

# LangChain writes a piece out before it is read here, and pydantic warns of what is fixed then.
warnings.filterwarnings("ignore", r"(?s)Pydantic serializer warnings:.*field_name='arguments'")


@dataclass
class _Server:
    """What is known about the server of a model and of its copies."""

    length_field: str = _LENGTH_FIELD  # what it calls the most tokens of a reply


class OpenAIChat(ChatOpenAI):
    """Sends messages as they are, and takes what compatible servers really send.

    - A refusal keeps its words in a stream, too.
    - The bound of a reply is `max_completion_tokens`, or `max_tokens` for a server that refuses it.
    - What a model thinks before it calls a tool is sent back with its call, until the next message
      of a user.
    - A whole reply without a role is the model's.
    - Arguments of a call that are an object are JSON, and marks in the name of a tool are removed.
    """

    asks_no_other_model: ClassVar[bool] = True

    _server: _Server = PrivateAttr(default_factory=_Server)

    def _get_request_payload(self, input_: LanguageModelInput, **options: Any) -> dict[str, Any]:
        # LangChain leaves the type of a request open.
        payload = cast("dict[str, Any]", super()._get_request_payload(input_, **options))  # pyright: ignore[reportUnknownMemberType]
        if self._server.length_field != _LENGTH_FIELD and _LENGTH_FIELD in payload:
            payload[self._server.length_field] = payload.pop(_LENGTH_FIELD)
        if "messages" in payload:
            _return_reasoning(self._convert_input(input_).to_messages(), payload["messages"])
            # LangChain has written them as JSON takes them. OpenAI's client would compare each
            # value with the types of its field, which takes a quarter of the CPU of a call; what
            # is in `extra_body` it sends as it is.
            body: dict[str, Any] = payload.get("extra_body") or {}
            payload["extra_body"] = {"messages": payload["messages"], **body}
            payload["messages"] = []
        return payload

    def _should_stream(
        self,
        *,
        async_api: bool,
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> bool:
        # To ask whether a callback makes it stream, LangChain looks for the members of a protocol,
        # which takes a tenth of the calls of its own part. Hardly any callback has such a member.
        handlers = run_manager.handlers if run_manager else []
        manager = run_manager if any(map(is_fed_by_streams, handlers)) else None
        return super()._should_stream(async_api=async_api, run_manager=manager, **options)

    async def _agenerate(self, *arguments: Any, **named: Any) -> ChatResult:
        try:
            return await super()._agenerate(*arguments, **named)
        except openai.APIStatusError as error:
            if not self._refuses_length_field(error):
                raise
            refusal = error
        self._server.length_field = _OLD_LENGTH_FIELD
        try:
            return await super()._agenerate(*arguments, **named)
        except openai.APIStatusError:
            self._server.length_field = _LENGTH_FIELD
            raise refusal from None

    async def _astream(self, *arguments: Any, **named: Any) -> AsyncIterator[ChatGenerationChunk]:
        try:
            async for piece in super()._astream(*arguments, **named):
                yield piece
        except openai.APIStatusError as error:
            if not self._refuses_length_field(error):
                raise
            refusal = error
        else:
            return
        self._server.length_field = _OLD_LENGTH_FIELD
        try:
            async for piece in super()._astream(*arguments, **named):
                yield piece
        except openai.APIStatusError:
            self._server.length_field = _LENGTH_FIELD
            raise refusal from None

    def _refuses_length_field(self, error: openai.APIStatusError) -> bool:
        """Whether a server refuses a request for the name of its bound."""
        is_bad = error.status_code in (400, 422)
        return (
            is_bad
            and self._server.length_field == _LENGTH_FIELD
            and _LENGTH_FIELD in f"{error} {error.body}"
        )

    def _create_chat_result(self, response: Any, *arguments: Any, **named: Any) -> ChatResult:
        choices: Sequence[Any] = getattr(response, "choices", None) or ()
        for choice in choices:
            # Only a model answers here, so a reply without a role is its own.
            choice.message.role = getattr(choice.message, "role", None) or "assistant"
            for call in getattr(choice.message, "tool_calls", None) or ():
                if (function := getattr(call, "function", None)) is not None:
                    function.name = _tool_name(function.name)
                    function.arguments = _as_json(function.arguments)
        result = super()._create_chat_result(response, *arguments, **named)  # pyright: ignore[reportUnknownMemberType]
        for choice, generation in zip(choices, result.generations, strict=False):
            for name in _REASONING:
                if thought := getattr(choice.message, name, None):
                    generation.message.additional_kwargs[name] = thought
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *arguments: Any, **named: Any
    ) -> ChatGenerationChunk | None:
        choices: list[Any] = chunk.get("choices") or [{}]
        choice: Any = choices[0]
        delta: Any = choice.get("delta") or {}
        for call in delta.get("tool_calls") or ():
            if function := call.get("function"):
                function["name"] = _tool_name(function.get("name"))
                function["arguments"] = _as_json(function.get("arguments"))
        # LangChain leaves the type of a piece open.
        made = super()._convert_chunk_to_generation_chunk(  # pyright: ignore[reportUnknownMemberType]
            chunk, *arguments, **named
        )
        words = delta.get("refusal")
        # The last piece has the field in any case, as a whole reply has: it says there is no more.
        if made is not None and (words or choice.get("finish_reason")):
            made.message.additional_kwargs["refusal"] = words
        for name in _REASONING:
            if made is not None and (thought := delta.get(name)):
                made.message.additional_kwargs[name] = thought
        return made


def _return_reasoning(messages: Sequence[BaseMessage], written: Sequence[dict[str, Any]]) -> None:
    """Add what a model thought to its calls of tools behind the last message of a user."""
    for message, written_message in zip(reversed(messages), reversed(written), strict=False):
        if message.type == "human":
            return
        if isinstance(message, AIMessage) and message.tool_calls:
            kept = message.additional_kwargs
            written_message.update({name: kept[name] for name in _REASONING if kept.get(name)})


def _tool_name(name: Any) -> Any:
    """A name without the marks of a chat template: `functions.search<|channel|>commentary`."""
    return name.partition("<|")[0].removeprefix("functions.") if isinstance(name, str) else name


def _as_json(arguments: Any) -> Any:
    """Arguments as the text that they should be."""
    is_text = arguments is None or isinstance(arguments, str)
    return arguments if is_text else json.dumps(arguments, ensure_ascii=False)

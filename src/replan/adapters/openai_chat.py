"""LangChain's model of the OpenAI protocol, quicker to ask, with what it leaves out of streams."""

from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI


class OpenAIChat(ChatOpenAI):
    """Sends what is JSON as it is, and keeps the words of a refusal in a stream, too."""

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        # LangChain leaves the type of a request open.
        payload: dict[str, Any] = super()._get_request_payload(  # pyright: ignore[reportUnknownMemberType]
            input_, stop=stop, **kwargs
        )
        if "messages" not in payload:
            return payload
        # The client compares every part of a request with its type, to rename what JSON names in
        # another way. Nothing here is named so, and looking takes half of the calls of functions
        # that a request needs. What stands in the extra body is sent unseen. Of a reply with a
        # format, the client reads the calls of tools by the tools themselves.
        names = ("messages",) if "response_format" in payload else ("messages", "tools")
        unseen = {name: payload[name] for name in names if payload.get(name)}
        more: dict[str, Any] = payload.get("extra_body") or {}
        return {**payload, **dict.fromkeys(unseen, ()), "extra_body": {**unseen, **more}}

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *given: Any, **named: Any
    ) -> ChatGenerationChunk | None:
        # LangChain leaves the type of a piece open.
        made = super()._convert_chunk_to_generation_chunk(  # pyright: ignore[reportUnknownMemberType]
            chunk, *given, **named
        )
        choices: list[Any] = chunk.get("choices") or [{}]
        choice: Any = choices[0]
        delta: Any = choice.get("delta") or {}
        words = delta.get("refusal")
        # The last piece has the field in any case, as a whole reply has: it says there is no more.
        if made is not None and (words or choice.get("finish_reason")):
            made.message.additional_kwargs["refusal"] = words
        return made

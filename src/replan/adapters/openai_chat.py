"""LangChain's model of the OpenAI protocol, with what it leaves out of streams."""

from typing import Any

from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI


class OpenAIChat(ChatOpenAI):
    """Keeps the words of a refusal in a stream, too: of a whole reply LangChain does."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *given: Any, **named: Any
    ) -> ChatGenerationChunk | None:
        # LangChain leaves the type of a piece open.
        made = super()._convert_chunk_to_generation_chunk(  # pyright: ignore[reportUnknownMemberType]
            chunk, *given, **named
        )
        if made is not None and (words := _refusal_in(chunk)):
            made.message.additional_kwargs["refusal"] = words
        return made


def _refusal_in(chunk: dict[str, Any]) -> str:
    choices: list[Any] = chunk.get("choices") or [{}]
    delta: Any = choices[0].get("delta") or {}
    return delta.get("refusal") or ""

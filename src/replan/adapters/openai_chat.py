"""LangChain's model of the OpenAI protocol, with lighter requests and whole refusals."""

from typing import Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI


class OpenAIChat(ChatOpenAI):
    """Sends messages as they are, and keeps the words of a refusal in a stream, too."""

    def _get_request_payload(self, input_: LanguageModelInput, **options: Any) -> dict[str, Any]:
        # LangChain leaves the type of a request open.
        payload = cast("dict[str, Any]", super()._get_request_payload(input_, **options))  # pyright: ignore[reportUnknownMemberType]
        if "messages" in payload:
            # LangChain has written them as JSON takes them. OpenAI's client would compare each
            # value with the types of its field, which takes a quarter of the CPU of a call; what
            # is in `extra_body` it sends as it is.
            body: dict[str, Any] = payload.get("extra_body") or {}
            payload["extra_body"] = {"messages": payload["messages"], **body}
            payload["messages"] = []
        return payload

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

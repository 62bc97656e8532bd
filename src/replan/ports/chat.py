"""One call of a chat model: streamed where its server can stream, whole where it cannot."""

from collections.abc import Callable, Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import RunnableConfig

_REFUSALS = frozenset({400, 404, 405, 406, 415, 422, 501})


class Chat:
    """A chat model that remembers how its server streams."""

    def __init__(self, model: BaseChatModel) -> None:
        self.model = model
        self._streams = True
        self._tells_ends = False

    async def reply(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        on_text: Callable[[str], None] | None = None,
    ) -> AIMessage:
        """Ask the model; `on_text` gets the pieces of the text as they arrive.

        Raises:
            Exception: Whatever the model's client raises.
        """
        if self._streams:
            chunks: list[AIMessageChunk] = []
            try:
                await self._stream(messages, config, chunks, on_text)
                return self._joined(chunks)
            except Exception as error:
                if chunks or not _may_be_refusal(error):
                    raise
        # A refusal of streaming looks like any other bad request, so the whole call decides.
        message = _well_formed(await self.model.ainvoke(list(messages), config))
        self._streams = False
        if on_text is not None:
            on_text(message.text)
        return message

    async def _stream(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        chunks: list[AIMessageChunk],
        on_text: Callable[[str], None] | None,
    ) -> None:
        half = ""
        async for chunk in self.model.astream(list(messages), config):
            chunks.append(chunk)
            if on_text is not None and chunk.text:
                text = half + chunk.text
                # Some servers cut a character in two; its first half waits for the second.
                half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
                on_text(well_formed(text.removesuffix(half)))

    def _joined(self, chunks: list[AIMessageChunk]) -> AIMessage:
        """Join the pieces of a stream.

        Raises:
            ConnectionError: It broke off in silence, where the server tells of ends otherwise.
        """
        if not chunks:
            return AIMessage("")
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        if whole.response_metadata.get("finish_reason"):
            self._tells_ends = True
        elif self._tells_ends:
            raise ConnectionError("the stream ended before the reply did")
        message = message_chunk_to_message(whole)
        return _well_formed(message if isinstance(message, AIMessage) else AIMessage(whole.text))


def well_formed(text: str) -> str:
    """Join the halves of characters that stand side by side; a half alone is no text."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _well_formed(message: AIMessage) -> AIMessage:
    content = message.content
    if isinstance(content, str) and (clean := well_formed(content)) != content:
        return message.model_copy(update={"content": clean})
    return message


def _may_be_refusal(error: Exception) -> bool:
    """Whether a stream without any piece may only mean that the server does not stream."""
    if getattr(error, "status_code", None) in _REFUSALS:
        return True
    # LangChain says so of an empty stream, with an error of no class of its own.
    return isinstance(error, NotImplementedError) or type(error) is ValueError

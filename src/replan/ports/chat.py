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
            try:
                return await self._stream(messages, config, on_text)
            except Exception as error:
                if getattr(error, "status_code", None) not in _REFUSALS:
                    raise
        # A refusal of streaming looks like any other bad request, so the whole call decides.
        message = await self.model.ainvoke(list(messages), config)
        self._streams = False
        if on_text is not None:
            on_text(message.text)
        return message

    async def _stream(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        on_text: Callable[[str], None] | None,
    ) -> AIMessage:
        whole: AIMessageChunk | None = None
        async for chunk in self.model.astream(list(messages), config):
            whole = chunk if whole is None else whole + chunk
            if on_text is not None and chunk.text:
                on_text(chunk.text)
        if whole is None:
            return AIMessage("")
        self._check_end(whole)
        message = message_chunk_to_message(whole)
        return message if isinstance(message, AIMessage) else AIMessage(whole.text)

    def _check_end(self, whole: BaseMessage) -> None:
        """Refuse a stream that broke off in silence, where the server tells of ends otherwise."""
        if whole.response_metadata.get("finish_reason"):
            self._tells_ends = True
        elif self._tells_ends:
            raise ConnectionError("the stream ended before the reply did")

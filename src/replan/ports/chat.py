"""One call of a chat model: streamed where its server can stream, whole where it cannot."""

from collections.abc import Callable, Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import RunnableConfig

_REFUSALS = frozenset({400, 404, 405, 406, 415, 422, 501})


class Chat:
    """A chat model that remembers whether its server refuses to stream."""

    def __init__(self, model: BaseChatModel) -> None:
        self.model = model
        self._streams = True

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
        message = message_chunk_to_message(whole)
        return message if isinstance(message, AIMessage) else AIMessage(whole.text)

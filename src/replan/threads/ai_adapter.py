"""The one way from a pipeline to a model."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Literal, overload

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from replan.errors import ConfigurationError, PhaseError
from replan.langgraph_inside.callbacks import has_listener
from replan.models.chat import Chat
from replan.models.reply_end import end_of
from replan.prompts.sections import Call, call_tag
from replan.state.pipeline.threads import ThreadMessage
from replan.texts.storable import storable_text
from replan.threads.phase_at_work import PhaseAtWork, phase_at_work


class AIAdapter:
    """Asks a model, with messages of a thread; one for each configuration.

    The call goes through the runtime's own way of asking models, so that limits, prices, streams
    and logs see it.
    """

    def __init__(
        self,
        chat: Chat | None = None,
        config: RunnableConfig | None = None,
        *,
        step: int | None = None,
        specialist: str | None = None,
    ) -> None:
        self._chat = chat
        self._config = config or RunnableConfig()
        self._step = step
        self._specialist = specialist

    @property
    def has_model(self) -> bool:
        """Whether there is a model to ask."""
        return self._chat is not None

    @overload
    async def chat(
        self,
        messages: Iterable[ThreadMessage],
        *,
        system_message: str = "",
        stream: Literal[False] = False,
    ) -> str: ...

    @overload
    async def chat(
        self, messages: Iterable[ThreadMessage], *, system_message: str = "", stream: Literal[True]
    ) -> AsyncIterator[str]: ...

    async def chat(
        self,
        messages: Iterable[ThreadMessage],
        *,
        system_message: str = "",
        stream: bool = False,
    ) -> str | AsyncIterator[str]:
        """Ask the model.

        Args:
            messages: Messages of a thread, which the caller chooses and orders. Virtual ones and
                sub-threads are left out here.
            system_message: The system message.
            stream: Whether the reply is returned in pieces, for `Response.set_stream`; in one
                piece if nothing listens.

        Raises:
            ConfigurationError: The pipeline has no model.
            PhaseError: The reply is empty, or incomplete.
        """
        at_work = phase_at_work()
        if self._chat is None:
            problem = f"the phase '{at_work.phase}' asks a model, and the pipeline has none"
            fix = "Give Specialist(..., unit_model=...), or run_pipeline(..., model=...)."
            raise ConfigurationError("unit_model", None, problem, fix)
        call = Call(
            node="unit",
            step=self._step,
            specialist=self._specialist,
            phase=at_work.phase,
            path=at_work.path or None,
        )
        system = "\n\n".join(part for part in (system_message, call_tag(call)) if part)
        asked = [SystemMessage(system), *to_langchain(messages)]
        audience = at_work.audience
        is_heard = audience.on_text is not None or has_listener(self._config)
        # Counted before the reply is complete, so that no piece of it is shown again.
        audience.texts += int(is_heard)
        if stream and is_heard:
            return self._pieces(self._chat, asked, at_work)
        text = _text_of(
            await self._chat.reply(asked, self._config, audience.on_text), at_work.phase
        )
        return _whole(text) if stream else text

    async def _pieces(
        self, chat: Chat, asked: Sequence[BaseMessage], at_work: PhaseAtWork
    ) -> AsyncIterator[str]:
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        on_text = at_work.audience.on_text

        def take(piece: str) -> None:
            pieces.put_nowait(piece)
            if on_text is not None:
                on_text(piece)

        reply = asyncio.ensure_future(chat.reply(asked, self._config, take))
        reply.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield storable_text(piece)
            _text_of(await reply, at_work.phase)
        finally:
            reply.cancel()


async def _whole(text: str) -> AsyncIterator[str]:
    yield text


def _text_of(reply: AIMessage, phase: str) -> str:
    text, end = storable_text(reply.text), end_of(reply)
    if end.cut:
        raise PhaseError("", phase, f"the reply of the model is incomplete: {end.why}", _AGAIN)
    if not text.strip():
        raise PhaseError("", phase, "the model said nothing", _AGAIN)
    return text


_AGAIN = "Try again, or ask for less."


def to_langchain(messages: Iterable[ThreadMessage]) -> list[BaseMessage]:
    """Return what a model sees of messages: the first level, without the virtual ones."""
    return [
        (AIMessage if each.sender == "bot" else HumanMessage)(each.text, id=each.id)
        for each in messages
        if not each.is_virtual
    ]

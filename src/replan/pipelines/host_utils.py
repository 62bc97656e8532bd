"""What the components of a pipeline get from outside while it works, its way to a model too."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NoReturn, overload

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from replan.base.errors import ConfigurationError, PhaseError, QuestionError, ThreadError
from replan.base.langgraph_inside.callbacks import is_seen
from replan.base.langgraph_inside.tasks import as_part, inherited_config
from replan.base.texts.storable import storable_text
from replan.log.events.types import BaseEvent
from replan.models.chat import Chat
from replan.models.reply_end import end_of
from replan.ports.run_context import here, using
from replan.ports.thread_repository import ThreadRepository
from replan.prompts.sections import Call, call_tag
from replan.state.pipeline.threads import SubThreadPath, ThreadMessage
from replan.state.results import ExecutionContext

Tell = Callable[..., None]
"""Reports an event: its class, and its fields by name."""


def _tell_nobody(kind: type[BaseEvent], /, **fields: Any) -> None:
    pass


@dataclass(kw_only=True)
class Audience:
    """Receives the texts of phases, each once: any but those of models, whose callbacks do."""

    # Shows a text that no model said; None if nothing listens.
    show: Callable[[str], Awaitable[None]] | None = None
    texts: int = 0  # how many texts were shown so far

    async def show_text(self, text: str, since: int) -> None:
        """Show the text of a phase, unless a text was shown since the phase began its work.

        Args:
            text: The text.
            since: `texts` at the beginning of the phase.
        """
        # The texts of models were shown in pieces, and those of sub-threads as they came.
        if self.show is not None and self.texts == since:
            self.texts += 1
            await self.show(text)

    async def show_pieces(self, pieces: AsyncIterator[str], texts_before: int) -> None:
        """Take the pieces of a phase's text, and show them as `show_text` does."""
        show = self.show if self.texts == texts_before else None
        async for piece in pieces:
            if show is not None:
                self.texts = texts_before + 1
                await show(piece)


@dataclass(frozen=True, kw_only=True)
class HostUtils:
    """The parts that come from the configuration of a run; a task holds only data.

    Attributes:
        thread_repository: Where threads are kept.
        ai_adapter: How models are asked.
        tell: Tells of an event.
        clock: Returns the time, with a time zone.
        new_id: Returns a new unique id.
        context: What the step of a plan was given; None outside a plan.
        is_stopping: Says whether work is to stop after the phase.
        audience: Receives the texts of phases.
        phase: The phase that is at work.
        path: The path of the sub-thread that is at work; empty in the main thread.
    """

    thread_repository: ThreadRepository
    ai_adapter: "AIAdapter"
    tell: Tell = _tell_nobody
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    context: ExecutionContext | None = None
    is_stopping: Callable[[], bool] = bool
    audience: Audience = field(default_factory=Audience)
    phase: str = ""
    path: str = ""


def host_utils() -> HostUtils:
    """Return the host utilities of the pipeline that is at work.

    Raises:
        ThreadError: No pipeline is at work here.
    """
    found = here().phase
    if not isinstance(found, HostUtils):
        fix = "Use it in a handler or a unit that a pipeline runs."
        raise ThreadError("", "no pipeline is at work here, so there are no host utilities", fix)
    return found


def using_host_utils(utils: HostUtils) -> AbstractContextManager[None]:
    """Let code that runs inside find the host utilities."""
    return using(phase=utils)


@contextmanager
def in_phase(phase: str, path: SubThreadPath | None, number: int) -> Generator[None]:
    """Set which phase of which sub-thread works in this block, and the number of its round."""
    utils = replace(host_utils(), phase=phase, path=str(path or ""))
    place, config = f"{path or ''}#{number}", inherited_config.get()
    # A phase that is done is left out when its step begins again, with the graphs that it ran.
    around = inherited_config.set(config and as_part(config, place, _interrupted))
    try:
        with using(phase=utils, place=place):
            yield
    finally:
        inherited_config.reset(around)


def _interrupted() -> NoReturn:
    raise QuestionError(
        "LangGraph's `interrupt` cannot be answered in a phase of a pipeline: nobody could tell "
        "which phase an answer is for. Ask with `ask_user`."
    )


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
        at_work = host_utils()
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
        prompt = [SystemMessage(system), *to_langchain(messages)]
        is_heard = is_seen(self._config)
        # Counted before the reply is complete, so that no piece of it is shown again.
        at_work.audience.texts += int(is_heard)
        if stream and is_heard:
            return self._pieces(self._chat, prompt, at_work.phase)
        text = _text_of(await self._chat.reply(prompt, self._config), at_work.phase)
        return _in_one_piece(text) if stream else text

    async def _pieces(
        self, chat: Chat, prompt: Sequence[BaseMessage], phase: str
    ) -> AsyncIterator[str]:
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        reply = asyncio.ensure_future(chat.reply(prompt, self._config, pieces.put_nowait))
        reply.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield storable_text(piece)
            _text_of(await reply, phase)
        finally:
            reply.cancel()


async def _in_one_piece(text: str) -> AsyncIterator[str]:
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
        (AIMessage if message.sender == "bot" else HumanMessage)(message.text, id=message.id)
        for message in messages
        if not message.is_virtual
    ]

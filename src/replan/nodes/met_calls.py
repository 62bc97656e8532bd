"""How LangChain tells of model calls: one handler for code that awaits them, one for all other.

LangChain tells both of each call. In code that awaits, it goes through them in their order: the
first one waits, and if there is no leave, the second one raises it, since what stands behind a
handler that raises is left as a coroutine that nobody awaits. In other code LangChain calls the
second one at once, and runs what is asynchronous on the side afterwards, where it stops nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import chain
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk, LLMResult

from replan.nodes.charging import announced
from replan.ports.chat import Allowance, Request, well_formed
from replan.ports.specialist import TEXT_SHOWN


class CallsMet(Protocol):
    """Who counts the calls that the handlers hear of."""

    hears_tokens: bool

    async def begin(self, call: UUID, request: Callable[[], Request]) -> None:
        """Reserve a call, if it is heard of for the first time; raise nothing."""
        ...

    def begin_plain(self, call: UUID, request: Callable[[], Request]) -> None:
        """Reserve a call that nobody awaits, or raise why an awaited one may not be made."""
        ...

    async def end(self, call: UUID, came: LLMResult | BaseException) -> None:
        """Settle a call."""
        ...

    def end_plain(self, call: UUID, came: LLMResult | BaseException) -> None:
        """Settle a call that was not awaited."""
        ...

    def note_count(self, call: UUID, piece: BaseMessage) -> None:
        """Keep what a piece of a reply reports."""
        ...

    def allowed(self, request: Request) -> AbstractAsyncContextManager[int | None]:
        """Allow the one call that is made inside."""
        ...


class _CallHandler(BaseCallbackHandler):
    # An error raised here must stop the call instead of being logged.
    raise_error = True
    # Else LangChain makes a task or a thread of each call.
    run_inline = True

    def __init__(self, meter: CallsMet) -> None:
        self._meter = meter

    @property
    def hears_tokens(self) -> bool:
        """Whether a reply is to be streamed for it."""
        return self._meter.hears_tokens

    @property
    def ignore_chain(self) -> bool:
        """What runs around the calls is nothing to it."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """Nor are tools."""
        return True


class AwaitedCalls(_CallHandler, Allowance):
    """Hears of calls in code that awaits them."""

    def allowed(self, request: Request) -> AbstractAsyncContextManager[int | None]:
        """Allow the one call that is made inside."""
        return self._meter.allowed(request)

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **given: Any,
    ) -> None:
        """Let a call begin, if there is room for it."""
        await self._meter.begin(run_id, _request(serialized, chain(*messages), given))

    async def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **given: Any
    ) -> None:
        """Let a call of a model begin that takes plain text."""
        await self._meter.begin(run_id, _request(serialized, _said(prompts), given))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Settle a call."""
        await self._meter.end(run_id, response)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Settle a call that broke off."""
        await self._meter.end(run_id, error)


class PlainCalls(_CallHandler):
    """Hears of calls in code that does not await them, and of the pieces of all replies."""

    def __init__(self, meter: CallsMet, on_token: Callable[[str], None] | None) -> None:
        super().__init__(meter)
        self._on_token = on_token
        self._has_spoken = False

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **given: Any,
    ) -> None:
        """Let a call begin, if there is room for it."""
        self._meter.begin_plain(run_id, _request(serialized, chain(*messages), given))

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **given: Any
    ) -> None:
        """Let a call of a model begin that takes plain text."""
        self._meter.begin_plain(run_id, _request(serialized, _said(prompts), given))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Settle a call."""
        self._meter.end_plain(run_id, response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Settle a call that broke off."""
        self._meter.end_plain(run_id, error)

    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **_: Any,
    ) -> None:
        """Pass a piece of text on; of a piece that is more than text, its text."""
        if isinstance(chunk, ChatGenerationChunk):
            self._meter.note_count(run_id, chunk.message)
        if self._on_token is None:
            return
        if not isinstance(token, str) and isinstance(chunk, ChatGenerationChunk):
            token = chunk.message.text
        if isinstance(token, str) and token:
            self._has_spoken = True
            self._on_token(well_formed(token))

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        """Pass on what no model said; the words of models come by themselves."""
        if name == TEXT_SHOWN and self._on_token is not None and not self._has_spoken:
            self._on_token(str(data))


def _request(
    serialized: dict[str, Any] | None, said: Iterable[BaseMessage], given: dict[str, Any]
) -> Callable[[], Request]:
    return lambda: announced(serialized, list(said), given)


def _said(prompts: list[str]) -> list[BaseMessage]:
    return [HumanMessage(prompt) for prompt in prompts]

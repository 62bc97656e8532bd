"""How LangChain tells of model calls, of those that are awaited and of all others."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import chain
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk, LLMResult

from replan.langgraph_inside.callbacks import either
from replan.ports.allowance import Allowance, Request
from replan.ports.specialist_port import TEXT_SHOWN
from replan.spending.charging import announced
from replan.texts.storable import well_formed


class CallsMet(Protocol):
    """Who counts the calls that the handlers hear of."""

    async def begin(self, call: UUID, request: Callable[[], Request]) -> None: ...

    def begin_plain(self, call: UUID, request: Callable[[], Request]) -> None: ...

    async def end(self, call: UUID, came: LLMResult | BaseException) -> None: ...

    def end_plain(self, call: UUID, came: LLMResult | BaseException) -> None: ...

    def note_count(self, call: UUID, piece: BaseMessage) -> None: ...

    def allowed(self, request: Request) -> AbstractAsyncContextManager[int | None]: ...


class MetCalls(BaseCallbackHandler, Allowance):
    """A handler that goes wherever the caller's config goes, also into tool loops."""

    # An error raised here must stop the call instead of being logged.
    raise_error = True
    # Else LangChain makes a task or a thread of each call.
    run_inline = True

    def __init__(self, meter: CallsMet, on_token: Callable[[str], None] | None) -> None:
        self._meter = meter
        self._on_token = on_token
        self._has_spoken = False

    @property
    def hears_tokens(self) -> bool:
        """Whether a reply is to be streamed for it."""
        return self._on_token is not None

    @property
    def ignore_chain(self) -> bool:
        """What runs around the calls is nothing to it."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """Nor are tools."""
        return True

    def allowed(self, request: Request) -> AbstractAsyncContextManager[int | None]:
        return self._meter.allowed(request)

    async def _chat_begins(
        self, known: dict[str, Any], said: list[list[BaseMessage]], *, run_id: UUID, **given: Any
    ) -> None:
        await self._meter.begin(run_id, _request(known, chain(*said), given))

    def _chat_begins_now(
        self, known: dict[str, Any], said: list[list[BaseMessage]], *, run_id: UUID, **given: Any
    ) -> None:
        self._meter.begin_plain(run_id, _request(known, chain(*said), given))

    async def _text_begins(
        self, known: dict[str, Any], said: list[str], *, run_id: UUID, **given: Any
    ) -> None:
        await self._meter.begin(run_id, _request(known, map(HumanMessage, said), given))

    def _text_begins_now(
        self, known: dict[str, Any], said: list[str], *, run_id: UUID, **given: Any
    ) -> None:
        self._meter.begin_plain(run_id, _request(known, map(HumanMessage, said), given))

    async def _ends(self, came: LLMResult | BaseException, *, run_id: UUID, **_: Any) -> None:
        await self._meter.end(run_id, came)

    def _ends_now(self, came: LLMResult | BaseException, *, run_id: UUID, **_: Any) -> None:
        self._meter.end_plain(run_id, came)

    on_chat_model_start: Any = either(_chat_begins, _chat_begins_now)
    on_llm_start: Any = either(_text_begins, _text_begins_now)
    on_llm_end: Any = either(_ends, _ends_now)
    on_llm_error: Any = either(_ends, _ends_now)

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

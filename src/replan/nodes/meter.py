"""Counts the model calls of one node or step, and stops the one that would go past the limit."""

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    GenerationChunk,
    LLMResult,
)

from replan.errors import LimitReachedError
from replan.ports.chat import well_formed
from replan.ports.journal import Bound, Journal, Reservation, Spending
from replan.ports.specialist import TEXT_SHOWN
from replan.state.usage import TokenCount

KEPT_FOR_ANSWER = 1
"""Model calls of a run that only a call which can answer may use."""


class _WithoutLimits(logging.Filter):
    """Leaves out that a callback raised, where it did so to keep a limit."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not any(LimitReachedError.__name__ in str(arg) for arg in record.args or ())


# LangChain logs an exception of a callback as a warning also where the callback asks to be heard.
logging.getLogger("langchain_core.callbacks.manager").addFilter(_WithoutLimits())


class Meter(AsyncCallbackHandler):
    """A LangChain callback that goes wherever the caller's config goes, also into tool loops.

    Attributes:
        count: What was used so far.
    """

    # An error raised here must stop the call instead of being logged.
    raise_error = True

    def __init__(
        self,
        journal: Journal,
        run_id: str,
        limit: int,
        *,
        kept: int = 0,
        on_token: Callable[[str], None] | None = None,
    ) -> None:
        """Count for a run.

        Args:
            journal: Where calls are reserved.
            run_id: The run.
            limit: The run's bound on model calls.
            kept: Calls of it that are kept back for others.
            on_token: Gets the pieces of text as they come.
        """
        self.count = TokenCount()
        self._journal = journal
        self._run_id = run_id
        self._limit = limit
        self._kept = kept
        self._on_token = on_token
        self._has_spoken = False
        self._reserved: dict[UUID, Reservation] = {}

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Reserve a call before it is made.

        Raises:
            LimitReachedError: The run has no call left.
        """
        await self._reserve(run_id)

    async def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Reserve a call of a model that takes plain text.

        Raises:
            LimitReachedError: The run has no call left.
        """
        await self._reserve(run_id)

    async def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Pass a piece of text on; of a piece that is more than text, its text."""
        text = chunk.message.text if isinstance(chunk, ChatGenerationChunk) else token
        if self._on_token is not None and isinstance(text, str) and text:
            self._has_spoken = True
            self._on_token(well_formed(text))

    async def on_custom_event(
        self,
        name: str,
        data: Any,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Pass on what no model said; the words of models come by themselves."""
        if name == TEXT_SHOWN and self._on_token is not None and not self._has_spoken:
            self._on_token(str(data))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Add the tokens that the server reported."""
        used = TokenCount()
        for generations in response.generations:
            for generation in generations[:1]:
                if isinstance(generation, ChatGeneration):
                    used += _tokens_of(generation.message)
        self.count += used
        await self._settle(run_id, used)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Settle a call that brought nothing."""
        await self._settle(run_id, TokenCount())

    async def _reserve(self, call: UUID) -> None:
        reservation = Reservation(id=call.hex, run_id=self._run_id, amount=Spending(calls=1))
        bound = Bound(scope="run", calls=self._limit - self._kept)
        if await self._journal.reserve(reservation, [bound]):
            raise LimitReachedError("max_model_calls", self._limit)
        self._reserved[call] = reservation
        self.count += TokenCount(calls=1)

    async def _settle(self, call: UUID, used: TokenCount) -> None:
        reservation = self._reserved.pop(call, None)
        if reservation is not None:
            spending = Spending(calls=1, tokens=used.total_tokens)
            await self._journal.settle(reservation, spending)


def _tokens_of(message: BaseMessage) -> TokenCount:
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    if usage is None:
        return TokenCount()
    return TokenCount(input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])

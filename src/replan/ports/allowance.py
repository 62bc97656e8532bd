"""Permission to call a model, requested before each call, and what the call used."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage

USUAL_REPLY = 4_096
"""Tokens of a reply, where its model bounds it by nothing; servers refuse more than they have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request to a model, before it is made."""

    model: str  # what the model's provider calls it
    names: Sequence[str]  # what else it is called, too
    messages: Sequence[BaseMessage]  # what is sent
    tools: Sequence[Any] = ()  # tools that are sent, too
    most_output: int = USUAL_REPLY  # tokens of a reply that are asked for
    provider: str = ""  # what LangChain calls the model's provider; empty if that is not known


class Held(Protocol):
    """A permit for a model's call."""

    @property
    def id(self) -> str:
        """The call's, in the log."""
        ...

    @property
    def most_output(self) -> int | None:
        """The tokens that the reply may have; None without a bound."""
        ...

    def begin(self, *, is_reported: bool) -> None:
        """Note that the call is made now.

        Args:
            is_reported: Whether LangChain will report the call to the callbacks, too.

        Raises:
            RuntimeError: The work that it belongs to is over.
        """
        ...

    def hear(self, piece: BaseMessage, text: str) -> None:
        """Take a piece of its reply, and the text in it."""
        ...

    async def end(self, outcome: BaseMessage | BaseException) -> None:
        """Charge the call with its reply, or with its error; one that did not begin is free."""
        ...


class Allowance(BaseCallbackHandler):
    """Allows calls and counts them; it is among the callbacks of a configuration."""

    async def take(self, request: Request) -> Held:
        """Take a permit for a call.

        Raises:
            LimitReachedError: There is no room for it.
        """
        raise NotImplementedError

    def pauses(self, seconds: float) -> None:
        """Note that nothing is done for so long, before a call is made again."""
        raise NotImplementedError

    def ending_if_silent(self) -> AbstractAsyncContextManager[None]:
        """A block that fails if its call falls silent for too long, and whose caller goes on."""
        raise NotImplementedError

"""Permission to call a model, requested before each call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
    cuttable: bool = False  # whether fewer may be asked for
    provider: str = ""  # what LangChain calls the model's provider; empty if that is not known


class Held(Protocol):
    """A permit for a model's call, which was taken before the call."""

    @property
    def id(self) -> str:
        """The call's, in the log."""
        ...

    @property
    def most_output(self) -> int | None:
        """The tokens that the reply may have; None without a bound."""
        ...


class Allowance:
    """Allows calls before they are made; it is among the callbacks of a configuration.

    A plain base class, since a check against a protocol costs more than all else here.
    """

    async def take(self, request: Request) -> Held:
        """Take a permit for the next call that is made with it in its context.

        Raises:
            LimitReachedError: There is no room for it.
        """
        raise NotImplementedError

    async def give_back(self, held: Held) -> None:
        """Give a permit back whose call was not made after all; any other is left alone."""
        raise NotImplementedError

"""Permission to call a model, requested before each call."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

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


class Allowance(ABC):
    """Allows calls before they are made; it is among the callbacks of a configuration.

    A base class, since a check against a protocol costs more than all else here.
    """

    @abstractmethod
    def allowed(self, request: Request) -> AbstractAsyncContextManager[int | None]:
        """Allow the one call that is made inside.

        It returns the tokens that the reply may have; None without a bound.

        Raises:
            LimitReachedError: There is no room for it.
        """

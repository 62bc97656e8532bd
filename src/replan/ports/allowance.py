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
    """A request to a model, before it is made.

    Attributes:
        model: What the model's provider calls it.
        names: What else it is called, too.
        messages: What is sent.
        tools: Tools that are sent, too.
        most_output: Tokens of a reply that are asked for.
        cuttable: Whether fewer may be asked for.
        provider: What LangChain calls the model's provider; empty if that is not known.
    """

    model: str
    names: Sequence[str]
    messages: Sequence[BaseMessage]
    tools: Sequence[Any] = ()
    most_output: int = USUAL_REPLY
    cuttable: bool = False
    provider: str = ""


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

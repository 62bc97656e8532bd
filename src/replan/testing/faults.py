"""How a scripted model or server can fail, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class HttpFault:
    """The server refuses with an HTTP status.

    `retry_after` is sent as the header, in seconds, and `code` as the error's code.
    """

    status: int
    retry_after: float | None = None
    message: str = ""
    code: str = ""

    @property
    def text(self) -> str:
        """What the server says."""
        return self.message or f"This server was told to answer with {self.status}."


@dataclass(frozen=True)
class Reset:
    """The connection breaks after `after` chunks of the text; 0: before the first byte."""

    after: int = 1


@dataclass(frozen=True)
class Hang:
    """No answer comes until the client goes away or the server closes."""


@dataclass(frozen=True)
class Raw:
    """An answer exactly as some server gives it, to try what a client makes of its habits.

    Only `OpenAIServer` can send one.

    Attributes:
        body: A mapping is sent as JSON, a text or bytes as they are. A sequence is a stream of
            server-sent events: each mapping is one event, bytes are sent as they are.
        status: The HTTP status.
        headers: Headers in addition.
    """

    body: Mapping[str, Any] | str | bytes | Sequence[Mapping[str, Any] | bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Malformed:
    """The reply is not JSON."""


@dataclass(frozen=True)
class Truncated:
    """The reply stops early.

    `length`: it says so, with the finish reason of a model that ran out of tokens. `cut`: it ends
    without a finish reason, without usage, without an end mark.
    """

    how: Literal["length", "cut"] = "length"


@dataclass(frozen=True)
class Empty:
    """The reply is well-formed and has no content."""


@dataclass(frozen=True)
class Raised:
    """A scripted model raises this error; a server answers with its HTTP status, or with 500."""

    error: Exception


Fault = HttpFault | Reset | Hang | Malformed | Truncated | Empty | Raised | Raw
"""Any way to fail."""


class ScriptedHttpError(Exception):
    """What a scripted model raises for an `HttpFault`, with the status where clients put it."""

    def __init__(self, fault: HttpFault) -> None:
        self.status_code = fault.status
        self.retry_after = fault.retry_after
        super().__init__(f"Error code: {fault.status} - {fault.text}")

"""What went wrong outside: whether trying again can help, and how to say it without secrets."""

import re
from collections.abc import Iterator
from typing import Any, cast

from replan.errors import (
    InDoubtError,
    LimitReachedError,
    ModelCallError,
    StorageError,
    UsageError,
)

_PASSING_STATUS = frozenset({408, 409, 425, 429})
_FAULTS = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    NotImplementedError,
    AssertionError,
    UsageError,
    LimitReachedError,
    StorageError,
    InDoubtError,
)
# How the common HTTP clients say that there was no connection yet.
_NEVER_REACHED = frozenset(
    {"ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionTimeoutError", "gaierror"}
)
_LONGEST = 500
_READ_AT_MOST = 8_000
_DEEPEST = 10
_MASK = "***"
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)"
_NAMED = r"(?:api[_-]?key|secret|passw(?:or)?d|pwd|credentials?|token)"
_SECRETS = (
    # A user name in an address is often a token, so it goes with the password.
    (re.compile(r"(?<=://)[^\s/@]+(?=@)"), _MASK),
    (re.compile(r"(?i)(\bbearer\s+)[\w.~+/=-]{6,}"), rf"\1{_MASK}"),
    (
        re.compile(rf"(?i)(authorization[\"']?\s*[=:]\s*[\"']?(?:basic\s+)?)(?!bearer){_VALUE}"),
        rf"\1{_MASK}",
    ),
    (re.compile(rf"(?i)({_NAMED}[\"']?\s*[=:]\s*){_VALUE}"), rf"\1{_MASK}"),
    # Servers like to repeat what they refuse: "Incorrect API key provided: ...".
    (
        re.compile(rf"(?i)(\b(?:api[ _-]?)?key(?:\s+[a-z]+){{0,2}}[\"']?\s*[=:]\s*){_VALUE}"),
        rf"\1{_MASK}",
    ),
    (
        re.compile(
            r"(?i)(?<![a-z0-9])(?:sk|pk|rk|gsk|hf|ghp|gho|ghs|github_pat|glpat|xox[a-z]|lsv2)"
            r"[-_][\w*-]{6,}"
        ),
        _MASK,
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}"), _MASK),
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]+)*"), _MASK),
)


def can_pass(error: BaseException) -> bool:
    """Whether trying again can help.

    It can after a broken connection, a timeout, a busy or failing server, and after anything that
    is not known; it cannot after a fault of the program or its settings, a refused request, a
    reached limit, a storage that was waited for in vain, or a signal such as a cancellation or a
    question to the user.
    """
    if not isinstance(error, Exception) or _is_signal(error):
        return False
    if isinstance(error, ExceptionGroup):
        return all(can_pass(part) for part in cast("ExceptionGroup[Exception]", error).exceptions)
    if isinstance(error, ModelCallError) and error.__cause__ is not None:
        return can_pass(error.__cause__)
    status = status_of(error)
    if status is not None and 400 <= status < 500:  # noqa: PLR2004 - HTTP's client errors
        return status in _PASSING_STATUS
    return not isinstance(error, _FAULTS)


def brought_nothing(error: BaseException) -> bool:
    """Whether a model's server surely did no work that it will be paid for.

    It did none if it answered with an error, or if it was never reached. Of anything else, such as
    a connection that broke off or a time that ran out, nobody here can know.
    """
    causes = list(_causes(error))
    return any(
        status_of(cause) is not None
        or isinstance(cause, ConnectionRefusedError | NotImplementedError)
        or type(cause).__name__ in _NEVER_REACHED
        for cause in causes
    )


def describe(error: BaseException) -> str:
    """Say an error in one line for people: class and message, secrets masked, not too long.

    Clients wrap what happened ("Connection error."), so the first cause is told too.
    """
    text, root = _said(error), _said(_root(error))
    if root.partition(": ")[2] not in text:
        text = f"{text} (because of {root})"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def mask_secrets(text: str) -> str:
    """Replace what looks like a key, a token or a password in an address by `***`."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, as the common HTTP clients attach it."""
    # Read by attribute, so that no client has to be imported: openai, anthropic and httpx have
    # `status_code` on the error or its response, aiohttp has `status`.
    candidates: tuple[Any, ...] = (
        getattr(error, "status_code", None),
        getattr(getattr(error, "response", None), "status_code", None),
        getattr(error, "status", None),
    )
    return next((c for c in candidates if isinstance(c, int) and 100 <= c < 600), None)  # noqa: PLR2004


def _is_signal(error: Exception) -> bool:
    # LangGraph's interrupts are exceptions that must reach it; by name, as its import is heavy.
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)


def _root(error: BaseException) -> BaseException:
    return list(_causes(error))[-1]


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_DEEPEST + 1):
        if cause is not None:
            yield cause
            cause = cause.__cause__


def _said(error: BaseException) -> str:
    name = type(error).__name__
    message = " ".join(mask_secrets(_message(error)).split())
    return f"{name}: {message}" if message else name


def _message(error: BaseException) -> str:
    try:
        return str(error)[:_READ_AT_MOST]
    except Exception:  # noqa: BLE001 - a foreign class; to describe it must never fail
        return "(its message cannot be read)"

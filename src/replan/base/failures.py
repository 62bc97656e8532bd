"""Failures outside: whether a retry can help, and how to report them without secrets."""

import json
import math
import re
import traceback
from collections.abc import Iterator, Set as AbstractSet
from types import TracebackType
from typing import Any, cast

from pydantic import ValidationError

from replan.base.errors import (
    InDoubtError,
    LimitReachedError,
    ModelCallError,
    PhaseError,
    ReplanError,
    ReplyTooLongError,
    StepElsewhereError,
    StorageError,
    UnpricedModelError,
    UsageError,
)
from replan.base.secrets.masking import KNOWN, without_secrets
from replan.base.texts.storable import storable_text
from replan.base.values import fields_in

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
    ReplyTooLongError,
    StorageError,
    InDoubtError,
)
# How the common HTTP clients say that there was no connection yet.
_NEVER_REACHED = frozenset(
    {"ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionTimeoutError", "gaierror"}
)
_BROKEN = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
# By the very name: what is derived from aiohttp's ClientOSError is a connection never made.
_BROKEN_OFF = frozenset({"ClientOSError", "ServerDisconnectedError"})
_BROKE_WHILE_READING = frozenset({"ReadError", "RemoteProtocolError"})
# Their errors for a missing connection, a lost one, or one on which nothing came.
_NO_CONNECTION = _NEVER_REACHED | _BROKE_WHILE_READING | {"APIConnectionError"}
# How gateways say that a reply took too long.
_GAVE_UP = frozenset({408, 504, 524})
_NOT_IMPLEMENTED = 501
# How servers say that an account or its key is at its end: no later call of it succeeds.
_LASTING_CODES = frozenset(
    {
        "account_deactivated",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_quota",
        "invalid_api_key",
    }
)
# How servers say that a request is longer than what their model can read.
_TOO_LONG = re.compile(
    r"context[ _-](length|size|window)|(prompt|input|request) (is|was) too long"
    r"|too many (input |prompt )?tokens|maximum (input|prompt|sequence) length"
    r"|(prompt|input) (tokens )?exceeds?",
    re.IGNORECASE,
)
_REFUSED_AS_TOO_LONG = frozenset({400, 413, 422, 500})
_LONGEST = 500
_MOST_FIELDS = 5
_READ_AT_MOST = 8_000
_DEEPEST = 10


def is_transient(error: BaseException) -> bool:
    """Whether trying again can help."""
    # It can after a broken connection, a timeout, a busy or failing server, and after anything that
    # is not known; it cannot after a fault of the program or its settings, a refused request, a
    # spent account, a reply without an end, a reached limit, a storage that was waited for in vain,
    # or a signal such as a cancellation or a question to the user.
    if not isinstance(error, Exception) or is_signal(error):
        return False
    if isinstance(error, ExceptionGroup):
        return all(
            is_transient(part) for part in cast("ExceptionGroup[Exception]", error).exceptions
        )
    if isinstance(error, ModelCallError | PhaseError) and error.__cause__ is not None:
        return is_transient(error.__cause__)
    if isinstance(error, StepElsewhereError):
        return error.is_transient
    is_lasting = has_lasting_code(getattr(error, "body", None))
    status = status_of(error)
    if status is not None and 300 <= status < 500:  # noqa: PLR2004 - redirects, client errors
        return status in _PASSING_STATUS and not is_lasting
    return not (is_lasting or isinstance(error, _FAULTS))


def is_busy(error: BaseException) -> bool:
    """Whether a server was too busy for a call, or not reached: it may have time a moment later."""
    # Less than `is_transient`: it is unknown whether waiting helps with unknown errors.
    if not is_transient(error):
        return False
    if isinstance(error, StepElsewhereError):
        return error.is_busy
    status = status_of(error)
    if status is not None:
        return status != _NOT_IMPLEMENTED
    causes = list(causes_of(error))
    return any(isinstance(cause, OSError) or _is_of(cause, _NO_CONNECTION) for cause in causes)


def has_lasting_code(body: object) -> bool:
    """Whether the JSON of a server's error says that the account or its key is at its end."""
    whole = fields_in(body)
    places = (whole, fields_in(whole.get("error")))
    codes = [fields.get(name) for fields in places for name in ("code", "type")]
    return any(isinstance(code, str) and code in _LASTING_CODES for code in codes)


def is_prompt_too_long(error: BaseException) -> bool:
    """Whether a model's server refused a request that is longer than what its model can read."""
    return any(
        _is_of(cause, {"ContextOverflowError"})
        or (
            status_of(cause) in _REFUSED_AS_TOO_LONG
            and _TOO_LONG.search(_message(cause)) is not None
        )
        for cause in causes_of(error)
    )


def asked_pause(error: BaseException) -> float | None:
    """The seconds that a server asks to wait, from its `Retry-After`."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = getattr(error, "retry_after", None) if headers is None else headers.get("retry-after")
    try:
        seconds = math.nan if value is None else float(value)
    except ValueError:
        # A date: servers of models do not write it.
        return None
    return seconds if seconds >= 0 else None


def broke_off(error: BaseException) -> bool:
    """Whether a connection or a proxy failed while a reply was awaited."""
    return any(
        isinstance(cause, _BROKEN)
        or type(cause).__name__ in _BROKEN_OFF
        or _is_of(cause, _BROKE_WHILE_READING)
        or status_of(cause) in _GAVE_UP
        for cause in causes_of(error)
    )


def is_unbilled(error: BaseException) -> bool:
    """Whether a model's server surely did no work that it will be paid for."""
    # It did none if it answered with an error, or if it was never reached. Of anything else, such
    # as a connection that was cut off or a time that ran out, nobody here can know.
    causes = list(causes_of(error))
    if any(status_of(cause) is not None for cause in causes):
        return True
    if any(isinstance(c, _BROKEN) or type(c).__name__ in _BROKEN_OFF for c in causes):
        # Clients report an old connection that breaks under a new request as no connection.
        return False
    return any(
        isinstance(cause, ConnectionRefusedError | NotImplementedError)
        or _is_of(cause, _NEVER_REACHED)
        for cause in causes
    )


def describe(error: BaseException) -> str:
    """Say an error in one line for people: class and message, secrets masked, not too long."""
    # Clients wrap what happened ("Connection error."), so the first cause is reported too.
    first = list(causes_of(error))[-1]
    text, root = _class_and_message(error), _class_and_message(first)
    # Clients call it a timeout, too, if nobody listens at an address.
    text = root if isinstance(first, ConnectionRefusedError) else text
    # A limit says itself all there is to say.
    is_limit = isinstance(error, LimitReachedError)
    if not is_limit and root.partition(": ")[2] not in text:
        text = f"{text} (because of {root})"
    text = storable_text(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def reason_of(error: BaseException) -> str:
    """The text of an error; of pydantic's, which field is wrong, and why."""
    if not isinstance(error, ValidationError):
        return str(error)
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)
    texts = [
        ": ".join([*filter(None, [".".join(map(str, details["loc"]))]), details["msg"]])
        for details in mistakes[:_MOST_FIELDS]
    ]
    more = [f"{len(mistakes) - len(texts)} more"] if len(mistakes) > len(texts) else []
    return f"not a valid {error.title}: {'; '.join([*texts, *more])}"


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


def is_fatal_for_run(error: BaseException) -> bool:
    """Whether an error ends or pauses the whole work: no part of it has it as its own failure."""
    # Who bounds money must learn that a model has no price, so nothing continues without the model.
    of_all = (LimitReachedError, StorageError, UnpricedModelError)
    return isinstance(error, of_all) or is_signal(error)


def is_signal(error: BaseException) -> bool:
    """Whether an error is one of LangGraph's signals, which pass through everything."""
    # LangGraph's interrupts are exceptions that must reach it; by name, as its import is heavy.
    return _is_of(error, {"GraphBubbleUp"})


def told_of(errors: BaseExceptionGroup) -> BaseException:
    """What a group of tasks in foreign code ended with: LangGraph's signal, if nothing else did."""
    return _signal_in(errors) or errors


def _signal_in(error: BaseException) -> BaseException | None:
    """The signal that an error is, or the first of a group that holds nothing else."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        found = [_signal_in(each) for each in group.exceptions]
        return found[0] if all(found) else None
    return error if is_signal(error) else None


def _is_of(error: BaseException, names: AbstractSet[str]) -> bool:
    """Whether an error is of a class of one of these names, or of one derived from it."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it was raised from."""
    cause: BaseException | None = error
    for _ in range(_DEEPEST + 1):
        if cause is not None:
            yield cause
            cause = cause.__cause__


_NOT_OWN = frozenset({"replan", "langgraph", "langchain_core", "asyncio", "concurrent", "pydantic"})


def own_traceback(
    error: BaseException,
) -> tuple[type[BaseException], BaseException, TracebackType] | None:
    """Return what a log shows of an error: the frames of the user's own code.

    None where no frame is theirs, and where the message says it all: of an error of this package,
    and of a server that was not reached.
    """
    if isinstance(error, ReplanError) or any(_is_of(e, _NO_CONNECTION) for e in causes_of(error)):
        return None
    own_frames: TracebackType | None = None
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_OWN:
            own_frames = TracebackType(own_frames, frame, frame.f_lasti, line)
    return None if own_frames is None else (type(error), error, own_frames)


def _class_and_message(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        # Its own message has the number of its errors alone.
        group = cast("BaseExceptionGroup[BaseException]", error)
        return "; ".join(map(_class_and_message, group.exceptions))
    name = type(error).__name__
    message = " ".join(without_secrets(_message(error)).split())
    if isinstance(error, PhaseError):
        return message
    if type(error) is KeyError:
        message = f"there is no {message}"
    return f"{name}: {message}" if message else name


def _message(error: BaseException) -> str:
    try:
        text, words = reason_of(error), _body_of(error)
        text = f"{text} - {words}" if words not in text else text
        # A known value that the cut divides would no longer be found.
        return KNOWN.masked(text)[:_READ_AT_MOST]
    except Exception:  # noqa: BLE001 - a foreign class; to describe it must never fail
        return "(its message cannot be read)"


def _body_of(error: BaseException) -> str:
    """The server's own message, which openai leaves out if it is not in the usual form."""
    words: object = getattr(error, "body", None)
    if isinstance(words, dict):
        fields = cast("dict[str, object]", words)
        words = fields.get("message") or fields
    if isinstance(words, str):
        return "" if words.lstrip().startswith("<") else words
    return json.dumps(words, default=str) if words and isinstance(words, dict | list) else ""

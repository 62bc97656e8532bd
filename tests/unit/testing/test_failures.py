"""Tests of what can pass, and of errors told without secrets."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from langgraph.errors import GraphInterrupt

from golden import check_golden
from replan.base.failures import (
    asked_pause,
    describe,
    is_busy,
    is_fatal_for_run,
    is_transient,
    is_unbilled,
    status_of,
)
from replan.errors import (
    ConfigurationError,
    InputError,
    LimitReachedError,
    ModelCallError,
    StorageError,
    ThreadLostError,
    UnpricedModelError,
)
from replan.testing.faults import HttpFault, ScriptedHttpError
from replan.testing.script import UnexpectedModelCall


class WithResponse(Exception):  # noqa: N818
    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)
        super().__init__(f"refused: {status}")


class WithStatus(Exception):  # noqa: N818
    def __init__(self, status: object) -> None:
        self.status = status
        super().__init__(f"refused: {status}")


class Unprintable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


class ConnectTimeout(Exception):  # noqa: N818 - as a client names it
    pass


class ClientOSError(OSError):
    pass


class ClientConnectorError(ClientOSError):
    pass


ERRORS: list[BaseException] = [
    ConnectionError(),
    ConnectionResetError("broke off"),
    ConnectionRefusedError("nobody"),
    ConnectTimeout("slow"),
    TimeoutError(),
    RuntimeError("event loop is closed"),
    ValueError("no JSON"),
    OSError(),
    Exception("unknown"),
    ExceptionGroup("both", [TimeoutError(), ConnectionError()]),
    ExceptionGroup("one of them", [TimeoutError(), TypeError()]),
    *(
        ScriptedHttpError(HttpFault(status))
        for status in (400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 501, 503, 529)
    ),
    *(WithResponse(status) for status in (404, 500, 502)),
    *(WithStatus(status) for status in (400, 401, 429, 501, 503, "a word", 0)),
    TypeError(),
    AttributeError(),
    NameError(),
    ModuleNotFoundError(),
    NotImplementedError("no streaming"),
    AssertionError(),
    UnexpectedModelCall(None, {}),
    ModelCallError("think", "it broke off."),
    ConfigurationError("prices", "m", "It is odd.", "Fix it."),
    InputError("It says nothing."),
    LimitReachedError("max_rounds", 3),
    StorageError("runs.db", "The disk is full.", "Make room."),
    ThreadLostError("runs.db", "t"),
    UnpricedModelError("prices", "m"),
    asyncio.CancelledError(),
    KeyboardInterrupt(),
    SystemExit(1),
    GraphInterrupt(),
    caused(ModelCallError("think", "401."), ScriptedHttpError(HttpFault(401))),
    caused(ModelCallError("think", "busy."), ScriptedHttpError(HttpFault(503))),
    caused(ConnectTimeout("nobody"), ClientConnectorError("nobody")),
    caused(RuntimeError("Connection error."), ConnectionRefusedError("nobody")),
    caused(RuntimeError("Connection error."), ConnectionResetError("broke off")),
    caused(RuntimeError("Connection error."), ConnectTimeout("slow")),
    caused(RuntimeError("a"), caused(RuntimeError("b"), WithStatus(400))),
    # What aiohttp's transport makes of a connection that is torn down under a request.
    caused(ConnectTimeout("timed out"), ConnectionResetError("broke off")),
    caused(ConnectTimeout("timed out"), ClientOSError("broke off")),
]
FACTS = {
    "can pass": is_transient,
    "cost nothing": is_unbilled,
    "busy": is_busy,
    "ends the whole work": is_fatal_for_run,
}


def named(error: BaseException) -> str:
    status = status_of(error)
    told = f"{error!r}, status {status}" if status is not None else repr(error)
    return f"{told}, because of {named(error.__cause__)}" if error.__cause__ else told


def test_of_an_error_is_known_what_the_golden_file_has():
    """Faults, refusals and signals cannot pass; of what broke off nobody knows what it cost."""
    known = {
        named(error): "\n".join(fact for fact, holds in FACTS.items() if holds(error))
        for error in ERRORS
    }
    assert len(known) == len(ERRORS)
    check_golden(Path(__file__).with_name("failures.txt"), known)


def test_a_flag_is_no_status():
    assert status_of(WithStatus(True)) is None  # noqa: FBT003


def test_an_error_is_told_by_class_and_message_in_one_line():
    assert describe(ValueError("a\n  b\tc")) == "ValueError: a b c"


def test_the_first_cause_is_told_unless_it_says_the_same():
    middle = caused(RuntimeError("Connection error."), ConnectionResetError("reset by peer"))
    outer = caused(RuntimeError("Connection error."), middle)
    same = caused(RuntimeError("refused: busy"), ValueError("busy"))

    assert describe(outer) == (
        "RuntimeError: Connection error. (because of ConnectionResetError: reset by peer)"
    )
    assert describe(same) == "RuntimeError: refused: busy"


def test_a_refused_connection_is_no_timeout_whatever_its_client_says():
    refused = ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9)")
    outer = caused(RuntimeError("Request timed out."), refused)

    assert describe(outer) == (
        "ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', 9)"
    )


def test_an_error_that_is_its_own_cause_is_told():
    error = RuntimeError("round")
    error.__cause__ = error

    assert describe(error) == "RuntimeError: round"


def test_a_message_that_cannot_be_read_is_no_second_error():
    assert describe(Unprintable()) == "Unprintable: (its message cannot be read)"


def test_a_long_message_is_cut_at_500_characters():
    told = describe(ValueError("x" * 100_000))

    assert len(told) == 500
    assert told.endswith("…")


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-1", None), ("soon", None), (None, None)]
)
def test_a_server_says_how_long_it_wants_to_be_left_alone(asked, seconds):
    error = WithResponse(429)
    error.response.headers = {} if asked is None else {"retry-after": asked}
    assert asked_pause(error) == seconds
    assert asked_pause(ValueError("odd")) is None

"""Tests of what can pass, and of errors told without secrets."""

import asyncio
from types import SimpleNamespace

import pytest
from langgraph.errors import GraphInterrupt

from replan.errors import (
    ConfigurationError,
    InputError,
    LimitReachedError,
    ModelCallError,
    StorageError,
    ThreadLostError,
    UnpricedModelError,
)
from replan.failures import (
    asked_pause,
    describe,
    is_busy,
    is_fatal_for_run,
    is_transient,
    is_unbilled,
    status_of,
)
from replan.testing.faults import HttpFault, ScriptedHttpError
from replan.testing.script import UnexpectedModelCall


class WithResponse(Exception):  # noqa: N818
    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)
        super().__init__("refused")


class WithStatus(Exception):  # noqa: N818
    def __init__(self, status: object) -> None:
        self.status = status
        super().__init__("refused")


class Unprintable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError(),
        ConnectionResetError(),
        TimeoutError(),
        RuntimeError("event loop is closed"),
        ValueError("no JSON"),
        OSError(),
        Exception("unknown"),
        ModelCallError("think", "it broke off."),
        ExceptionGroup("both", [TimeoutError(), ConnectionError()]),
        *(ScriptedHttpError(HttpFault(status)) for status in (408, 409, 425, 429, 500, 503, 529)),
        WithResponse(502),
        WithStatus(429),
        WithStatus("a word"),
        WithStatus(0),
    ],
    ids=repr,
)
def test_what_may_be_better_next_time_can_pass(error: Exception):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        TypeError(),
        AttributeError(),
        NameError(),
        ModuleNotFoundError(),
        NotImplementedError(),
        AssertionError(),
        UnexpectedModelCall(None, {}),
        ConfigurationError("model", "x", "it is unknown", "Use another."),
        LimitReachedError("max_rounds", 3),
        *(ScriptedHttpError(HttpFault(status)) for status in (400, 401, 403, 404, 413, 422)),
        WithResponse(404),
        WithStatus(401),
        ExceptionGroup("one of them", [TimeoutError(), TypeError()]),
        caused(ModelCallError("think", "401."), ScriptedHttpError(HttpFault(401))),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        GraphInterrupt(),
    ],
    ids=repr,
)
def test_faults_refusals_and_signals_cannot_pass(error: BaseException):
    assert not is_transient(error)


def test_a_wrapped_model_error_passes_as_its_cause_does():
    assert is_transient(caused(ModelCallError("think", "busy."), ScriptedHttpError(HttpFault(503))))


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


class ConnectTimeout(Exception):  # noqa: N818 - as a client names it
    pass


class ClientOSError(OSError):
    pass


class ClientConnectorError(ClientOSError):
    pass


@pytest.mark.parametrize(
    "error",
    [
        caused(ConnectTimeout("nobody"), ClientConnectorError("nobody")),
        WithStatus(429),
        WithResponse(500),
        ConnectionRefusedError("nobody"),
        ConnectTimeout("slow"),
        NotImplementedError("no streaming"),
        caused(RuntimeError("Connection error."), ConnectionRefusedError("nobody")),
        caused(RuntimeError("a"), caused(RuntimeError("b"), WithStatus(400))),
    ],
)
def test_a_server_that_answered_with_an_error_or_was_never_reached_did_no_work(error):
    assert is_unbilled(error)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("broke off"),
        TimeoutError("slow"),
        asyncio.CancelledError(),
        ValueError("odd"),
        caused(RuntimeError("Connection error."), ConnectionResetError("broke off")),
        # What aiohttp's transport makes of a connection that is torn down under a request.
        caused(ConnectTimeout("timed out"), ConnectionResetError("broke off")),
        caused(ConnectTimeout("timed out"), ClientOSError("broke off")),
    ],
)
def test_of_what_broke_off_nobody_knows_what_it_cost(error):
    assert not is_unbilled(error)


@pytest.mark.parametrize(
    ("error", "busy"),
    [
        (WithStatus(429), True),
        (WithStatus(503), True),
        (WithStatus(501), False),
        (WithStatus(400), False),
        (ConnectionResetError("broke off"), True),
        (caused(RuntimeError("Connection error."), ConnectTimeout("slow")), True),
        (ValueError("odd"), False),
        (asyncio.CancelledError(), False),
    ],
)
def test_a_busy_server_is_one_that_may_have_time_later(error, busy):
    assert is_busy(error) is busy


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-1", None), ("soon", None), (None, None)]
)
def test_a_server_says_how_long_it_wants_to_be_left_alone(asked, seconds):
    error = WithResponse(429)
    error.response.headers = {} if asked is None else {"retry-after": asked}
    assert asked_pause(error) == seconds
    assert asked_pause(ValueError("odd")) is None


@pytest.mark.parametrize(
    ("error", "is_end"),
    [
        (LimitReachedError("max_tokens", 9), True),
        (StorageError("runs.db", "The disk is full.", "Make room."), True),
        (ThreadLostError("runs.db", "t"), True),
        (UnpricedModelError("prices", "m"), True),
        (ConfigurationError("prices", "m", "It is odd.", "Fix it."), False),
        (GraphInterrupt(), True),
        (ModelCallError("think", "it broke off."), False),
        (InputError("It says nothing."), False),
        (TimeoutError(), False),
        (SystemExit(1), False),
    ],
)
def test_a_limit_the_storage_a_missing_price_and_a_signal_end_the_whole_work(error, is_end):
    assert is_fatal_for_run(error) is is_end

"""What every command does with its process: errors become messages, an outcome an exit code."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

if TYPE_CHECKING:
    from replan.cli.user_files.storage_location import StorageLocation

P = ParamSpec("P")
Code = int | None
"""The exit code of a command; None is 0."""

_SHOWN = 40

GOOD = 0
INCOMPLETE = 1
WRONG_USE = 2
WAITING = 3
INTERRUPTED = 130
TERMINATED = 143

CODES = {"answered": GOOD, "completed": GOOD, "waiting": WAITING}
"""By the outcome of a run; every other one is `INCOMPLETE`."""


def as_command(work: Callable[P, Code | Coroutine[Any, Any, Code]]) -> Callable[P, None]:
    """Make a command of a function that returns its exit code; wrong use is one message."""

    @wraps(work)
    def command(*args: P.args, **options: P.kwargs) -> None:
        raise typer.Exit(_exit_code(lambda: work(*args, **options)))

    return command


def _exit_code(work: Callable[[], Code | Coroutine[Any, Any, Code]]) -> int:
    # A checkpoint that somebody tampered with must not run code; LangGraph reads this on import.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from replan.base.errors import ReplanError, UsageError
    from replan.base.secrets.sources import learn_environment
    from replan.base.texts.signs import harmless
    from replan.cli.user_files.log_file import off_the_screen

    learn_environment(os.environ)
    try:
        with off_the_screen():
            done = work()
            code = (asyncio.run(done) if isinstance(done, Coroutine) else done) or GOOD
    except ReplanError as error:
        typer.echo(f"replan: {harmless(str(error))}", err=True)
        code = WRONG_USE if isinstance(error, UsageError) else INCOMPLETE
    except OSError as error:
        code, problem = _what_failed(error)
        typer.echo(f"replan: {harmless(problem)}", err=True)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    if code in (INTERRUPTED, TERMINATED):
        # Everything is written; a second Ctrl-C means not to wait for what is left.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _what_failed(error: OSError) -> tuple[int, str]:
    """The exit code and the message for an error of the system that needs one."""
    if error.errno == errno.ENAMETOOLONG:
        start = str(error.filename)[:_SHOWN]
        problem = f"the path '{start}...' is too long for the file system"
        return WRONG_USE, f"{problem}. Choose shorter names."
    # A reader that is gone needs no message, and a named file is not the output.
    if error.errno == errno.EPIPE or error.filename is not None:
        raise error
    return INCOMPLETE, f"The output cannot be written: {error.strerror}."


_POSTGRES = ("psycopg", "psycopg_pool")
_SERVER = ("fastapi", "jwt", "prometheus_client", "starlette", "uvicorn")
EXTRAS = {
    "queue": ("croniter", "langgraph", "procrastinate", "prometheus_client", *_POSTGRES),
    "server": _SERVER,
    "ui": (*_SERVER, "jinja2", "js_lib_htmx", "markupsafe", "nh3", "python_multipart"),
}
"""The packages of extras without which a command does nothing, as they are imported."""


@contextmanager
def needs_extra(command: str, extra: str) -> Generator[None]:
    """Name the extra of a command, and how to install it, where a package of it is missing."""
    from replan.base.errors import UsageError

    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS[extra]:
            raise
        problem = f"{command} needs the extra '{extra}': {package} is not installed"
        raise UsageError(f"{problem}. Install it: pip install 'replan[{extra}]'.") from error


def confirm(question: str, lines: Iterable[str], refusal: str) -> bool:
    """Ask the person at the terminal whether something is to be done.

    Args:
        question: What is asked.
        lines: What it is about.
        refusal: What is said where nobody can be asked.

    Raises:
        InputError: There is no terminal.
    """
    from replan.base.errors import InputError

    if not sys.stdin.isatty():
        raise InputError(refusal)
    typer.echo("".join(f"{line}\n" for line in lines), nl=False)
    return typer.confirm(question)


def confirm_loss(
    noun: str, lines: Sequence[str], how: str = "Remove {} with all their records?", end: str = ""
) -> bool:
    """Ask whether what these lines name is to be lost; `end` says how it is then."""
    what = f"this {noun}" if len(lines) == 1 else f"these {len(lines)} {noun}s"
    refusal = f"{end or 'Removed'} {noun}s cannot be restored. Confirm it with --yes."
    return confirm(how.format(what), lines, refusal)


def location_from(storage: str | None) -> StorageLocation:
    """Where this process finds its runs."""
    from replan.cli.user_files.storage_location import location_of

    return location_of(storage, os.environ)


def end_process(code: int) -> None:
    """End the process without keeping anybody waiting, and without a second message."""
    if code:
        _drop_what_cannot_be_written()
    own_loop = sys.modules.get("replan.base.own_loop")
    if own_loop is None or not own_loop.is_work_left():
        return
    # The interpreter is not taken down under work that is still in foreign code.
    logging.shutdown()
    with suppress(OSError):  # the reader may be gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _drop_what_cannot_be_written() -> None:
    """Keep Python from trying again at its end: that would change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""What every command does with its process: errors become messages, an outcome an exit code."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from replan.cli.kept.place import Place


GOOD = 0
INCOMPLETE = 1
WRONG_USE = 2
WAITING = 3
INTERRUPTED = 130
TERMINATED = 143

CODES = {"answered": GOOD, "completed": GOOD, "waiting": WAITING}
"""By the outcome of a run; every other one is `INCOMPLETE`."""


def end_with(command: Callable[[], int]) -> None:
    """Do what a command does, and end with its exit code; a wrong use is one message."""
    # A checkpoint that somebody tampered with must not run code; LangGraph reads this on import.
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    from replan.cli.kept.log_file import off_the_screen
    from replan.cli.views.cells import harmless
    from replan.errors import ReplanError, UsageError
    from replan.secrets.sources import learn_environment

    learn_environment(os.environ)
    try:
        with off_the_screen():
            code = command()
    except ReplanError as error:
        typer.echo(f"replan: {harmless(str(error))}", err=True)
        code = WRONG_USE if isinstance(error, UsageError) else INCOMPLETE
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = INTERRUPTED
    if code in (INTERRUPTED, TERMINATED):
        # Everything is written; a second Ctrl-C means not to wait for what is left.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise typer.Exit(code)


@contextmanager
def extra(name: str, field: str, problem: str, packages: Collection[str]) -> Generator[None]:
    """Name the extra of packages that are missing.

    Raises:
        ConfigurationError: One of the packages is not installed.
    """
    from replan.errors import ConfigurationError

    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        fix = f"pip install 'replan[{name}]'."
        raise ConfigurationError(field, error.name, problem, fix) from error


def queue_extra(command: str) -> AbstractContextManager[None]:
    """Name the extra that the queue needs, where it is not installed."""
    packages = ("croniter", "langgraph", "procrastinate", "psycopg", "psycopg_pool")
    return extra("queue", command, "a queue needs procrastinate and psycopg", packages)


def agreed(question: str, lines: Iterable[str], refusal: str) -> bool:
    """Ask the person at the terminal whether something is to be done.

    Args:
        question: What is asked.
        lines: What it is about.
        refusal: What is said where nobody can be asked.

    Raises:
        InputError: There is no terminal.
    """
    from replan.errors import InputError

    if not sys.stdin.isatty():
        raise InputError(refusal)
    typer.echo("".join(f"{line}\n" for line in lines), nl=False)
    return typer.confirm(question)


def place(storage: str | None) -> Place:
    """Where this process finds its runs."""
    from replan.cli.kept.place import place_of

    return place_of(storage, os.environ)


def leave(code: int) -> None:
    """End the process without keeping anybody waiting, and without a second message."""
    if code:
        _drop_what_cannot_be_written()
    own_loop = sys.modules.get("replan.own_loop")
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

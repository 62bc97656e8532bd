"""The pages on an address, from the start of `replan ui` to its end."""

import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replan.assembly.graphs import AnyTeam
from replan.errors import InputError
from replan.own_loop import run_in_own_loop
from replan.ports.storage import Storage
from replan.server.callers.tokens import TOKEN, Tokens, new_token, one_token, read_tokens
from replan.server.listening import bind_socket, listening, until_signalled
from replan.server.served_teams import open_teams
from replan.server.serving import ServeOptions, graph_of, hosts_of, named_teams
from replan.storage.opening import open_storage
from replan.ui.app import application
from replan.ui.entering import Entrance
from replan.ui.terminal_runs import Terminals

_GRACE = 10.0
"""Seconds that running steps have to end, by default."""


@dataclass(frozen=True, kw_only=True)
class PageOptions(ServeOptions):
    """What `replan ui` is to show, and how."""

    prefix: str = ""  # the path under which a proxy offers the pages
    secret: Path | None = None  # where the token that was made up is kept from start to start


@asynccontextmanager
async def open_pages(  # noqa: PLR0913 - what its pages leave open
    teams: Mapping[str, AnyTeam],
    storage: Storage,
    tokens: Tokens | str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    names: Sequence[str] = (),
    prefix: str = "",
    sessions: Path | None = None,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncGenerator[str]:
    """Offer the pages for as long as the block, and return the address that opens them.

    Args:
        teams: Teams, graphs or team files by their names.
        storage: Where the runs are kept.
        tokens: Who may call, or the only token; with that the address opens the pages once.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        names: Further names by which browsers may call.
        prefix: The path under which a proxy offers the pages, such as `/tools/replan`.
        sessions: The beginning of the name of the file that keeps browsers in from start to start.
        environment: What the teams of runs that a terminal began read their keys from.
        options: As of `open_teams`.
    """
    prefix = _check_prefix(prefix)
    known = one_token(tokens) if isinstance(tokens, str) else tokens
    listener = bind_socket(host, port)
    number = listener.getsockname()[1]
    entrance = Entrance(
        prefix=prefix,
        cookie=f"replan_{number}",
        tokens=known,
        clock=time.time,
        # Of another port it is another page.
        kept=sessions and sessions.with_name(f"{sessions.name}-{number}"),
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(listener)
        served = await stack.enter_async_context(open_teams(teams, storage, known, **options))
        terminals = Terminals(
            storage=storage,
            environment={} if environment is None else environment,
            grace=options.get("grace", _GRACE),
        )
        stack.push_async_callback(terminals.close)
        app = application(served, entrance, hosts_of(host, names), terminals)
        await stack.enter_async_context(listening(app, listener, served.close))
        shown = f"[{host}]" if ":" in host else host
        code = f"enter?code={entrance.new_code(tokens)}" if isinstance(tokens, str) else ""
        yield f"http://{shown}:{number}{prefix}/{code}"


def show(wanted: PageOptions, say: Callable[[str], None]) -> None:
    """Offer the pages until SIGINT or SIGTERM.

    Raises:
        UsageError: A team file, the tokens, the storage or the address cannot be used.
    """
    run_in_own_loop(lambda: _serve_pages(wanted, say))


async def _serve_pages(wanted: PageOptions, say: Callable[[str], None]) -> None:
    named = named_teams(wanted)
    if wanted.tokens:
        tokens: Tokens | str = read_tokens(wanted.tokens, wanted.environment)
    else:
        tokens = wanted.environment.get(TOKEN) or _stored_token(wanted.secret)
    kept = open_storage(wanted.storage, key=wanted.key, keep_days=wanted.keep_days)
    async with kept as storage:
        opened = open_pages(
            {name: graph_of(each, storage) for name, each in named.items()},
            storage,
            tokens,
            host=wanted.host,
            port=wanted.port,
            names=wanted.names,
            prefix=wanted.prefix,
            sessions=wanted.secret and wanted.secret.with_name("ui.sessions"),
            environment=wanted.environment,
            grace=wanted.grace,
        )
        async with opened as address:
            once = " (this address works once)" if isinstance(tokens, str) else ""
            say(f"Open {address}{once}")
            say("Ctrl-C ends it; runs at work can be resumed.")
            await until_signalled()


def _stored_token(where: Path | None) -> str:
    """The token of earlier starts, so that an open page continues after a restart."""
    if where is None:
        return new_token()
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(where, os.O_RDWR | os.O_CREAT, 0o600)
        with open(descriptor, "r+", encoding="ascii") as file:  # noqa: PTH123 - a descriptor
            if kept := file.read().strip():
                return kept
            made = new_token()
            file.write(made)
            return made
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The token of the page in {where} cannot be read: {error}. "
            f"Remove the file, or set {TOKEN}."
        ) from None


def _check_prefix(prefix: str) -> str:
    """Check the prefix of all paths, and return it without a slash at its end."""
    prefix = prefix.rstrip("/")
    plain = prefix.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    is_path = prefix.startswith("/") and "//" not in prefix and plain.isascii() and plain.isalnum()
    if prefix and not is_path:
        raise InputError(
            f"--prefix {prefix} is not a path. "
            "Write one of letters and digits such as /tools/replan."
        )
    return prefix

"""A server with the pages, from the start of `replan ui` to its end."""

import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replan.assembly.graphs import AnyTeam
from replan.base.errors import InputError
from replan.base.own_loop import run_in_own_loop, until_signalled
from replan.cli.page.entering import Entrance
from replan.cli.page.routes import pages_part
from replan.cli.page.terminal_runs import Terminals, graph_to_look
from replan.ports.storage import Storage
from replan.server.app import Part
from replan.server.callers.tokens import TOKEN, Tokens, new_token, read_tokens
from replan.server.served_teams import ServedTeams
from replan.server.serving import ServeOptions, named_teams, open_server
from replan.storage.opening import open_storage


@dataclass(frozen=True, kw_only=True)
class PageOptions(ServeOptions):
    """What `replan ui` is to show, and how."""

    prefix: str = ""  # the path under which a proxy offers the pages
    secret: Path | None = None  # where the token that was made up is kept from start to start


@asynccontextmanager
async def open_pages(
    teams: Mapping[str, AnyTeam],
    storage: Storage,
    tokens: Tokens | str,
    *,
    prefix: str = "",
    sessions: Path | None = None,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncGenerator[str]:
    """Serve teams with the pages for as long as the block; return the address that opens them.

    Args:
        teams: Teams, graphs or team files by their names.
        storage: Where the runs are kept.
        tokens: Who may call, or the only token; with that the address opens the pages once.
        prefix: The path under which a proxy offers the server, such as `/tools/replan`.
        sessions: The beginning of the name of the file that keeps browsers in from start to start.
        environment: What the teams of runs that a terminal began read their keys from.
        options: As of `open_server`.
    """
    prefix = _check_prefix(prefix)
    login = list[Entrance]()

    @asynccontextmanager
    async def pages(served: ServedTeams, port: int) -> AsyncGenerator[Part]:
        entrance = Entrance(
            prefix=prefix,
            cookie=f"replan_{port}",
            tokens=served.tokens,
            clock=time.time,
            # Of another port it is another page.
            kept=sessions and sessions.with_name(f"{sessions.name}-{port}"),
        )
        login.append(entrance)
        terminals = Terminals(storage=storage, environment=environment or {}, grace=served.grace)
        try:
            yield pages_part(served, entrance, terminals)
        finally:
            await terminals.close()

    opened = open_server(teams, storage=storage, tokens=tokens, pages=pages, **options)
    async with opened as address:
        code = f"enter?code={login[0].new_code(tokens)}" if isinstance(tokens, str) else ""
        yield f"{address.url}{login[0].home}/{code}"


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
        found = {name: graph_to_look(team_file, storage) for name, team_file in named.items()}
        lacking = {name: lacks for name, (_, lacks) in found.items() if lacks}
        opened = open_pages(
            {name: graph for name, (graph, _) in found.items()},
            storage,
            tokens,
            host=wanted.host,
            port=wanted.port,
            names=wanted.names,
            prefix=wanted.prefix,
            sessions=wanted.secret and wanted.secret.with_name("ui.sessions"),
            environment=wanted.environment,
            grace=wanted.grace,
            lacking=lacking,
        )
        async with opened as address:
            once = " (this address works once)" if isinstance(tokens, str) else ""
            say(f"Open {address}{once}")
            say("Ctrl-C ends it; runs at work can be resumed.")
            for why in lacking.values():
                say(why)
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


_PREFIX = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def _check_prefix(prefix: str) -> str:
    """Check the prefix of all paths, and return it without a slash at its end."""
    prefix = prefix.rstrip("/")
    if not _PREFIX.fullmatch(prefix):
        raise InputError(
            f"--prefix {prefix} is not a path. "
            "Write one of letters and digits such as /tools/replan."
        )
    return prefix

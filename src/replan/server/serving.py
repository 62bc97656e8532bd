"""A server of teams on an address: in a program for as long as a block, or until it is ended."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from replan.assembly.graphs import AnyTeam, Graph, build_graph
from replan.base.errors import ConfigurationError
from replan.base.own_loop import run_in_own_loop, until_signalled
from replan.ports.storage import Storage

try:
    from replan.server.app import Part, open_application
except ModuleNotFoundError as error:
    message = (
        f"open_server needs the extra 'server': {error.name} is not installed. Install it: "
        "pip install 'replan[server]'"
    )
    raise ModuleNotFoundError(message, name=error.name) from error

from replan.server.callers.tokens import TOKEN, Tokens, new_token, one_token, read_tokens
from replan.server.gate import LOOPBACK
from replan.server.listening import HEADER_SECONDS, bind_socket, listening
from replan.server.served_teams import Queueing, ServedTeams, open_teams
from replan.storage.opening import open_storage
from replan.team.file_team import DEFAULT_TEAM
from replan.team.team_file import TeamFile, read_served_file

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is compared with, not bound


OpenPages = Callable[[ServedTeams, int], AbstractAsyncContextManager[Part]]
"""Opens the routes of the page for the teams of a server on a port."""


OpenQueue = Callable[[str, Mapping[str, TeamFile]], AbstractAsyncContextManager[Queueing]]
"""Opens the queue of a storage, in which the runs of these versions of the teams wait."""


class Address(NamedTuple):
    """Where a server listens.

    Attributes:
        url: Its address, such as `http://127.0.0.1:8321`.
        token: The token that was made up; empty if one was given.
    """

    url: str
    token: str


@asynccontextmanager
async def open_server(  # noqa: PLR0913 - what a server leaves open
    teams: Mapping[str, AnyTeam],
    *,
    storage: Storage | str | Path = ":memory:",
    tokens: Tokens | Path | str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    names: Sequence[str] = (),
    head_seconds: float = HEADER_SECONDS,
    pages: OpenPages | None = None,
    **options: Any,
) -> AsyncGenerator[Address]:
    """Serve teams over HTTP until the block ends; this needs the extra `server`.

    At the end of the block, runs at work are stopped, so that they can be resumed.

    Args:
        teams: Teams, team files, or graphs that `build_graph` made with this storage, by the names
            that requests use.
        storage: A storage from `open_storage`, or its argument.
        tokens: The path of a file of tokens, or the only token. Without it a token is made up.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        names: Further host names under which clients may reach the server.
        head_seconds: Seconds in which the head of a connection's first request has to arrive.
        pages: Opens the routes of the page, given the teams and the port; none serves no page.
        options: `grace` is the seconds that running steps have to end at the end of the block,
            `beat` those between two heartbeats of a silent stream, and `body_seconds` those in
            which the body of a request has to arrive. `queue` is where the runs wait for workers.

    Raises:
        UsageError: The teams, the tokens, the storage or the address cannot be used.
    """
    read_tokens, new_token = _tokens_of(tokens)
    listener = bind_socket(host, port)
    async with AsyncExitStack() as stack:
        stack.enter_context(listener)
        if not isinstance(storage, Storage):
            storage = await stack.enter_async_context(open_storage(storage))
        served = await stack.enter_async_context(open_teams(teams, storage, read_tokens, **options))
        number = listener.getsockname()[1]
        part = await stack.enter_async_context(pages(served, number)) if pages else None
        opening = open_application(served, hosts_of(host, names), part)
        app = await stack.enter_async_context(opening)
        await stack.enter_async_context(listening(app, listener, served.close, head_seconds))
        shown = f"[{host}]" if ":" in host else host
        yield Address(f"http://{shown}:{number}", new_token)


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What `replan serve` is to serve, and how."""

    teams: Sequence[Path]  # team files; none: the default team
    environment: Mapping[str, str]
    storage: str  # where runs are kept, for `open_storage`
    key: str | None = None  # what encrypts the storage
    keep_days: float | None = None
    host: str = "127.0.0.1"
    port: int = 8321
    names: Sequence[str] = ()  # further names by which the server may be called
    tokens: Path | None = None
    grace: float = 10.0
    # Opens the queue in which the runs wait, where workers do them.
    open_queue: OpenQueue | None = None


def serve(wanted: ServeOptions, say: Callable[[str], None]) -> None:
    """Serve teams until SIGINT or SIGTERM; runs at work are stopped then, and can be resumed.

    Raises:
        UsageError: A team file, the tokens, the storage or the address cannot be used.
    """
    run_in_own_loop(lambda: _run_server(wanted, say))


async def _run_server(wanted: ServeOptions, say: Callable[[str], None]) -> None:
    named = named_teams(wanted)
    tokens = wanted.tokens or wanted.environment.get(TOKEN) or None
    kept = open_storage(wanted.storage, key=wanted.key, keep_days=wanted.keep_days)
    async with AsyncExitStack() as stack:
        opening = wanted.open_queue and wanted.open_queue(wanted.storage, named)
        queue = await stack.enter_async_context(opening) if opening else None
        storage = await stack.enter_async_context(kept)
        teams = {name: graph_of(team_file, storage) for name, team_file in named.items()}
        opened = open_server(
            teams,
            storage=storage,
            tokens=tokens,
            host=wanted.host,
            port=wanted.port,
            names=wanted.names,
            grace=wanted.grace,
            queue=queue,
        )
        async with opened as address:
            say(_greeting(wanted, [*teams], address))
            await until_signalled()


def named_teams(wanted: ServeOptions) -> dict[str, TeamFile]:
    """The team files to serve, by the names of their teams."""
    files = [read_served_file(path, wanted.environment) for path in wanted.teams or [DEFAULT_TEAM]]
    named = {team_file.identity.name: team_file for team_file in files}
    if len(named) < len(files):
        raise _same_name_error([team_file.identity.name for team_file in files])
    return named


def _same_name_error(names: Sequence[str]) -> ConfigurationError:
    twice = next(name for name in names if names.count(name) > 1)
    fix = "Give one of them another name: in its file, or rename the file."
    return ConfigurationError("name", twice, "two teams have this name", fix)


def graph_of(read: TeamFile, storage: Storage) -> Graph:
    """The graph of a team on a storage."""
    return build_graph(read.config, storage=storage, models=read.models)


def _tokens_of(tokens: Tokens | Path | str | None) -> tuple[Tokens, str]:
    """The allowed callers, and the token that was generated if none is given."""
    if isinstance(tokens, Tokens):
        return tokens, ""
    if isinstance(tokens, Path):
        return read_tokens(tokens, os.environ), ""
    made = "" if tokens else new_token()
    return one_token(tokens or made), made


def hosts_of(host: str, names: Sequence[str]) -> list[str]:
    """The names by which a server may be called."""
    hosts = [] if host in _EVERYWHERE else [host.lower()]
    return list(dict.fromkeys([*(name.lower() for name in names), *hosts, *LOOPBACK]))


def _greeting(wanted: ServeOptions, teams: Sequence[str], address: Address) -> str:
    lines = [f"serving {', '.join(teams)} on {address.url}"]
    if wanted.host not in LOOPBACK:
        lines.append("Others can reach this address: put TLS in front of it.")
    if address.token:
        text = f"token (made for this start; set {TOKEN} or --tokens to choose)"
        lines.append(f"{text}: {address.token}")
    text = "workers continue the runs" if wanted.open_queue else "runs at work can be resumed"
    lines.append(f"Ctrl-C stops it; {text}.")
    return "\n".join(lines)

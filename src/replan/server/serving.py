"""`replan serve` without its command line: teams on an address, until somebody ends it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replan.adapters.storage.opening import open_storage
from replan.assembly import Graph, build_graph
from replan.own_loop import completed
from replan.ports.storage import Storage
from replan.server.app import application
from replan.server.gate import LOOPBACK
from replan.server.house import open_house
from replan.server.listening import bound, listening, until_signalled
from replan.server.tokens import TOKEN, Tokens, new_token, one_token, read_tokens
from replan.team.file_team import DEFAULT_TEAM
from replan.team.team import Team
from replan.team.team_file import TeamFile, read_team_file

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is compared with, not bound


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be served, and how."""

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


def serve(wanted: Wanted, say: Callable[[str], None]) -> None:
    """Serve teams until SIGINT or SIGTERM; runs at work are stopped then, and can be resumed.

    Raises:
        UsageError: A team file, the tokens, the storage or the address cannot be used.
    """
    completed(lambda: _served(wanted, say))


async def _served(wanted: Wanted, say: Callable[[str], None]) -> None:
    files = [_file_of(path, wanted.environment) for path in wanted.teams or [DEFAULT_TEAM]]
    tokens, made = _tokens_of(wanted)
    listener = bound(wanted.host, wanted.port)
    with listener:
        kept = open_storage(wanted.storage, key=wanted.key, keep_days=wanted.keep_days)
        async with kept as storage:
            teams = [(_name_of(each), _graph_of(each, storage)) for each in files]
            async with open_house(teams, storage, tokens, grace=wanted.grace) as house:
                app = application(house, _hosts(wanted))
                async with listening(app, listener, house.close) as serving:
                    say(_introduced(wanted, [*house.runtimes], listener.getsockname()[1], made))
                    ended = asyncio.ensure_future(until_signalled())
                    await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
                    ended.cancel()


def _file_of(path: Path, environment: Mapping[str, str]) -> TeamFile:
    if path != DEFAULT_TEAM:
        return read_team_file(path, environment)
    folder = Path(environment.get("REPLAN_DIR", "."))
    out = environment.get("REPLAN_OUT")
    read = read_team_file(path, environment, directory=folder, out=Path(out) if out else None)
    model, base_url = environment.get("REPLAN_MODEL"), environment.get("REPLAN_BASE_URL")
    return read.with_model(model or None, base_url or None)


def _name_of(read: TeamFile) -> str:
    """The name of a team: its own, else that of its file."""
    named = "name" in read.config.model_fields_set or read.path == DEFAULT_TEAM
    return read.config.name if named else read.path.stem


def _graph_of(read: TeamFile, storage: Storage) -> Graph:
    team: Team = read.config
    return build_graph(team, storage=storage, models=read.models)


def _tokens_of(wanted: Wanted) -> tuple[Tokens, str]:
    """Who may call, and the token that was made up, if none is configured."""
    if wanted.tokens is not None:
        return read_tokens(wanted.tokens, wanted.environment), ""
    if given := wanted.environment.get(TOKEN):
        return one_token(given), ""
    made = new_token()
    return one_token(made), made


def _hosts(wanted: Wanted) -> list[str]:
    own = [] if wanted.host in _EVERYWHERE else [wanted.host.lower()]
    names = [each.lower() for each in wanted.names]
    return list(dict.fromkeys([*names, *own, *LOOPBACK]))


def _introduced(wanted: Wanted, teams: Sequence[str], port: int, made: str) -> str:
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    lines = [f"serving {', '.join(teams)} on http://{host}:{port}"]
    if wanted.host not in LOOPBACK:
        lines.append("Others can reach this address: put TLS in front of it.")
    if made:
        lines.append(f"token (made for this start; set {TOKEN} or --tokens to choose): {made}")
    lines.append("Ctrl-C stops it; runs at work can be resumed.")
    return "\n".join(lines)

"""The tool servers of a team, as `replan check` reports them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from replan.errors import ConfigurationError, ToolServerError
from replan.own_loop import run_in_own_loop
from replan.ports.tool_provider import ToolDefinition, ToolProvider, server_in
from replan.team.tool_server import ToolServer
from replan.views.cells import one_line

if TYPE_CHECKING:
    from pydantic import JsonValue

    from replan.team.team import Team


@dataclass(frozen=True, kw_only=True)
class KnownServer:
    """A tool server: its grants, and its tools if it was asked."""

    name: str
    way: str
    grants: dict[str, list[str]]
    tools: Sequence[ToolDefinition] | None = None  # None: it was not started
    problem: str = ""

    @property
    def lines(self) -> Iterator[str]:
        yield f"  {self.name}  {self.way}"
        for who, grants in self.grants.items():
            yield f"    @{who}: {', '.join(grants)}"
        for tool in self.tools or ():
            effects = tool.effects or "unsafe"
            yield f"    {self.name}/{tool.name} ({effects})  {one_line(tool.description)}"
        if self.problem:
            yield f"    {self.problem}"

    @property
    def record(self) -> "JsonValue":
        tools: JsonValue = None
        if self.tools is not None:
            tools = [each.model_dump(mode="json") for each in self.tools]
        granted: dict[str, JsonValue] = {who: [*grants] for who, grants in self.grants.items()}
        fields: dict[str, JsonValue] = {"name": self.name, "way": self.way, "granted": granted}
        return {**fields, "tools": tools, "problem": self.problem or None}


def known_servers(team: "Team", *, starts: bool) -> list[KnownServer]:
    """What is known about the tool servers of a team; with `starts`, they are started and asked."""
    tools = {"host": team.host.tools} | {each.name: each.tools for each in team.specialists}
    known: list[KnownServer] = []
    for name, server in team.tool_servers.items():
        way = server.command or server.url if isinstance(server, ToolServer) else "a provider"
        granted = {
            who: [str(one) for one in row if server_in(one) == name] for who, row in tools.items()
        }
        grants = {who: found for who, found in granted.items() if found}
        found, problem = _ask_server(name, server, grants) if starts else (None, "")
        known.append(
            KnownServer(name=name, way=str(way), grants=grants, tools=found, problem=problem)
        )
    return known


def _ask_server(
    name: str, server: ToolServer | ToolProvider, grants: dict[str, list[str]]
) -> tuple[Sequence[ToolDefinition] | None, str]:
    try:
        provider = server.built(name, os.environ) if isinstance(server, ToolServer) else server
        tools = run_in_own_loop(lambda: _list_tools(provider))
    except (ConfigurationError, ToolServerError) as error:
        return None, str(error)
    names = [f"{name}/{tool.name}" for tool in tools]
    missing = [
        grant
        for row in grants.values()
        for grant in row
        if not any(fnmatchcase(each, grant) for each in names)
    ]
    return tools, f"it has no tool {', '.join(missing)}" if missing else ""


async def _list_tools(provider: ToolProvider) -> Sequence[ToolDefinition]:
    try:
        return await provider.list_tools()
    finally:
        close = getattr(provider, "aclose", None)
        if close is not None:
            await close()

"""What is ahead of a team: the most turns of its jobs, its knowledge, and its tool servers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from os.path import normpath
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from replan.base.errors import ConfigurationError, RetrievalError, ToolServerError
from replan.base.own_loop import run_in_own_loop
from replan.base.values import Value
from replan.jobs.spec.job_spec import JobSpec
from replan.knowledge.folder import FolderRetriever
from replan.ports.tool_provider import (
    SelectiveToolProvider,
    ToolDefinition,
    ToolProvider,
    close_connections,
    server_in,
)
from replan.state.limits import Limits
from replan.team.tool_server import ToolServer
from replan.views.cells import counted, one_line

if TYPE_CHECKING:
    from replan.team.team import Team


def job_outlook(spec: JobSpec) -> dict[str, Any]:
    """What is ahead, for programs."""
    return {
        "job": spec.name,
        "version": spec.version,
        "languages": list(spec.languages),
        "slots": [slot.name for slot in spec.slots],
        "commands": [
            {
                **command.model_dump(mode="json", include={"name", "needs", "takes", "action"}),
                "effects": spec.effects_of(command),
                "confirmed": spec.is_confirmed(command),
            }
            for command in spec.commands
        ],
        "max_turns": spec.max_turns,
        "max_asks": spec.max_asks,
        "max_corrections": spec.max_corrections,
        "max_questions": Limits().max_questions,
    }


def job_lines(spec: JobSpec) -> list[str]:
    """What is ahead, for people."""
    counts = f"{counted(len(spec.slots), 'slot')}, {counted(len(spec.commands), 'command')}"
    spoken = " and ".join(spec.languages)
    lines = [f"job {spec.name}, version {spec.version}, speaks {spoken}: {counts}"]
    for each in spec.commands:
        takes = f"; takes {', '.join(each.takes)}" if each.takes else ""
        confirmed = ", confirmed" if spec.is_confirmed(each) else ""
        needs = ", ".join(spec.in_order(each.needs)) or "nothing"
        how = f"{each.action} ({spec.effects_of(each)}{confirmed})"
        lines.append(f"  {each.name}: needs {needs}{takes}; {how}")
    lines.append(
        f"at most {spec.max_turns} turns: it stops after {counted(spec.max_asks, 'question')} in a "
        f"row without progress, and if more than {counted(spec.max_corrections, 'value')} change"
    )
    most = Limits().max_questions
    if spec.max_turns > most:
        lines.append(
            f"in a plan, a run asks at most {most} questions unless max_questions says more: "
            "the step fails there"
        )
    return lines


def count_knowledge(knowledge: object) -> dict[str, JsonValue]:
    """Count the files and passages of a folder, and name what is left out."""
    if not isinstance(knowledge, FolderRetriever):
        return {"retriever": type(knowledge).__name__}
    try:
        files, passages, left_out = knowledge.looked_through()
    except RetrievalError as error:
        return {"folder": normpath(knowledge.folder), "error": str(error)}
    found: dict[str, JsonValue] = {"files": files, "passages": passages, "skipped": [*left_out]}
    return {"folder": normpath(knowledge.folder), **found}


def knowledge_lines(knowledge: Mapping[str, JsonValue]) -> list[str]:
    match knowledge:
        case {"retriever": name}:
            return [f"knowledge: searched by {name}"]
        case {"error": error}:
            return [f"knowledge: {one_line(str(error))}"]
        case {"files": int(files), "passages": int(passages), "skipped": list(left_out)}:
            size = f"{counted(files, 'file')}, {counted(passages, 'passage')}"
            head = f"knowledge: {knowledge['folder']}: {size}"
            return [head, *(f"  {one_line(str(each))}" for each in left_out)]
        case _:
            return []


class KnownServer(Value):
    """A tool server: its grants, and its tools if it was asked."""

    name: str
    way: str
    granted: dict[str, list[str]]
    tools: tuple[ToolDefinition, ...] | None = None  # None: it was not started
    is_whole: bool = True  # whether these are all its tools, and not only those that are granted
    problem: str | None = None

    @property
    def lines(self) -> Iterator[str]:
        yield f"  {self.name}  {self.way}"
        for who, grants in self.granted.items():
            yield f"    @{who}: {', '.join(grants)}"
        for tool in self.tools or ():
            effects = tool.effects or "unsafe"
            yield f"    {self.name}/{tool.name} ({effects})  {one_line(tool.description)}"
        if not self.is_whole:
            yield "    It has too many tools to list them all: these are the granted ones."
        if self.problem:
            yield f"    {self.problem}"


def known_servers(team: "Team", *, starts: bool) -> list[KnownServer]:
    """What is known about the tool servers of a team; with `starts`, they are started and asked."""
    tools = {"host": team.host.tools} | {one.name: one.tools for one in team.specialists}
    servers: list[KnownServer] = []
    for name, server in team.tool_servers.items():
        way = server.command or server.url if isinstance(server, ToolServer) else "a provider"
        granted = {
            who: [str(one) for one in row if server_in(one) == name] for who, row in tools.items()
        }
        grants = {who: found for who, found in granted.items() if found}
        one = KnownServer(name=name, way=str(way), granted=grants)
        servers.append(_with_tools(one, server) if starts else one)
    return servers


def _with_tools(known_server: KnownServer, server: ToolServer | ToolProvider) -> KnownServer:
    """Start a server, and add its tools, or why it cannot be used."""
    name, rows = known_server.name, known_server.granted.values()
    names = [[grant.partition("/")[2] for grant in row] for row in rows]
    try:
        provider = server.built(name, os.environ) if isinstance(server, ToolServer) else server
        tools, is_whole = run_in_own_loop(lambda: _list_tools(provider, names))
    except (ConfigurationError, ToolServerError) as error:
        return known_server.replace(problem=str(error))
    found = [f"{name}/{tool.name}" for tool in tools]
    grants = [grant for row in rows for grant in row]
    missing = [grant for grant in grants if not any(fnmatchcase(each, grant) for each in found)]
    problem = f"it has no tool {', '.join(missing)}" if missing else None
    return known_server.replace(tools=tuple(tools), is_whole=is_whole, problem=problem)


async def _list_tools(
    provider: ToolProvider, grants: Sequence[Sequence[str]]
) -> tuple[Sequence[ToolDefinition], bool]:
    """The tools of a server, and whether these are all that it has."""
    try:
        return await provider.list_tools(), True
    except ToolServerError as error:
        is_slow = isinstance(error.__cause__, TimeoutError)
        if is_slow or not grants or not isinstance(provider, SelectiveToolProvider):
            raise
        # It may have more than can be listed: each of its users asks only for what is granted.
        found = [tool for names in grants for tool in await provider.find_tools(names)]
        return list({tool.name: tool for tool in found}.values()), False
    finally:
        await close_connections([provider])

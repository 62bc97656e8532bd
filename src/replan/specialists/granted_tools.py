"""The tools of tool servers that a loop is granted, as tools that a chat model can call.

Which tools a server has is known only once it is asked, and may change. So a grant is a name or a
pattern, `files/read_file` or `git/*`, and is looked up whenever a loop begins.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from replan.base.errors import ToolServerError
from replan.base.langgraph_inside.langchain import ServerTool
from replan.base.texts.schema_size import LONGEST_SCHEMA, SchemaBoundError, SchemaMeter
from replan.ports.run_context import here
from replan.ports.tool_provider import (
    SelectiveToolProvider,
    ToolDefinition,
    ToolProvider,
    is_granted,
    server_in,
)
from replan.prompts.sections import within_budget
from replan.specialists.effects import with_hidden_key

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 4_000
_LONGEST_PROBLEM = 500
_MOST_TOOLS = 2_000


@dataclass(frozen=True)
class GrantedTools:
    """The server tools that one loop may use, and which of them a person must approve."""

    servers: Mapping[str, ToolProvider]
    grants: Sequence[str]
    approve: Sequence[str]

    async def now(self) -> tuple[list[BaseTool], frozenset[str]]:
        """Return the tools that the servers have now, and the names of those to be approved.

        A tool that cannot be used is left out, with a warning; where it is granted by its name, it
        is an error.
        """
        listed: dict[str, ToolDefinition] = {}
        for server in dict.fromkeys(map(server_in, self.grants)):
            listed |= await self._listed(server)
        for grant in _missing(self.grants, listed):
            raise _unknown(grant, await self._names(server_in(grant)))
        for grant in _missing(self.approve, listed):
            raise _unknown(grant, list(listed))
        # In a thread: schemas come from outside, and there may be thousands of them.
        tools, problems = await asyncio.to_thread(self._made, listed)
        for path, problem in problems.items():
            if path in self.grants or not any(server_in(path) == server_in(tool) for tool in tools):
                raise ToolServerError(server_in(path), problem)
        self._warn(problems)
        asked = frozenset(
            tool.name for path, tool in tools.items() if is_granted(path, self.approve)
        )
        return list(tools.values()), asked

    async def _listed(self, server: str) -> dict[str, ToolDefinition]:
        """The tools of a server that are granted, by their paths."""
        provider = self.servers[server]
        grants = [grant for grant in self.grants if server_in(grant) == server]
        if isinstance(provider, SelectiveToolProvider):
            tools = await provider.find_tools([grant.partition("/")[2] for grant in grants])
        else:
            tools = await provider.list_tools()
        paths = {f"{server}/{tool.name}": tool for tool in tools}
        granted = {path: tool for path, tool in paths.items() if is_granted(path, grants)}
        if len(granted) > _MOST_TOOLS:
            problem = f"{len(granted):,} of its tools are granted; at most {_MOST_TOOLS:,} can be"
            raise ToolServerError(server, problem)
        return granted

    async def _names(self, server: str) -> list[str]:
        """The paths of all tools of a server, to say what it has; none if they are too many."""
        try:
            return [f"{server}/{tool.name}" for tool in await self.servers[server].list_tools()]
        except ToolServerError:
            return []

    def _made(
        self, listed: Mapping[str, ToolDefinition]
    ) -> tuple[dict[str, BaseTool], dict[str, str]]:
        """The tools, and of those that cannot be used, why."""
        meter, tools, problems = SchemaMeter(), dict[str, BaseTool](), dict[str, str]()
        for path, tool in listed.items():
            try:
                tools[path] = _tool_of(self.servers[server_in(path)], path, tool, meter)
            except Exception as error:  # noqa: BLE001 - whatever a foreign schema leads to
                problem = f"the schema of its tool {tool.name} cannot be used: {error}"
                problems[path] = within_budget(problem, _LONGEST_PROBLEM)
        return tools, problems

    def _warn(self, problems: Mapping[str, str]) -> None:
        for server in dict.fromkeys(map(server_in, problems)):
            own_problems = [
                problem for path, problem in problems.items() if server_in(path) == server
            ]
            more = f"; and {len(own_problems) - 1:,} more" if len(own_problems) > 1 else ""
            here().warn(f"Tools of the tool server {server} are left out: {own_problems[0]}{more}.")


def _tool_of(
    provider: ToolProvider, path: str, tool: ToolDefinition, meter: SchemaMeter
) -> BaseTool:
    schema = dict(tool.parameters)
    # Before LangChain writes its references out.
    meter.length(schema)
    made = ServerTool(
        name=shown_name(path),
        description=within_budget(tool.description, _LONGEST_DESCRIPTION),
        args_schema={**schema, "properties": schema.get("properties", {})},
        provider=provider,
        tool=tool.name,
        metadata={} if tool.effects is None else {"effects": tool.effects},
    )
    size = len(json.dumps(convert_to_openai_tool(made)))
    if size > LONGEST_SCHEMA:
        raise SchemaBoundError(
            f"it has {size:,} characters; at most {LONGEST_SCHEMA:,} can be used"
        )
    return with_hidden_key(made)


def shown_name(path: str) -> str:
    """The name of a server's tool for models: `files__read_file`, in the allowed letters."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", path.replace("/", "__", 1))
    if plain == path.replace("/", "__", 1) and len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME - 9]}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def _missing(grants: Sequence[str], listed: Mapping[str, ToolDefinition]) -> list[str]:
    return [grant for grant in grants if not any(is_granted(path, [grant]) for path in listed)]


def _unknown(grant: str, names: Sequence[str]) -> ToolServerError:
    near = get_close_matches(grant, names, 1)
    has = within_budget(
        ", ".join(sorted(path.partition("/")[2] for path in names)), _LONGEST_PROBLEM
    )
    fix = f" Did you mean {near[0]}?" if near else f" It has: {has}." if has else ""
    return ToolServerError(server_in(grant), f"it has no tool {grant}.{fix}")

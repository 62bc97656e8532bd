"""The tools of tool servers that a loop is granted, as tools that a chat model can call.

Which tools a server has is known only once it is asked, and may change. So a grant is a name or a
pattern, `files/read_file` or `git/*`, and is looked up whenever a loop begins.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from replan.errors import ToolServerError
from replan.langgraph_inside.tool_internals import ServerTool
from replan.ports.tool_provider import ToolDefinition, ToolProvider, server_in
from replan.prompts.sections import within_budget
from replan.specialists.effects import with_hidden_key

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 4_000
_LONGEST_SCHEMA = 50_000
_LONGEST_PROBLEM = 500


@dataclass(frozen=True)
class GrantedTools:
    """The server tools that one loop may use, and which of them a person must approve."""

    servers: Mapping[str, ToolProvider]
    grants: Sequence[str]
    approve: Sequence[str]

    async def now(self) -> tuple[list[BaseTool], frozenset[str]]:
        """Return the tools that the servers have now, and the names of those to be approved."""
        found: dict[str, BaseTool] = {}
        for server in dict.fromkeys(map(server_in, self.grants)):
            known = {f"{server}/{tool.name}": tool for tool in await self._listed(server)}
            for path in dict.fromkeys(
                p for g in self._grants_of(server) for p in _matching(g, known)
            ):
                found[path] = self._tool_of(server, path, known[path])
        for pattern in self.approve:
            _matching(pattern, found)
        asked = {path for pattern in self.approve for path in found if fnmatchcase(path, pattern)}
        return list(found.values()), frozenset(found[path].name for path in asked)

    def _grants_of(self, server: str) -> list[str]:
        return [grant for grant in self.grants if server_in(grant) == server]

    async def _listed(self, server: str) -> Sequence[ToolDefinition]:
        return await self.servers[server].list_tools()

    def _tool_of(self, server: str, path: str, tool: ToolDefinition) -> BaseTool:
        schema = dict(tool.parameters)
        made = ServerTool(
            name=shown_name(path),
            description=within_budget(tool.description, _LONGEST_DESCRIPTION),
            args_schema={**schema, "properties": schema.get("properties", {})},
            provider=self.servers[server],
            tool=tool.name,
            metadata={} if tool.effects is None else {"effects": tool.effects},
        )
        try:
            size = len(json.dumps(convert_to_openai_tool(made)))
            made = with_hidden_key(made)
        except Exception as error:
            problem = f"the schema of its tool {tool.name} cannot be used: {error}"
            raise ToolServerError(server, within_budget(problem, _LONGEST_PROBLEM)) from error
        if size > _LONGEST_SCHEMA:
            problem = f"the schema of its tool {tool.name} has {size} characters"
            raise ToolServerError(server, f"{problem}; at most {_LONGEST_SCHEMA} can be used")
        return made


def shown_name(path: str) -> str:
    """The name of a server's tool for models: `files__read_file`, in the allowed letters."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", path.replace("/", "__", 1))
    if plain == path.replace("/", "__", 1) and len(plain) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME - 9]}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def _matching(grant: str, known: Mapping[str, object]) -> list[str]:
    """The tools that a grant names; raises if there is none."""
    fitting = [path for path in known if path == grant or fnmatchcase(path, grant)]
    if fitting:
        return fitting
    server = server_in(grant)
    near = get_close_matches(grant, known, 1)
    has = ", ".join(sorted(path.partition("/")[2] for path in known)) or "none"
    fix = f"Did you mean {near[0]}?" if near else f"It has: {within_budget(has, _LONGEST_PROBLEM)}."
    raise ToolServerError(server, f"it has no tool {grant}. {fix}")

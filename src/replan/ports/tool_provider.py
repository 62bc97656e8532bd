"""The source of tools that are not functions of the team: usually a server."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol, runtime_checkable

from pydantic import Field

from replan.base.declared.part import Effects
from replan.base.values import Value

SERVER_NAME = r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*"
"""The name of a tool server: models see its tools as `name__tool`, which must be read one way."""

_GRANT = re.compile(rf"({SERVER_NAME})/\S+")


def server_in(grant: object) -> str:
    """The server in a grant such as `files/read_file` or `git/*`; empty if it is not a grant."""
    match = _GRANT.fullmatch(grant) if isinstance(grant, str) else None
    return match[1] if match else ""


def is_granted(name: str, grants: Iterable[str]) -> bool:
    """Whether one of the grants, names and patterns, has this name."""
    return any(name == grant or fnmatchcase(name, grant) for grant in grants)


class ToolDefinition(Value):
    """A tool as its provider describes it.

    Attributes:
        name: Its name at the provider.
        description: What models are told about it.
        parameters: The JSON schema of its arguments, an object.
        effects: What a second call would do outside; None: undeclared, so it counts as `unsafe`
            unless the specialist declares otherwise.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = Field(default_factory=lambda: {"type": "object"})
    effects: Effects | None = None


@runtime_checkable
class ToolProvider(Protocol):
    """Lists tools and executes them; used from any event loop.

    A provider with connections may have `async def aclose()`, which closes those of the running
    loop; they are opened again when needed.
    """

    async def list_tools(self) -> Sequence[ToolDefinition]:
        """Return the current tools.

        Raises:
            replan.errors.ToolServerError: They cannot be listed.
        """
        ...

    async def get_tool(self, name: str) -> ToolDefinition:
        """Return one tool.

        Raises:
            replan.errors.ToolServerError: No tool has this name.
        """
        ...

    async def execute(self, name: str, arguments: Mapping[str, Any]) -> str | list[dict[str, Any]]:
        """Call a tool, and return its result: text, or LangChain's blocks of content.

        It may ask a person (`ask_user`): it is called again when there is an answer.

        Raises:
            replan.errors.ToolServerError: The call failed.
            replan.errors.ToolCallLostError: The call was sent, and its outcome is unknown.
        """
        ...


async def close_connections(providers: Iterable[ToolProvider]) -> None:
    """Close the connections that providers have in the running loop."""
    for provider in providers:
        close = getattr(provider, "aclose", None)
        if close is not None:
            await close()


@runtime_checkable
class SelectiveToolProvider(ToolProvider, Protocol):
    """A provider that can list some of its tools, where all of them are too many."""

    async def find_tools(self, grants: Sequence[str]) -> Sequence[ToolDefinition]:
        """Return the current tools with these names, or with names that fit these patterns.

        Raises:
            replan.errors.ToolServerError: They cannot be listed.
        """
        ...

"""A server whose tools specialists may be granted: an MCP server, or your own provider."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema, WrapValidator
from pydantic_core import InitErrorDetails

from replan.base.declared.part import Part, Row, Surroundings, field_error, name_like, rule_error
from replan.base.errors import ConfigurationError, Mistake
from replan.base.secrets.sources import holds_secret, learn_values
from replan.base.values import fields_in
from replan.ports.tool_provider import SERVER_NAME, ToolProvider
from replan.team.fields.texts import ServerUrl, VariableName

if TYPE_CHECKING:
    from replan.specialists.tool_servers.http import Way

_OF_PROGRAM = ("args", "env", "env_from", "folder")
_OF_ADDRESS = ("headers", "headers_from", "token_env")
_MISSING = 'Install it: pip install "replan[mcp]".'


def _folder(value: object, info: ValidationInfo) -> object:
    """Take a folder; in a file it is relative to the file, whose own folder is the usual one."""
    around = cast("Surroundings | None", info.context)
    if value is not None and not isinstance(value, str | Path):
        raise field_error("wrong_type", "This must be text.", "Write the name of a folder.")
    if around is None:
        return None if value is None else Path(value)
    folder = around.folder / (value or "")
    if not folder.is_dir():
        fix = "Create it, or name another; it is relative to the team file."
        raise field_error("no_folder", f"There is no folder '{folder}'.", fix)
    return folder


if TYPE_CHECKING:
    _Folder = Path | str | None
else:
    _Folder = Annotated[Any, PlainValidator(_folder), WithJsonSchema({"type": "string"})]


class ToolServer(Part):
    """An MCP server: a program that is started, or an address; connected when first needed.

    Attributes:
        command: The program to start; it speaks over its standard streams.
        args: The arguments of the program.
        env: Environment variables for the program. It inherits only a few variables of this
            process, such as PATH and HOME.
        env_from: Names of variables of this process to pass on, such as those of tokens.
        folder: The working folder of the program; in a team file relative to the file, and by
            default the folder of the file.
        url: The address of a server that speaks streamable HTTP.
        headers: Additional headers of the requests.
        headers_from: For a header, the name of the environment variable that holds its value.
        token_env: The name of the environment variable that holds the token, never the token; it
            is sent as a bearer token.
        timeout: Seconds for one call, and for its start.
        trusted: Whether to believe what the server says about its tools: that a tool only reads, or
            can be repeated. Otherwise each call counts as unsafe.
    """

    command: str | None = Field(default=None, min_length=1, examples=["uvx"])
    args: Row[str] = Field(default=(), examples=[["mcp-server-git"]])
    env: Mapping[str, str] = Field(default_factory=dict[str, str])
    env_from: Row[VariableName] = Field(default=(), examples=[["GITHUB_TOKEN"]])
    folder: _Folder = Field(default=None, validate_default=True)
    url: ServerUrl | None = Field(default=None, examples=["https://tools.example.com/mcp"])
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    headers_from: Mapping[str, VariableName] = Field(default_factory=dict[str, str])
    token_env: VariableName | None = Field(default=None, examples=["TOOLS_TOKEN"])
    timeout: float = Field(default=60, gt=0, allow_inf_nan=False)
    trusted: bool = False

    @classmethod
    def broken_rules(cls, fields: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """It is a program or an address, and contains no secret."""
        ways = [name for name in ("command", "url") if name in fields]
        if len(ways) != 1 and fields.keys() <= cls.model_fields.keys():
            reason = "It has two ways to be reached." if ways else "It has no way to be reached."
            yield rule_error((), None, "no_way", reason, "Give exactly one of command, url.")
            return
        for name in _OF_ADDRESS if ways == ["command"] else _OF_PROGRAM:
            if fields.get(name):
                reason = f"A server with {ways[0]} does not use this." if ways else "It is unused."
                yield rule_error((name,), fields[name], "unused_field", reason, "Leave it out.")
        for field, instead in (("env", "env_from"), ("headers", "headers_from")):
            for name in fields_in(fields.get(field)):
                if holds_secret(str(name)):
                    reason = "A team must not contain a key."
                    fix = f"Put it into an environment variable and name that under {instead}."
                    yield rule_error((field, name), None, "literal_secret", reason, fix)

    def built(self, name: str, environment: Mapping[str, str]) -> ToolProvider:
        """Build a client that connects when it is needed.

        Raises:
            ConfigurationError: A variable is not set, or the client is not installed.
        """
        location = f"tool_servers.{name}"
        if find_spec("mcp") is None:
            problem = "tools of MCP servers need the package mcp"
            raise ConfigurationError(location, self.command or self.url, problem, _MISSING)
        from replan.specialists.tool_servers.server import McpServer  # noqa: PLC0415 - few teams have some

        way = self._connection_of(location, environment)
        return McpServer(name, way, seconds=self.timeout, is_trusted=self.trusted)

    def _connection_of(self, location: str, environment: Mapping[str, str]) -> "Way":
        from replan.specialists.tool_servers.http import Address, Program  # noqa: PLC0415

        def valued(field: str, name: str) -> str:
            value = environment.get(name)
            if not value:
                problem = f"the environment variable {name} is not set"
                fix = "Set it, or name another variable."
                raise ConfigurationError(f"{location}.{field}", name, problem, fix, "missing_key")
            learn_values([value])
            return value

        if self.command is not None:
            handed = {name: valued("env_from", name) for name in self.env_from}
            env = {**self.env, **handed}
            return Program(self.command, tuple(self.args), env, cast("Path | None", self.folder))
        named = {
            header: valued(f"headers_from.{header}", name)
            for header, name in self.headers_from.items()
        }
        if self.token_env is not None:
            named["Authorization"] = f"Bearer {valued('token_env', self.token_env)}"
        return Address(cast("str", self.url), {**self.headers, **named})


def _server(value: object, handler: Any) -> object:
    if isinstance(value, ToolProvider) and not isinstance(value, type):
        return value
    if not isinstance(value, ToolServer | Mapping):
        fix = "Give a ToolServer, or an object with list_tools, get_tool and execute."
        raise field_error("wrong_type", "This is not a tool server.", fix)
    return handler(value)


_PROBLEM = "This cannot be the name of a tool server."
_FIX = "Use letters and digits, joined by single '_' or '-'."
ServerName = Annotated[str, PlainValidator(name_like(SERVER_NAME, _PROBLEM, _FIX))]
"""What a team calls a tool server."""

if TYPE_CHECKING:
    AnyToolServer = ToolServer | ToolProvider
else:
    AnyToolServer = Annotated[ToolServer, WrapValidator(_server)]


def build_servers(
    servers: Mapping[str, "AnyToolServer"], environment: Mapping[str, str]
) -> tuple[dict[str, ToolProvider], list[Mistake]]:
    """Build the tool servers of a team; what is wrong with some is returned with them."""
    built: dict[str, ToolProvider] = {}
    mistakes: list[Mistake] = []
    for name, server in servers.items():
        try:
            built[name] = (
                server.built(name, environment) if isinstance(server, ToolServer) else server
            )
        except ConfigurationError as error:
            mistakes += error.mistakes
    return built, mistakes

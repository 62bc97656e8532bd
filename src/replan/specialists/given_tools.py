"""Turns the values of `tools` into tools that a chat model can call."""

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast, get_args

from langchain_core.tools import BaseTool, StructuredTool, tool as as_tool

from replan.base.declared.part import Effects
from replan.base.errors import ConfigurationError
from replan.base.langgraph_inside.langchain import can_call_tools
from replan.base.texts.schema_size import SchemaBoundError, SchemaMeter
from replan.models.chat import Chat
from replan.models.streams import ToolCallChecker, Toolset, holds_tool_call
from replan.ports.tool_provider import ToolProvider, server_in
from replan.specialists.effects import with_hidden_key
from replan.specialists.fact_tools import fact_tools

_MISSING = 'Install them: pip install "replan[tools]".'


def chat_with_tools(  # noqa: PLR0913 - what a loop can be told
    location: str,
    chat: Chat,
    tools: Sequence[Any],
    *,
    max_rounds: int,
    servers: Mapping[str, ToolProvider],
    checker: ToolCallChecker = holds_tool_call,
    seconds: float | None = None,
    effects: Effects = "unsafe",
    approve: Sequence[str] = (),
    remembers: bool = False,
) -> Chat:
    """Give tools to a model; without tools, return the model unchanged."""
    if not tools and not remembers:
        return chat
    for each in chat.chain:
        if not can_call_tools(each.model):
            name = type(each.model).__name__
            fix = "Take a chat model that can, or leave the tools out."
            raise ConfigurationError(location, name, "this chat model cannot call tools", fix)
    try:
        # LangChain's agent is an extra, and slow to import.
        from replan.specialists.granted_tools import GrantedTools  # noqa: PLC0415
        from replan.specialists.tool_loop import ToolLoop  # noqa: PLC0415
    except ImportError as error:
        if (error.name or "").split(".")[0] != "langchain":
            raise
        problem = "tools need the package langchain"
        given = (
            (location, len(tools))
            if tools
            else (f"{location.removesuffix('tools')}remembers", True)
        )
        raise ConfigurationError(*given, problem, _MISSING) from error
    own_tools = _tools_of(location, [one for one in tools if not server_in(one)])
    if remembers:
        own_tools = _with_fact_tools(location, own_tools)
    toolset = Toolset(own_tools, checker)
    names = [tool.name for tool in toolset.tools if isinstance(tool, BaseTool)]
    _check_approved(location, approve, names)
    return ToolLoop(
        chat,
        toolset,
        max_rounds=max_rounds,
        seconds=seconds,
        effects=effects,
        approve=frozenset(approve),
        granted=GrantedTools(
            servers,
            grants=[one for one in tools if server_in(one)],
            approve=[name for name in approve if server_in(name)],
        ),
    )


def _check_approved(location: str, approve: Sequence[str], names: Sequence[str]) -> None:
    for name in approve:
        if name not in names and not server_in(name):
            fix = f"Use one of: {', '.join(names)}."
            field = f"{location.removesuffix('tools')}approve"
            raise ConfigurationError(field, name, "it has no tool with this name", fix)


def _tools_of(location: str, entries: Sequence[Any]) -> list[BaseTool | dict[str, Any]]:
    made: dict[str, BaseTool | dict[str, Any]] = {}
    for index, one in enumerate(entries):
        field = f"{location}[{index}]"
        tool = _tool_of(field, one)
        name = tool.name if isinstance(tool, BaseTool) else str(tool)
        if name in made:
            fix = "Give each tool its own name."
            raise ConfigurationError(field, name, "another tool has this name", fix)
        made[name] = tool
    return list(made.values())


def _with_fact_tools(
    location: str, own_tools: Sequence[BaseTool | dict[str, Any]]
) -> list[BaseTool | dict[str, Any]]:
    tools = fact_tools()
    names = {tool.name for tool in tools}
    for name in {one.name for one in own_tools if isinstance(one, BaseTool)} & names:
        field, problem = (
            f"{location.removesuffix('tools')}remembers",
            "one of its tools has this name",
        )
        raise ConfigurationError(field, name, problem, "Give the tool another name.")
    return [*own_tools, *map(with_hidden_key, tools)]


def _tool_of(field: str, entry: Any) -> BaseTool | dict[str, Any]:
    if isinstance(entry, dict):
        return cast("dict[str, Any]", entry)
    fix = "Give a function with a docstring and annotated parameters, or a LangChain tool."
    if not isinstance(entry, BaseTool) and not callable(entry):
        raise ConfigurationError(field, entry, "this is not a tool", fix)
    try:
        tool = entry if isinstance(entry, BaseTool) else as_tool(entry)
    except Exception as error:
        raise ConfigurationError(field, entry, f"this is not a tool: {error}", fix) from error
    _check_schema(field, tool)
    declared = (tool.metadata or {}).get("effects")
    if declared not in (None, *get_args(Effects)):
        fix = f"Use one of: {', '.join(get_args(Effects))}."
        raise ConfigurationError(f"{field}.metadata.effects", declared, "it is unknown", fix)
    if isinstance(tool, StructuredTool) and tool.coroutine is not None:
        tool = tool.model_copy(update={"coroutine": _without_exit(tool.coroutine)})
    return with_hidden_key(tool)


def _check_schema(field: str, tool: BaseTool) -> None:
    # As a mapping it may come from a server, by another client than ours.
    if not isinstance(tool.args_schema, dict):
        return
    try:
        SchemaMeter().length(tool.args_schema)
    except SchemaBoundError as error:
        fix = "Give the tool a shorter schema."
        raise ConfigurationError(f"{field}.args_schema", tool.name, str(error), fix) from error


def _without_exit(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Keep tools from ending the process: the exit of a task would stop the event loop."""

    @functools.wraps(function)
    async def work(*arguments: Any, **named: Any) -> Any:
        try:
            return await function(*arguments, **named)
        except SystemExit as error:
            raise RuntimeError(f"SystemExit: {error.code}") from error

    return work

"""The effects of a specialist's work and of a tool's call if they were repeated."""

from typing import Annotated, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import BaseModel, create_model

from replan.base.declared.part import Effects
from replan.base.langgraph_inside.langchain import with_schema
from replan.base.user_code import KEY, parameters_of

_HIDDEN = "replan_hidden_key"


def effects_of_work(work: object) -> Effects:
    """The effects of a runnable, a compiled graph or a function that declares none."""
    if isinstance(work, BaseChatModel):
        return "pure"
    return "keyed" if KEY in parameters_of(work) else "unsafe"


def tool_effects(tool: BaseTool | None, otherwise: Effects) -> Effects:
    """The effects of a tool: from its metadata, from its key parameter, else the given ones."""
    # A name that the model made up calls nothing.
    if tool is None:
        return "pure"
    declared = (tool.metadata or {}).get("effects")
    if declared is not None:
        return cast("Effects", declared)
    return "keyed" if takes_key(tool) else otherwise


def takes_key(tool: BaseTool) -> bool:
    schema = tool.args_schema
    if isinstance(schema, dict):
        return KEY in schema.get("properties", {}) or _HIDDEN in (tool.metadata or {})
    return KEY in _whole_schema(tool).model_fields


def with_hidden_key(tool: BaseTool) -> BaseTool:
    """Hide a tool's parameter for the idempotency key: it is not the model's to choose."""
    if not takes_key(tool):
        return tool
    return with_schema(tool, _without_key(tool), {**(tool.metadata or {}), _HIDDEN: True})


def _without_key(tool: BaseTool) -> Any:
    schema = tool.args_schema
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        shown = {name: value for name, value in properties.items() if name != KEY}
        required = [name for name in schema.get("required", ()) if name != KEY]
        return {**schema, "properties": shown, "required": required}
    whole = _whole_schema(tool)
    field = (Annotated[str, InjectedToolArg()], ...)
    return create_model(whole.__name__, __base__=whole, **cast("Any", {KEY: field}))


def _whole_schema(tool: BaseTool) -> type[BaseModel]:
    # LangChain still names the models of pydantic 1 in its types.
    return cast("type[BaseModel]", tool.get_input_schema())

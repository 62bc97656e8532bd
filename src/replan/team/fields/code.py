"""Fields that are code of the user: functions, tools, types, pipelines, hooks, specialists."""

from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, cast

from pydantic import PlainValidator, ValidationError, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from replan.base.declared.part import Part, Surroundings, field_error, rule_error
from replan.base.declared.references import name_in
from replan.ports.tool_provider import server_in
from replan.state.team import SpecialistCard
from replan.team.fields.given import is_left_alone, resolve, surroundings_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

    from replan.ports.specialist_port import SpecialistPort
    from replan.prompts.replies.shape import Shape
    from replan.state.results import ExecutionContext

_REFERENCE = {"type": "string", "pattern": r"^[^\s:]+:[^\s:]+$", "examples": ["team_tools:search"]}
_GRANT = {"type": "string", "pattern": r"^[A-Za-z0-9_-]+/\S+$", "examples": ["git/*"]}
_TOOL = {"anyOf": [_REFERENCE, _GRANT, {"type": "object", "required": ["type"]}]}


def function(value: object, info: ValidationInfo) -> object:
    resolved = resolve(value, surroundings_of(info))
    if not callable(resolved) or hasattr(resolved, "ainvoke"):
        raise _not_callable(resolved, "Give a function.")
    return resolved


def work(value: object, info: ValidationInfo) -> object:
    """Take a function or a runnable, or in a file its name."""
    resolved = resolve(value, surroundings_of(info))
    if not callable(resolved) and not callable(getattr(resolved, "ainvoke", None)):
        raise _not_callable(resolved, "Give a function, a runnable or a graph.")
    return resolved


def tool(value: object, info: ValidationInfo) -> object:
    """Take a function or a LangChain tool, a tool of a server, or a provider's own tool."""
    if server_in(value):
        return value
    # A mapping such as {type: web_search}.
    resolved = (
        cast("object", value) if isinstance(value, dict) else resolve(value, surroundings_of(info))
    )
    if (
        not isinstance(resolved, dict)
        and not callable(resolved)
        and not hasattr(resolved, "ainvoke")
    ):
        raise _not_callable(resolved, "Give a function or a LangChain tool.")
    return cast("object", resolved)


def output_type(value: object, info: ValidationInfo) -> object:
    """Take a type that pydantic knows a JSON schema of, or in a file its name."""
    from replan.prompts.replies.shape import Shape  # noqa: PLC0415 - few teams have some

    around = surroundings_of(info)
    resolved = resolve(value, around)
    if is_left_alone(value, around):
        return resolved
    try:
        Shape(resolved)
    except TypeError as error:
        reason = f"pydantic cannot make a JSON schema for it: {error}"
        fix = "Give a pydantic model, a dataclass, a TypedDict or a type such as list[Model]."
        raise field_error("no_type", reason, fix) from error
    return resolved


def pipeline(value: object, info: ValidationInfo) -> object:
    """Take the class of an agent of a main thread, or in a file its name."""
    from replan.pipelines.phases.agent_and_handler import (  # noqa: PLC0415 - few teams have some
        BaseAgent,
        StateHandler,
    )

    class NotImported(BaseAgent):
        """A placeholder for something that is not imported."""

        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {"not_imported": StateHandler(phase="not_imported")}

    around = surroundings_of(info)
    resolved = resolve(value, around)
    if is_left_alone(value, around):
        return NotImported
    if not (isinstance(resolved, type) and issubclass(resolved, BaseAgent)):
        fix = "Give a subclass of BaseAgent: the class, not an instance."
        raise field_error("no_pipeline", "This is not the class of a pipeline's main agent.", fix)
    return resolved


def callback(value: object, info: ValidationInfo) -> object:
    from replan.log.events import callbacks  # noqa: PLC0415 - few teams have some

    resolved = resolve(value, surroundings_of(info))
    if isinstance(resolved, type):
        fix = f"Give an instance: {resolved.__name__}()."
        raise field_error("no_callback", "This is a class.", fix)
    wrong = [
        rule_error((name,), resolved, "no_hook", "There is no such hook.", f"Did you mean {hook}?")
        for name, hook in callbacks.misspelt_hooks(resolved).items()
    ]
    if wrong:
        raise ValidationError.from_exception_data("callback", wrong)
    if not callbacks.hooks_of(resolved) and not isinstance(resolved, callbacks.MultiAgentCallback):
        fix = (
            f"Give an object with some of: "
            f"{', '.join((*callbacks.HOOKS.values(), callbacks.ANY_EVENT))}. "
            "LangChain's callbacks go into the configuration of a run."
        )
        raise field_error("no_callback", "It has none of the hooks.", fix)
    return resolved


def ready(value: object, info: ValidationInfo) -> object:
    """Take an object with a card and a way to run, or in a file its name."""
    return _ready(value, surroundings_of(info))


def card_of(value: object, around: Surroundings | None) -> SpecialistCard | None:
    """The card of a ready specialist; None if it is not one."""
    with suppress(PydanticCustomError):
        return cast("SpecialistPort", _ready(value, around)).card
    return None


def _ready(value: object, around: Surroundings | None) -> object:
    resolved: Any = resolve(value, around)
    if isinstance(getattr(resolved, "card", None), SpecialistCard) and callable(resolved.run):
        return resolved
    if is_left_alone(value, around):
        reference = str(value)
        card = SpecialistCard(name=name_in(reference), intended_use=reference)
        return SimpleNamespace(card=card, run=resolved)
    reason = f"This is a {type(resolved).__name__}, not a specialist."
    raise field_error("no_specialist", reason, "Name an object with a card and a way to run.")


def _not_callable(found: object, fix: str) -> Exception:
    return field_error(
        "no_function", f"It is of type {type(found).__name__}, and cannot be called.", fix
    )


# A type checker sees what Python gives; at run time no framework is imported for it.
if TYPE_CHECKING:
    Function = Callable[..., Any]
    StepFunction = Callable[Concatenate[ExecutionContext, ...], Any]
    InputProcessor = Callable[[ExecutionContext], Any]
    OutputProcessor = Callable[[BaseMessage], Any]
    Work = Any
    Tool = BaseTool | Callable[..., Any] | dict[str, Any] | str
    Callback = object
    OutputType = Any
    PipelineAgent = Any
    ReadySpecialist = SpecialistPort
else:
    Function = Annotated[Any, PlainValidator(function), WithJsonSchema(_REFERENCE)]
    InputProcessor = OutputProcessor = StepFunction = Function
    Work = Annotated[Any, PlainValidator(work), WithJsonSchema(_REFERENCE)]
    Tool = Annotated[Any, PlainValidator(tool), WithJsonSchema(_TOOL)]
    OutputType = Annotated[Any, PlainValidator(output_type), WithJsonSchema(_REFERENCE)]
    PipelineAgent = Annotated[Any, PlainValidator(pipeline), WithJsonSchema(_REFERENCE)]
    Callback = Annotated[Any, PlainValidator(callback), WithJsonSchema(_REFERENCE)]
    ReadySpecialist = Annotated[Any, PlainValidator(ready), WithJsonSchema(_REFERENCE)]


class Typed(Part):
    """The host or a specialist, whose answers or results have a type.

    Attributes:
        output_type: The type that they are of, if they are of one.
    """

    output_type: OutputType | None = None

    @property
    def shape(self) -> "Shape | None":
        """The type as what it is asked for and read with."""
        from replan.prompts.replies.shape import Shape  # noqa: PLC0415 - a team is light

        return None if self.output_type is None else Shape(self.output_type)

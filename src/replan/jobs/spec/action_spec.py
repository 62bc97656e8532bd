"""What a job can do: action types with their parameters; four are built in."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from replan.base.declared.part import Effects, Part, Row
from replan.jobs.spec.slot import Function

ParameterType = Literal["string", "integer", "number", "boolean", "array", "object", "any"]
"""What a parameter of an action holds."""

Category = Literal["user_interaction", "api_call", "data_processing", "custom"]

_KINDS: dict[ParameterType, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


class ParameterSpec(Part):
    """A parameter of an action.

    Attributes:
        name: The name of the parameter.
        type: string, integer, number, boolean, array, object or any.
        required: Whether the action needs it.
    """

    name: str = Field(kw_only=False, min_length=1)
    type: ParameterType = Field(default="any", kw_only=False)
    required: bool = True

    def takes(self, value: object) -> bool:
        """Whether a value is of its type."""
        if self.type == "any":
            return True
        is_flag = isinstance(value, bool)
        return isinstance(value, _KINDS[self.type]) and is_flag == (self.type == "boolean")


class ActionSpec(Part):
    """A type of action (`ActionType` of the design that jobs come from).

    Attributes:
        type: The name by which commands refer to it.
        description: What it does.
        parameters: Its parameters.
        run: A function, sync or async, of the parameters by name. With a parameter idempotency_key
            it receives the key. Its result is JSON; an exception is a failure. In a file
            module:function.
        effects: What a repetition changes outside: nothing (pure), nothing because the function
            passes on the idempotency key (keyed), or the effect happens again (unsafe).
        category: user_interaction, api_call, data_processing or custom.
    """

    type: str = Field(kw_only=False, min_length=1)
    description: str = ""
    parameters: Row[ParameterSpec] = ()
    run: Function | None = None
    effects: Effects = "unsafe"
    category: Category = "custom"

    def problems(self, arguments: Mapping[str, Any]) -> list[str]:
        """What is wrong with the parameters of a call, all of it."""
        parameters_by_name = {parameter.name: parameter for parameter in self.parameters}
        found = [
            f"the parameter '{name}' is unknown"
            for name in arguments
            if name not in parameters_by_name
        ]
        for name, parameter in parameters_by_name.items():
            if arguments.get(name) is None:
                found += [f"the parameter '{name}' is missing"] if parameter.required else []
            elif not parameter.takes(arguments[name]):
                found.append(f"the parameter '{name}' must be of type {parameter.type}")
        return found


BUILT_IN: tuple[ActionSpec, ...] = (
    ActionSpec(
        "ask_user",
        description="Asks the user for information.",
        category="user_interaction",
        effects="pure",
        parameters=[
            ParameterSpec("question", "string"),
            ParameterSpec("expected_format", "string", required=False),
        ],
    ),
    ActionSpec(
        "call_api",
        description="Calls an API at one of the addresses that the spec names.",
        category="api_call",
        effects="keyed",
        parameters=[
            ParameterSpec("endpoint", "string"),
            ParameterSpec("method", "string"),
            ParameterSpec("params", "object", required=False),
        ],
    ),
    ActionSpec(
        "validate_data",
        description="Checks the format and the validity of data.",
        category="data_processing",
        effects="pure",
        parameters=[ParameterSpec("data", "object"), ParameterSpec("schema", "string")],
    ),
    ActionSpec(
        "extract_info",
        description="Extracts information from messages of the user.",
        category="data_processing",
        effects="pure",
        parameters=[ParameterSpec("messages", "array"), ParameterSpec("target_fields", "array")],
    ),
)
"""The action types that every job has."""

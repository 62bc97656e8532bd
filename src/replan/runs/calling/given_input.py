"""The input of a run, in whatever form it is given: here a text becomes a request."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.types import Command, Overwrite

from replan.base.declared.part import did_you_mean
from replan.base.errors import ConfigurationError, InputError, shown
from replan.base.langgraph_inside.langgraph_channels import overwriting
from replan.runs.calling.compiled import Graph, input_guard_of
from replan.state.channels import conversation
from replan.state.conversation.conversation import client_instructions
from replan.state.enhanced import GraphInput
from replan.state.input_guard import CheckedInput
from replan.state.limits import RunSettings

_FIELDS = tuple(GraphInput.__annotations__)
_LONGEST_ID = 200
_ARGUMENTS = {"settings": "Give it as an argument of its own: settings=RunSettings(...)."}

Input = str | Mapping[str, Any] | Command[Any] | None
"""A request; or `messages` and `plan`; or what continues an interrupted thread."""


def with_request(run_input: Input) -> Mapping[str, Any] | Command[Any] | None:
    """What LangGraph is given; a text is a request of the user.

    Raises:
        InputError: It has a field that no run takes.
    """
    if isinstance(run_input, str):
        return {"messages": [HumanMessage(run_input)]}
    if isinstance(run_input, Mapping):
        check_fields(run_input)
    return run_input


def check_fields(run_input: Mapping[str, Any], left_out: Container[str] = ()) -> None:
    """Refuse fields that no run takes, but for those that are left out knowingly.

    Raises:
        InputError: Names each of them.
    """
    # LangGraph would leave them out in silence: without its plan, a run would do something else.
    unknown = [name for name in run_input if name not in _FIELDS and name not in left_out]
    if unknown:
        known = "Known are: " + ", ".join(f"`{name}`" for name in _FIELDS) + "."
        fixes = [_ARGUMENTS.get(name) or did_you_mean(name, _FIELDS, known) for name in unknown]
        told = (f"`{name}`. {fix}" for name, fix in zip(unknown, fixes, strict=True))
        raise InputError("The input of a run has no field " + "\nIt has no field ".join(told))


def read_settings(given: object) -> RunSettings | None:
    """The settings of a call, which may be given as a mapping.

    Raises:
        UsageError: They are no settings, or a field of them cannot be used.
    """
    if isinstance(given, Mapping):
        return RunSettings(**cast("Mapping[str, Any]", given))
    if given is None or isinstance(given, RunSettings):
        return given
    fix = "Write RunSettings(...), with limits as RunSettings(limits=Limits(...))."
    raise ConfigurationError("settings", given, "these are not the settings of a run", fix)


def checked_run_id(given: object) -> str:
    """The id that a caller gave a run, or empty for a new one.

    Raises:
        InputError: It could not name a run, such as an empty text from a variable that is not set.
    """
    if given is None:
        return ""
    if isinstance(given, str) and given.isprintable() and 0 < len(given.strip()) <= _LONGEST_ID:
        return given
    raise InputError(
        f"The run_id {shown(given)} cannot name a run. Give a text of one line, {_LONGEST_ID} "
        "characters at most, or leave it out for a new one."
    )


def checked_input(graph: Graph, run_input: Mapping[str, Any]) -> CheckedInput:
    """Check an input, once, before anything is reported or stored.

    Raises:
        InputError: It says nothing, or its plan names unknown specialists.
        PlanDocumentError: Its plan has mistakes.
    """
    if isinstance(run_input, CheckedInput):
        return run_input
    input_guard_of(graph).check(run_input)
    return CheckedInput(run_input)


def messages_in(run_input: Mapping[str, Any]) -> Sequence[BaseMessage]:
    """The messages of an input, in whatever form they are."""
    return conversation([], [run_input.get("messages") or []])


def of_client(call_input: Any) -> Any:
    """What a client sends: a system message of its own counts as words of the user."""
    if isinstance(call_input, Command):
        command = cast("Command[Any]", call_input)
        return replace(command, update=of_client(command.update))
    if not isinstance(call_input, Mapping):
        return call_input
    fields = cast("Mapping[str, Any]", call_input)
    if "messages" not in fields:
        return fields
    whole = overwriting(fields["messages"])
    written: Any = fields["messages"] if whole is None else whole.value
    listed = cast("list[Any]", written) if isinstance(written, list) else [written]
    messages = [_message_of_client(message) for message in listed]
    return {**fields, "messages": messages if whole is None else Overwrite(messages)}


def _message_of_client(sent: Any) -> Any:
    try:
        (message,) = convert_to_messages([sent])
    except (ValueError, TypeError, NotImplementedError):
        return sent  # the state refuses it, and says why
    if message.type != "system":
        return sent
    return client_instructions(cast("Any", message.content), message.id)

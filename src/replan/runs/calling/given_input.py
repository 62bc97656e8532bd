"""The input of a run, in whatever form it is given: here a text becomes a request."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.types import Command, Overwrite

from replan.base.langgraph_inside.delta_channel import overwriting
from replan.memory.conversation import client_instructions
from replan.runs.calling.compiled import Graph, input_guard_of
from replan.state.channels import conversation
from replan.state.input_guard import CheckedInput

Input = str | Mapping[str, Any] | Command[Any] | None
"""A request; or `messages` and `plan`; or what continues an interrupted thread."""


def with_request(run_input: Input) -> Mapping[str, Any] | Command[Any] | None:
    """What LangGraph is given; a text is a request of the user."""
    return {"messages": [HumanMessage(run_input)]} if isinstance(run_input, str) else run_input


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

"""Reports the tools that others call: graphs, runnables and functions that are specialists."""

from collections.abc import Callable, Mapping
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langgraph.types import Command

from replan.log.events.calls import CallReporter, ToolOutcome, tool_fields

_EFFECTS = ("pure", "keyed", "unsafe")


class ForeignTools(BaseCallbackHandler):
    """A handler that goes wherever the caller's config goes."""

    # Else LangChain makes a task or a thread of each call.
    run_inline = True
    ignore_llm = ignore_chat_model = ignore_chain = ignore_retriever = True  # type: ignore[assignment] - properties
    ignore_retry = ignore_custom_event = True  # type: ignore[assignment] - properties

    def __init__(self, calls: CallReporter, own: Callable[[], ToolOutcome | None]) -> None:
        # `own` gives the call of a tool that a loop of ours makes, and reports.
        self._calls = calls
        self._own = own
        self._on_way: dict[UUID, Mapping[str, Any]] = {}
        self._is_over = False

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **_: Any,
    ) -> None:
        """Report that a tool is called, unless one of our loops has reported it."""
        name = str((serialized or {}).get("name") or "tool")
        own = self._own()
        if self._is_over or (own is not None and own.claim(self._calls, name)):
            return
        declared = (metadata or {}).get("effects")
        effects = declared if declared in _EFFECTS else self._calls.effects
        arguments = {"input": input_str} if inputs is None else inputs
        about = tool_fields(str(run_id), name, arguments, effects, tool_call_id=tool_call_id)
        self._on_way[run_id] = about
        self._calls.tool_begins(about)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        outcome = ToolOutcome()
        messages = _messages_in(output)
        if messages:
            outcome.answered(messages)
        else:
            outcome.ends("success", str(output))
        self._ends(run_id, outcome)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Report why it gave nothing."""
        outcome = ToolOutcome()
        outcome.broke_off(error)
        self._ends(run_id, outcome)

    def close(self) -> None:
        """Report that what is still on its way was cut off."""
        self._is_over = True
        for call in list(self._on_way):
            self._ends(call, ToolOutcome())

    def _ends(self, call: UUID, outcome: ToolOutcome) -> None:
        about = self._on_way.pop(call, None)
        if about is not None:
            self._calls.tool_ends(about, outcome)


def _messages_in(output: object) -> list[BaseMessage]:
    if isinstance(output, Command):
        update = cast("Command[Any]", output).update
        output = cast("dict[str, Any]", update).get("messages") if isinstance(update, dict) else ()
    items = cast("list[object]", output) if isinstance(output, list) else [output]
    return [item for item in items if isinstance(item, BaseMessage)]

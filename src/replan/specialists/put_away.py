"""Older results of a long loop of tools: put away, and read back by the model that needs them.

What a loop was told grows with each call, and a model's window does not. So where the request would
take most of the window, older results stand in it as references. The loop's record in the log has
them whole; a call and its answer stay together, and the newest results stay as they are.
"""

from collections.abc import Sequence
from typing import Annotated, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from replan.models.spending.scopes import tokens_of_request
from replan.ports.run_context import here

READ_RESULT = "read_result"
"""The tool that gives a result back."""

_SHARE = 0.6  # of the window that a request may take before results are put away
_SHORT = 1_000  # characters of a result that stays: a reference is hardly shorter
_LONGEST_PIECE = 8_000  # characters that one call reads back


class PutAway:
    """The results of one loop that its model sees as references."""

    def __init__(self, model: BaseChatModel, tools: Sequence[object]) -> None:
        """Put results away for a model that says how long its window is."""
        window = (model.profile or {}).get("max_input_tokens")
        # A tool of the team's own is not hidden behind this one.
        is_free = READ_RESULT not in (getattr(tool, "name", tool) for tool in tools)
        self.window: int | None = window if is_free else None
        self._tools = tools
        self._references: dict[int, str] = {}  # by the places of the messages that they stand for
        self._texts: dict[str, str] = {}  # what was put away, by the numbers that the model sees

    @property
    def tool(self) -> BaseTool:
        """The tool that reads a result back."""
        return StructuredTool.from_function(
            coroutine=self._read, name=READ_RESULT, metadata={"effects": "pure"}
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been put away."""
        return not self._texts

    def with_references(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What the model is sent: the oldest results as references, until the rest fits."""
        sent = [*messages]
        if self.window is None:
            return sent
        was_empty = self.is_empty
        excess = tokens_of_request(sent, self._tools) - self.window * _SHARE
        for place in self._old_results(sent):
            message = cast("ToolMessage", sent[place])
            if excess > 0 and place not in self._references:
                self._references[place] = self._reference(message)
            # What was put away once stays so: the beginning of a request is the same each time.
            if place in self._references:
                sent[place] = message.model_copy(update={"content": self._references[place]})
                excess -= tokens_of_request([message]) - tokens_of_request([sent[place]])
        if was_empty and not self.is_empty:
            here().warn(
                f"The tool results of {self._who} would take most of the model's window of "
                f"{self.window:,} tokens: older ones are put away, and it can read them again."
            )
        return sent

    @property
    def _who(self) -> str:
        context = here()
        return "the host" if context.step_id is None else f"step {context.step_id}"

    def _old_results(self, messages: Sequence[BaseMessage]) -> list[int]:
        """The places of long results which the model has seen in an earlier request."""
        replies = [at for at, message in enumerate(messages) if isinstance(message, AIMessage)]
        return [
            at
            for at, message in enumerate(messages[: replies[-1] if replies else 0])
            if isinstance(message, ToolMessage)
            and isinstance(message.content, str)
            and len(message.content) > _SHORT
        ]

    def _reference(self, message: ToolMessage) -> str:
        if message.name == READ_RESULT:
            return f"[This was read, and put away again. Use {READ_RESULT} if you still need it.]"
        text, number = cast("str", message.content), str(len(self._texts) + 1)
        self._texts[number] = text
        return (
            f"[The result of this call, {len(text):,} characters, was put away as result {number}. "
            f"Read it with {READ_RESULT} if you need it.]"
        )

    async def _read(
        self,
        result: Annotated[str, "The number of the result, as its reference says."],
        offset: Annotated[int, "The character to begin at, from 0."] = 0,
    ) -> str:
        """Read a result of an earlier call that was put away."""
        text = self._texts.get(result.strip())
        if text is None:
            return f"There is no result {result}. Put away are: {', '.join(self._texts)}."
        begin = min(max(offset, 0), len(text))
        end = min(begin + self._piece, len(text))
        rest = f" Go on with offset {end}." if end < len(text) else " This is its end."
        return f"[Characters {begin} to {end} of {len(text)}.{rest}]\n{text[begin:end]}"

    @property
    def _piece(self) -> int:
        return max(_SHORT, min(_LONGEST_PIECE, (self.window or 0) // 2))

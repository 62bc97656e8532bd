"""Shows the answer as it is written: as events, and as chunks in LangGraph's `messages` mode."""

from collections.abc import Callable, Mapping

from langchain_core.messages import AIMessage

from replan.events.emitter import Emitter
from replan.events.types import AnswerReset, AnswerToken
from replan.langgraph_inside.callbacks import has_listener
from replan.langgraph_inside.tasks import push_text
from replan.replies.body_stream import BodyStream, Shown

_WRAPPED = ("<", "---", "[", "◁", "```")

Gate = Callable[[Mapping[str, str]], bool]
"""Whether a reply with this front matter carries an answer that may be shown."""


class AnswerStream:
    """Shows the answer of one node; the host's own calls are hidden."""

    def __init__(self, emitter: Emitter, gate: Gate | None, shown: str = "") -> None:
        """Show an answer; without a gate the reply is all answer, without front matter."""
        self._emitter = emitter
        self._gate = gate
        self._shown = shown
        self._restarts = 0
        self._is_pushed = has_listener({})
        self._begin()

    def feed(self, chunk: str) -> None:
        if self._gate is None:
            text = self._held + chunk
            if not self._shown and _may_be_wrapped(text.lstrip()):
                self._held = text
                return
            self._held = ""
            self._show(self._plain.feed(text))
            return
        text = self._body.feed(chunk)
        if text and self._is_open is None:
            # The front matter is complete by now.
            self._is_open = self._gate(self._body.fields or {})
        if text and self._is_open:
            self._show(text)

    def restart(self) -> None:
        """Take back what was shown: the reply was cut off and is requested again."""
        self._begin()
        if self._shown:
            self._shown = ""
            self._restarts += 1
            self._emitter.stream(AnswerReset)

    def finish(self, answer: str) -> AIMessage:
        """Show what is not shown yet, and return the whole answer as a message."""
        if not answer.startswith(self._shown):
            self.restart()
        self._show(answer[len(self._shown) :])
        return AIMessage(answer, id=self._message_id)

    @property
    def _message_id(self) -> str:
        suffix = f"-{self._restarts}" if self._restarts else ""
        return f"{self._emitter.run_id}-answer{suffix}"

    def _begin(self) -> None:
        self._body, self._plain, self._held = BodyStream(), Shown(), ""
        self._is_open: bool | None = None

    def _show(self, text: str) -> None:
        if text:
            self._shown += text
            show(self._emitter, text, self._message_id, is_pushed=self._is_pushed)


def _may_be_wrapped(text: str) -> bool:
    """Whether an answer with this beginning may begin with something that is not shown."""
    return any(text.startswith(mark) or mark.startswith(text) for mark in _WRAPPED)


def show(emitter: Emitter, text: str, message_id: str, *, is_pushed: bool) -> None:
    emitter.stream(AnswerToken, text=text)
    if is_pushed:
        push_text(text, message_id)

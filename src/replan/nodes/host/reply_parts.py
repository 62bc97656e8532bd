"""What is used of a reply as it is written: the answer is shown, steps of a plan are handed on."""

import re
from collections.abc import Callable

from langchain_core.messages import AIMessage

from replan.base.langgraph_inside.callbacks import has_listener
from replan.base.langgraph_inside.tasks import push_text
from replan.log.events.emitter import Emitter
from replan.log.events.types import AnswerReset, AnswerToken
from replan.prompts.replies.body_stream import BodyStream, Gate


class AnswerStream:
    """Shows the answer of one node; the host's own calls are hidden."""

    def __init__(
        self, emitter: Emitter, gate: Gate | None = None, before: AIMessage | None = None
    ) -> None:
        """Show an answer, or change the one before; without a gate the reply is all answer."""
        self._emitter, self._gate = emitter, gate
        self._shown = before.text if before else ""
        self._id = (before and before.id) or f"{emitter.run_id}-answer"
        self._restarts = 0
        self._is_pushed = has_listener({})
        self._body = BodyStream(gate)

    def feed(self, chunk: str) -> None:
        self._show(self._body.feed(chunk))

    def restart(self) -> None:
        """Take back what was shown: the reply was cut off and is requested again."""
        self._body = BodyStream(self._gate)
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
        return f"{self._id}-{self._restarts}" if self._restarts else self._id

    def _show(self, text: str) -> None:
        if text:
            self._shown += text
            self._emitter.stream(AnswerToken, text=text)
            if self._is_pushed:
                push_text(text, self._message_id)


_STEP_BEGINS = re.compile(r"^(?:[-*+]|\d{1,4}[.)])[ \t]+\[", re.MULTILINE)
"""A line of the list of steps: the step before it is complete."""


class PlanStream:
    """Hands on the part of a plan that is complete, each time that another step begins."""

    def __init__(self, gate: Gate | None, take: Callable[[str], None]) -> None:
        """Hear replies whose front matter says that a plan follows; without a gate, all are."""
        self._gate, self._take = gate, take
        self.restart()

    def restart(self) -> None:
        """Hear another reply."""
        self._body = BodyStream(self._gate)
        self._text, self._seen, self._steps = "", 0, 0

    def feed(self, chunk: str) -> None:
        """Take the next piece of the reply."""
        self._text += self._body.feed(chunk)
        begins = [match.start() for match in _STEP_BEGINS.finditer(self._text, self._seen)]
        if not begins:
            return
        self._steps += len(begins)
        self._seen = begins[-1] + 1
        if self._steps > 1:
            self._take(self._text[: begins[-1]])

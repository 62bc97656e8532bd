"""Hears a plan in a reply as it is written: its complete steps are handed on."""

import re
from collections.abc import Callable

from replan.prompts.replies.body_stream import BodyStream, Gate

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

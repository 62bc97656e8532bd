"""One place that tells everybody of events: the stream first, then the callbacks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replan.events.hooks import RunHooks
from replan.events.log import log
from replan.events.masking import without_known
from replan.events.trace import AttemptEnded, Trace, trace_at_work
from replan.events.types import (
    AnswerToken,
    BaseEvent,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistToken,
    TaskCompleted,
    WarningGiven,
)
from replan.events.warnings import warnings_in
from replan.langgraph_inside.tasks import does_nothing
from replan.secrets.known import KNOWN

# What is told most often: of it there is nothing to warn of, and nothing to log.
_OFTEN = (AnswerToken, SpecialistCompleted, SpecialistInvoked, SpecialistToken)


@dataclass(frozen=True)
class Emitter:
    """Tells of the events of one node."""

    write: Callable[[BaseEvent], None]  # LangGraph's stream writer of the node
    hooks: RunHooks  # the hooks of the callbacks, for the run
    run_id: str
    round: int
    keeps_prompts: bool = True  # whether what models are told and what they say is told
    # What the events so far tell that a person may not expect.
    warnings: list[str] = field(default_factory=list[str])
    trace: Trace | None = field(default_factory=trace_at_work.get)

    @property
    def is_heard(self) -> bool:
        """Whether somebody hears of what happens, so that it is worth to be put together."""
        return self.trace is not None or self._is_told

    @property
    def tells_texts(self) -> bool:
        """Whether somebody hears what models are told and say."""
        is_traced = self.trace is not None and self.trace.hears_texts
        return self.keeps_prompts and (is_traced or self._is_told)

    @property
    def _is_told(self) -> bool:
        return self.hooks.hears_events or not does_nothing(self.write)

    async def warn(self, *texts: str) -> None:
        """Tell of what a person may not expect."""
        for text in texts:
            await self.emit(WarningGiven, text=text)

    async def emit(self, kind: type[BaseEvent], /, **fields: Any) -> None:
        """Tell of an event, and wait for its hooks."""
        self.stream(kind, **fields)
        await self.hooks.heard(is_last=kind is TaskCompleted)

    def stream(self, kind: type[BaseEvent], /, **fields: Any) -> None:
        """Tell of an event at once: the stream first, then the callbacks."""
        told = without_known(kind, fields) if KNOWN.forms else fields
        event = kind(run_id=self.run_id, round=self.round, **told)
        if kind not in _OFTEN:
            self.warnings.extend(warnings_in(event))
            log(event)
        if self.trace is not None:
            self.trace.take(event)
        self.write(event)
        self.hooks.tell(event)

    def attempt_ended(self, outcome: str, error: str, names: Mapping[str, Any]) -> None:
        """Tell the trace, if there is one, how an attempt ended without a result."""
        if self.trace is not None:
            told = AttemptEnded(
                run_id=self.run_id, round=self.round, outcome=outcome, error=error, **names
            )
            self.trace.take(told)

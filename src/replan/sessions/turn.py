"""One turn of a session: from the input and the context to the result."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from langgraph.types import Overwrite, StateSnapshot
from pydantic import JsonValue

from replan.calling import Call, Graph, Input, services_in, shapes_of
from replan.errors import UsageError
from replan.events.types import Event, MemoryApplied
from replan.failures import describe
from replan.langgraph_inside.tasks import without_tokens
from replan.memory.conversation import Memory, resolved
from replan.ports.journal import Journal
from replan.runs.asks import asks_in, resumption
from replan.runs.looking import config_of
from replan.runs.portable import PortableRun, adopted, exported
from replan.runs.result import RunResult, result_of
from replan.runs.running import followed
from replan.services import Services
from replan.sessions.carried import RUN, written_run
from replan.sessions.history import message_of, shown_of, whole_summary
from replan.sessions.outcome import metadata_of, response_of, stage_of
from replan.sessions.request import Said, answers_to
from replan.sessions.tool_calls import ToolCalls
from replan.state.context import AgentContext, AgentResult, Message
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.memory import MemoryOptions, Summary

PLAN = "plan"
"""The key of `project_state` that has the document of the newest plan."""

SUMMARY = "memory_summary"
"""The key of `project_state` that has the summary of the history's beginning."""

_BEHIND_ALL = "summarise"


@dataclass(kw_only=True)
class Turn:
    """One call of an agent, with everything that lives as long."""

    graph: Graph
    journal: Journal
    clock: Callable[[], datetime]
    thread_id: str  # a new one
    context: AgentContext
    said: Said
    run: PortableRun | None  # that waits, or was stopped
    summary: Summary | None  # of the beginning of the history
    begins_anew: bool  # whether a new run begins, whatever waits
    run_id: str  # of a new run
    settings: RunSettings | None
    key: bytes | None  # signs runs
    hear: Callable[[Event], None]
    tokens: bool  # whether texts are told piece by piece
    stop: asyncio.Event
    _tools: ToolCalls = field(init=False)
    _problem: str = ""  # why what was said could not be used
    _held_back: int = 0  # messages of the history that the graph is not given

    def __post_init__(self) -> None:
        self._tools = ToolCalls(self.clock)

    async def result(self) -> AgentResult:
        """Take the turn; where the work fails, the result has what was reached.

        Raises:
            UsageError: The turn cannot be taken, and nothing of the session has changed.
        """
        try:
            state, error = await self._state(), ""
        except UsageError:
            raise
        except Exception as failed:
            snapshot = await self._snapshot()
            if not self._has_begun(snapshot):
                raise
            state, error = {**snapshot.values, "outcome": "interrupted"}, describe(failed)
        result = result_of(cast("EnhancedState", state), shapes=shapes_of(self.graph))
        response = "" if error else response_of(result, self._problem)
        return AgentResult(
            success=not error and bool(response or result.outcome == "interrupted"),
            response=response,
            context_updates=self.context.updates_to(await self._after(result, response)),
            metadata=metadata_of(result, self._problem),
            error=error or (None if response else _why_no_answer(result)),
            tool_execution_results=self._tools.over,
        )

    async def _state(self) -> dict[str, Any]:
        """Work until the run rests, and give its state."""
        if self.run is not None:
            await adopted(self.run, self.graph, self.journal, self.thread_id)
        if self.run is None or self.begins_anew:
            return await self._followed(await self._request(), self.settings, self.run_id)
        waits = self.run.waits
        state = await self._followed(None, None if waits else self.settings, self.run.run_id)
        asks = asks_in(state) if waits else ()
        if not asks or self.said.is_empty:
            return state
        try:
            answers = answers_to(self.said, asks)
        except UsageError as error:
            self._problem = str(error)
            return state
        bound = {ask.key: ask.bound(answers[ask.key]) for ask in asks if ask.key in answers}
        return await self._followed(resumption(asks, bound), self.settings, self.run.run_id)

    async def _request(self) -> Input:
        """What a new run begins with."""
        history = self.context.dialogue_history
        messages, summary, self._held_back = shown_of(history, self.summary, self._memories())
        if summary is not None:
            seen = {"messages": messages, "memory_summary": Overwrite(summary)}
            config = config_of(self.thread_id)
            await cast("Any", self.graph).aupdate_state(config, seen, as_node=_BEHIND_ALL)
            messages = []
        content = self.said.content or ""
        return {"messages": [*messages, message_of("user", content, len(history))]}

    def _memories(self) -> list[Memory]:
        """What the host and the specialists see of a conversation."""
        services = cast("Services", services_in(self.graph))
        asked = MemoryOptions() if self.settings is None else self.settings.memory
        return [
            resolved(each, asked) for each in (services.prompts.memory, *services.memory.values())
        ]

    async def _followed(
        self, given: Input, settings: RunSettings | None, run_id: str
    ) -> dict[str, Any]:
        config = config_of(self.thread_id)
        call = Call(given, settings, config if self.tokens else without_tokens(config), run_id)
        return dict(await followed(self.graph, call, self._hear, stop=self.stop))

    def _hear(self, event: Event) -> None:
        self._tools.take(event)
        if isinstance(event, MemoryApplied):
            # Of these the graph does not know.
            name = "summarised" if event.mode == "summary" else "left_out"
            event = event.replace(**{name: getattr(event, name) + self._held_back})
        self.hear(event)

    async def _snapshot(self) -> StateSnapshot:
        return await cast("Any", self.graph).aget_state(config_of(self.thread_id))

    def _has_begun(self, snapshot: StateSnapshot) -> bool:
        """Whether there is a run of this turn to go on with."""
        found = snapshot.values.get("run_id")
        goes_on = self.run is not None and not self.begins_anew
        before = None if self.run is None else self.run.run_id
        return bool(found and snapshot.next) and (goes_on or found != before)

    async def _after(self, result: RunResult, response: str) -> AgentContext:
        """The session after the turn."""
        at, before = self.clock().isoformat(), self.context
        answered = [Message(role="assistant", content=response, timestamp=at)] if response else []
        kept: dict[str, JsonValue] = dict(before.project_state)
        kept.pop(RUN, None)
        if result.outcome in ("waiting", "interrupted"):
            run = await exported(await self._snapshot(), self.journal)
            kept[RUN] = cast("JsonValue", written_run(run, before.session_id, self.key))
        elif result.document:
            kept[PLAN] = result.document
        summary = whole_summary(before.dialogue_history, result.state.get("memory_summary"))
        if summary is not None:
            kept[SUMMARY] = summary.model_dump(mode="json")
        return before.replace(
            dialogue_history=(*before.dialogue_history, *self.said.messages(at), *answered),
            current_stage=stage_of(result),
            project_state=kept,
            tool_execution_history=(*before.tool_execution_history, *self._tools.over),
            session_metadata={**before.session_metadata, "last_updated": at},
        )


def _why_no_answer(result: RunResult) -> str | None:
    if result.outcome == "interrupted":
        return None
    return f"The run {result.run_id} ended without an answer: {result.outcome}."

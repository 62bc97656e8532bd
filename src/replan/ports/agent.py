"""An agent that stores nothing between two calls: its caller keeps the session."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict, Unpack

from replan.log.events.types import Event
from replan.state.limits import RunSettings
from replan.state.session.context import AgentContext, AgentResult

UserInput = str | Sequence[Mapping[str, Any]] | Mapping[str, Any] | None
"""A text; content blocks; answers by the keys of what is asked; None continues stopped work."""


class TurnOptions(TypedDict, total=False):
    """Takes a turn."""

    new_request: bool  # whether the input begins again, and what waits is abandoned
    run_id: str | None  # the name of a new run; by default a new one
    settings: RunSettings | None  # the settings of the run, from the operator of the agent
    labels: Mapping[str, str]  # what a run is found by that is kept in a storage
    stop: asyncio.Event | None  # stops the work: a later call continues it
    on_event: Callable[[Event], None] | None  # receives the events of the turn as they happen


class Agent(Protocol):
    """Processes a session: a function of the input and the context."""

    async def process(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AgentResult:
        """Take one turn of a session; the given session is not changed.

        An error is a result without success; only a cancellation passes through.
        """
        ...

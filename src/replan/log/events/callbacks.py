"""The hooks of a callback: eight of the Eino host multi-agent design, and one for all events."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, cast

from replan.log.events.types import (
    BaseEvent,
    FeedbackGenerated,
    PlanCreated,
    PlanUpdated,
    SpecialistCompleted,
    SpecialistInvoked,
    TaskCompleted,
    ThinkingCompleted,
    ThinkingStarted,
)


class MultiAgentCallback:
    """Hooks for eight moments of a run, each called with its event, and one hook for every event.

    Override the hooks that you need. Plain functions are allowed, too, and run in threads. An
    object that has only some of the methods is also a callback. Each callback receives the events
    in their order, one at a time. If a hook raises an exception or takes longer than
    `hook_timeout`, this is logged and changes nothing.

    Attributes:
        hears_tokens: Whether `on_event` receives tokens, too; if so, replies are streamed.
    """

    hears_tokens: bool = True

    async def on_thinking_start(self, info: ThinkingStarted) -> None:
        """The host begins to judge the request."""

    async def on_thinking_complete(self, info: ThinkingCompleted) -> None:
        """The host has judged the request."""

    async def on_plan_created(self, info: PlanCreated) -> None:
        """There is a plan."""

    async def on_plan_updated(self, info: PlanUpdated) -> None:
        """The plan was revised, or its steps have new statuses."""

    async def on_specialist_invoke(self, info: SpecialistInvoked) -> None:
        """An attempt of a step starts; it does not wait for this."""

    async def on_specialist_complete(self, info: SpecialistCompleted) -> None:
        """A specialist has finished a step, successfully or not."""

    async def on_feedback_generated(self, info: FeedbackGenerated) -> None:
        """A round was judged."""

    async def on_task_complete(self, info: TaskCompleted) -> None:
        """The run is over."""

    async def on_event(self, event: BaseEvent) -> None:
        """Any event, after the hook for that event."""


Hook = Callable[[Any], Any]
"""A method of a callback, async or not."""

ANY_EVENT = "on_event"
"""The hook that receives every event."""


HOOKS: dict[type[BaseEvent], str] = {
    ThinkingStarted: "on_thinking_start",
    ThinkingCompleted: "on_thinking_complete",
    PlanCreated: "on_plan_created",
    PlanUpdated: "on_plan_updated",
    SpecialistInvoked: "on_specialist_invoke",
    SpecialistCompleted: "on_specialist_complete",
    FeedbackGenerated: "on_feedback_generated",
    TaskCompleted: "on_task_complete",
}
"""Which hook reports which event."""


def hooks_of(callback: object) -> dict[str, Hook]:
    """The hooks that a callback implements, by name; those of the base class do nothing."""
    hooks = {name: getattr(callback, name, None) for name in (*HOOKS.values(), ANY_EVENT)}
    return {
        name: cast("Hook", hook)
        for name, hook in hooks.items()
        if callable(hook) and getattr(hook, "__func__", None) is not vars(MultiAgentCallback)[name]
    }


def hears_tokens(callback: object) -> bool:
    """Whether a callback receives tokens."""
    return ANY_EVENT in hooks_of(callback) and getattr(callback, "hears_tokens", True) is not False


def misspelt_hooks(callback: object) -> dict[str, str]:
    """The methods that are named almost like a hook, and the hook that each seems to mean."""
    names = [*HOOKS.values(), ANY_EVENT]
    named = [name for name in dir(callback) if name.startswith("on") and name not in names]
    close = {name: get_close_matches(name, names, 1, _CLOSE) for name in named}
    return {name: hooks[0] for name, hooks in close.items() if hooks}


_CLOSE = 0.8
"""How alike names are of which one is meant to be the other; LangChain's own hooks are less."""

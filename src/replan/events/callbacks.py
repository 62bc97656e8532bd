"""The eight hooks of a callback, as in the Eino host multi-agent design."""

from replan.events.types import (
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
    """Called at eight moments of a run with the event of the moment.

    Override what you need; plain functions are allowed too, and so is an object that merely has
    some of the methods. Callbacks are called in the order of the list. An exception in one is
    logged and changes nothing.
    """

    async def on_thinking_start(self, info: ThinkingStarted) -> None:
        """The host begins to think."""

    async def on_thinking_complete(self, info: ThinkingCompleted) -> None:
        """The host has judged the request."""

    async def on_plan_created(self, info: PlanCreated) -> None:
        """There is a plan."""

    async def on_plan_updated(self, info: PlanUpdated) -> None:
        """The plan was revised, or its steps have new statuses."""

    async def on_specialist_invoke(self, info: SpecialistInvoked) -> None:
        """A try of a step starts."""

    async def on_specialist_complete(self, info: SpecialistCompleted) -> None:
        """A step ended at a specialist, well or not."""

    async def on_feedback_generated(self, info: FeedbackGenerated) -> None:
        """A round was judged."""

    async def on_task_complete(self, info: TaskCompleted) -> None:
        """The run is over."""


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
"""Which hook tells of which event."""

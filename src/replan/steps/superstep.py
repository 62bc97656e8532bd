"""What a task that was sent with ids alone reads of the running super-step.

`Send` gives a node its argument instead of the state. Putting plan, messages and results into
every argument would store them once per step, so a task reads the channels of its super-step, as
LangGraph's own tool node does. Should a version of LangGraph not let it, the whole state is sent,
and works as well.
"""

from typing import NamedTuple, NotRequired, TypedDict, cast

from langchain_core.runnables import RunnableConfig

from replan.langgraph_inside.tasks import (
    can_read_state,
    configurable,
    is_checkpointed,
    read_state as read_channels,
    runtime_in,
    with_runtime,
)
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.results import Assignment

# LangChain copies what does not begin like this into the metadata, which checkpoints keep.
_BOUNDS = "__replan_caller_bounds"
_KEYS = (
    "messages",
    "run_id",
    "settings",
    "current_round",
    "current_plan",
    "current_thinking_result",
    "current_specialist_results",
    "kept_results",
    "generations",
    "questions",
    "dispatched",
)


class Sent(TypedDict):
    """The argument of a task: ids, and the state only where it cannot be read otherwise."""

    run_id: str
    step_id: int
    specialist: str
    state: NotRequired[EnhancedState]


def argument(assignment: Assignment, state: EnhancedState, config: RunnableConfig) -> Sent:
    """What to send for one step at one specialist."""
    sent = Sent(
        run_id=state.get("run_id", ""), step_id=assignment.step_id, specialist=assignment.specialist
    )
    if not can_read_state(config):
        sent["state"] = state
    return sent


def read_state(sent: Sent, config: RunnableConfig) -> EnhancedState:
    """The state as it was when the task was sent."""
    if "state" in sent:
        return sent["state"]
    return cast(EnhancedState, read_channels(config, _KEYS))


class CallerBounds(NamedTuple):
    """LangGraph's bounds as the caller gave them; None where it did not."""

    recursion_limit: int | None = None
    max_concurrency: int | None = None


def with_bounds(config: RunnableConfig, bounds: CallerBounds) -> RunnableConfig:
    """Keep the caller's bounds in a configuration that has none."""
    return {**config, "configurable": {**configurable(config), _BOUNDS: bounds}}


def bounds_in(config: RunnableConfig) -> CallerBounds:
    """The caller's bounds."""
    return configurable(config).get(_BOUNDS) or CallerBounds()


def as_the_caller_bounds(config: RunnableConfig) -> RunnableConfig:
    """The configuration for what a step runs: LangGraph's bounds hold there as they were given."""
    own = {key: value for key, value in config.items() if key not in CallerBounds._fields}
    given = {key: value for key, value in bounds_in(config)._asdict().items() if value is not None}
    return cast(RunnableConfig, {**own, **given})


def can_wait(config: RunnableConfig) -> bool:
    """Whether the run is kept where it stands, so that a person's answer finds it again."""
    return is_checkpointed(config)


def to_its_end(config: RunnableConfig) -> RunnableConfig:
    """Let what a step runs, such as a graph of its own, come to its end when the run is to stop.

    LangGraph would stop it at its next super-step, without the grace that running steps have. Nor
    do the settings of this run bind another team's.
    """
    given = runtime_in(config)
    if given is None:
        return config
    context = None if isinstance(given.context, RunSettings) else given.context
    return with_runtime(config, given, context)

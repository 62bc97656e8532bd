"""What a task that was sent with ids alone reads of the running super-step.

`Send` gives a node its argument instead of the state. Putting plan, messages and results into
every argument would store them once per step; LangGraph's own tool node reads the channels through
a private key of the configuration instead, and so do we, here and nowhere else. Should a version
of LangGraph not have the key, the whole state is sent, and works as well.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.results import Assignment

_CHECKPOINTER = "__pregel_checkpointer"
_READ = "__pregel_read"
_RUNTIME = "__pregel_runtime"
# LangChain copies what does not begin like this into the metadata, which checkpoints keep.
_BOUNDS = "__replan_caller_bounds"
_KEYS = (
    "messages",
    "run_id",
    "settings",
    "current_round",
    "event_seq",
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
    if _READ not in _configurable(config):
        sent["state"] = state
    return sent


def read_state(sent: Sent, config: RunnableConfig) -> EnhancedState:
    """The state as it was when the task was sent."""
    if "state" in sent:
        return sent["state"]
    read = _configurable(config)[_READ]
    return cast(EnhancedState, read(list(_KEYS)))


class CallerBounds(NamedTuple):
    """LangGraph's bounds as the caller gave them; None where it did not."""

    recursion_limit: int | None = None
    max_concurrency: int | None = None


def with_bounds(config: RunnableConfig, bounds: CallerBounds) -> RunnableConfig:
    """Keep the caller's bounds in a configuration that has none."""
    return {**config, "configurable": {**_configurable(config), _BOUNDS: bounds}}


def bounds_in(config: RunnableConfig) -> CallerBounds:
    """The caller's bounds."""
    return _configurable(config).get(_BOUNDS) or CallerBounds()


def as_the_caller_bounds(config: RunnableConfig) -> RunnableConfig:
    """The configuration for what a step runs: LangGraph's bounds hold there as they were given."""
    own = {key: value for key, value in config.items() if key not in CallerBounds._fields}
    given = {key: value for key, value in bounds_in(config)._asdict().items() if value is not None}
    return cast(RunnableConfig, {**own, **given})


def can_wait(config: RunnableConfig) -> bool:
    """Whether the run is kept where it stands, so that a person's answer finds it again."""
    return bool(_configurable(config).get(_CHECKPOINTER))


def to_its_end(config: RunnableConfig) -> RunnableConfig:
    """Let what a step runs, such as a graph of its own, come to its end when the run is to stop.

    LangGraph would stop it at its next super-step, without the grace that running steps have. Nor
    do the settings of this run bind another team's.
    """
    runtime = _configurable(config).get(_RUNTIME)
    if not isinstance(runtime, Runtime):
        return config
    given = cast("Runtime[Any]", runtime)
    context = None if isinstance(given.context, RunSettings) else given.context
    own = given.override(control=None, context=context)
    return {**config, "configurable": {**_configurable(config), _RUNTIME: own}}


def _configurable(config: RunnableConfig) -> Mapping[str, Any]:
    return config.get("configurable", {})

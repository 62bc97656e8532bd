"""What a running task of LangGraph has in addition to its arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple, NoReturn, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, var_child_runnable_config
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.types import ERROR
from langgraph.errors import GraphBubbleUp, ParentCommand
from langgraph.graph.message import push_message
from langgraph.runtime import Runtime
from langgraph.types import Command

from replan.base.langgraph_inside.langgraph_channels import STATE

PUSH = "__pregel_push"  # what the path of a task begins with that was sent

_CHECKPOINTER = "__pregel_checkpointer"
_COUNTERS = "__pregel_scratchpad"
_NAMESPACE = "checkpoint_ns"
_READ = "__pregel_read"
_RESUMED = "__pregel_resume_map"
_RUNTIME = "__pregel_runtime"
# LangChain copies what does not begin like this into the metadata, which checkpoints keep.
_BOUNDS = "__replan_caller_bounds"
_UNHEARD = "__replan_tokens_unheard"

inherited_config = var_child_runnable_config
"""The configuration that code in this context finds implicitly."""


def place_of_send(task: Any) -> int | None:
    """Which of the sends of its super-step made a task of a snapshot; None for any other task."""
    kind, *place = task.path
    return place[0] if kind == PUSH and isinstance(place[0], int) else None


def task_around(namespace: str) -> tuple[str, str]:
    """The node and the id of the task of a run in which a graph works that keeps checkpoints here.

    Ids of tasks follow from the checkpoint that they are tasks of, its number and what made them;
    not from the thread. So they are the same where a checkpoint is put on another thread.
    """
    node, _, task_id = namespace.partition("|")[0].partition(":")
    return node, task_id


def can_read_state(config: RunnableConfig) -> bool:
    """Whether a task can read the channels of its super-step."""
    return _READ in configurable(config)


def read_state(config: RunnableConfig, keys: Sequence[str]) -> dict[str, Any]:
    """Read keys of the state as they were when the super-step began."""
    read = configurable(config)[_READ]
    try:
        state = read(STATE)
    except KeyError:  # each key has a channel of its own
        return read(list(keys))
    return {key: state[key] for key in keys if key in state}


def reader_in(config: RunnableConfig) -> Any:
    """What reads the channels of a task's super-step."""
    return configurable(config).get(_READ)


def answers_to_interrupts(config: RunnableConfig) -> Mapping[str, Any]:
    """What a run continues with, by the ids of the interrupts that it answers."""
    return configurable(config).get(_RESUMED) or {}


def is_checkpointed(config: RunnableConfig) -> bool:
    """Whether a saver keeps the outcome of the run."""
    return bool(configurable(config).get(_CHECKPOINTER))


def runtime_in(config: RunnableConfig) -> Runtime[Any] | None:
    """The runtime that graphs inside this task would take over."""
    runtime = configurable(config).get(_RUNTIME)
    return cast("Runtime[Any]", runtime) if isinstance(runtime, Runtime) else None


def checkpoint_of(runtime: Runtime[Any]) -> str:
    """The checkpoint at which a node began: the same if it begins again; empty outside a graph."""
    info = runtime.execution_info
    return "" if info is None else info.checkpoint_id


def user_of_server(runtime: Runtime[Any]) -> str:
    """The caller that LangGraph's server has authenticated; empty without one."""
    # The server lets no client write this into its configuration.
    info = runtime.server_info
    return "" if info is None or info.user is None else str(info.user.identity)


class CallerBounds(NamedTuple):
    """LangGraph's bounds as the caller set them; None if it did not."""

    recursion_limit: int | None = None
    max_concurrency: int | None = None


def with_bounds(config: RunnableConfig, bounds: CallerBounds) -> RunnableConfig:
    """Keep the caller's bounds in a configuration that has none."""
    return {**config, "configurable": {**configurable(config), _BOUNDS: bounds}}


def bounds_in(config: RunnableConfig) -> CallerBounds:
    """The caller's bounds."""
    return configurable(config).get(_BOUNDS) or CallerBounds()


def config_inside(config: RunnableConfig, own_context: type) -> RunnableConfig:
    """The configuration for what a task runs, such as its own graph."""
    # It comes to its end when the run is to stop: LangGraph would stop it at its next super-step,
    # without the grace that running steps have. LangGraph's bounds hold there as the caller gave
    # them. Nor does a context of the task's own kind bind another team's.
    inside: dict[str, Any] = {**config}
    for name, bound in zip(CallerBounds._fields, bounds_in(config), strict=True):
        inside.pop(name, None)
        if bound is not None:
            inside[name] = bound
    runtime = runtime_in(config)
    if runtime is not None:
        context = None if isinstance(runtime.context, own_context) else runtime.context
        own_runtime = runtime.override(control=None, context=context)
        inside["configurable"] = {**configurable(config), _RUNTIME: own_runtime}
    return cast(RunnableConfig, inside)


def with_handlers(
    config: RunnableConfig,
    handlers: Sequence[BaseCallbackHandler],
    *,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> RunnableConfig:
    """Return a node's configuration with more callbacks, tags and metadata."""
    # LangChain's `merge_configs` fills both sides up from the surroundings first. What a node gets
    # is whole already, and there is a merge around each call of a model.
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        for handler in handlers:
            callbacks.add_handler(handler, inherit=True)
    else:
        callbacks = [*(callbacks or []), *handlers]
    return {
        **config,
        "callbacks": callbacks,
        "tags": [*config.get("tags", []), *tags],
        "metadata": {**config.get("metadata", {}), **(metadata or {})},
    }


def as_node(config: RunnableConfig, node: str) -> RunnableConfig:
    """The configuration for work of another node: LangGraph shows it as that node's."""
    return {**config, "metadata": {**config.get("metadata", {}), "langgraph_node": node}}


def as_task(config: RunnableConfig, node: str, number: int) -> RunnableConfig:
    """The configuration for work of another node that LangGraph would give a task of its own.

    What it asks by interrupts, and the graphs inside it, are told from those of other such work.

    Args:
        config: That of the task which does the work.
        node: The node that the work is shown as.
        number: Which work of the task it is.
    """
    _, task_id = task_around(configurable(config)[_NAMESPACE])
    own: dict[str, Any] = {_NAMESPACE: f"{node}:{task_id}-{number}"}
    counters = configurable(config).get(_COUNTERS)
    if counters is not None:
        names = ("call_counter", "interrupt_counter", "subgraph_counter")
        own[_COUNTERS] = replace(counters, **{name: count().__next__ for name in names})
    metadata = {
        **config.get("metadata", {}),
        "langgraph_node": node,
        "langgraph_checkpoint_ns": own[_NAMESPACE],
    }
    return {**config, "configurable": {**configurable(config), **own}, "metadata": metadata}


def as_part(
    config: RunnableConfig, name: str, interrupted: Callable[[], NoReturn]
) -> RunnableConfig:
    """The configuration for a part of a task that may be left out when the task begins again.

    LangGraph tells the graphs inside a task, and its interrupts, by their order, and would take one
    for another. The graphs are told by the part; an interrupt of the part itself is refused.
    """
    namespace, counters = configurable(config).get(_NAMESPACE), configurable(config).get(_COUNTERS)
    if not namespace or counters is None:
        return config
    # LangGraph drops numbers from a namespace where it looks for a graph.
    parts = str(namespace).split("|")
    while parts[-1].isdigit():
        parts.pop()
    number = int(sha256(name.encode()).hexdigest()[:12], 16)
    own = {
        _NAMESPACE: f"{'|'.join(parts)}|{number}",
        _COUNTERS: replace(
            counters, subgraph_counter=count().__next__, interrupt_counter=interrupted
        ),
    }
    return {**config, "configurable": {**configurable(config), **own}}


def signal_in(config: RunnableConfig, node: str, signal: GraphBubbleUp) -> GraphBubbleUp:
    """What such work has raised, for a task of its node to raise."""
    if isinstance(signal, ParentCommand):
        command: Command[Any] = cast("Any", signal).args[0]
        if command.graph == configurable(config)[_NAMESPACE]:
            # A graph inside it has sent a command to its task.
            return ParentCommand(replace(command, graph=node))
    return signal


def configurable(config: RunnableConfig) -> Mapping[str, Any]:
    """The part of a configuration that is for nodes."""
    return config.get("configurable", {})


def push_text(text: str, message_id: str) -> None:
    """Show a piece of text in the `messages` mode, and put nothing into the state."""
    push_message(AIMessageChunk(content=text, id=message_id), state_key=None)


def without_tokens(config: RunnableConfig) -> RunnableConfig:
    """Declare that the reader of the stream of custom events reads no tokens."""
    return merge_configs(config, {"configurable": {_UNHEARD: True}})


def stream_is_heard(write: Callable[[Any], None], config: RunnableConfig) -> bool:
    """Whether tokens that are written to LangGraph's stream have a reader."""
    return not (configurable(config).get(_UNHEARD) or is_unread(write))


def is_unread(write: Callable[[Any], None]) -> bool:
    """Whether this is LangGraph's writer for nodes whose custom events nobody reads.

    LangGraph's own function that holds no stream has none to write to; an unknown one is read.
    """
    is_of_langgraph = str(getattr(write, "__module__", "")).startswith("langgraph.")
    return is_of_langgraph and getattr(write, "__closure__", ()) is None


def of_whole_tasks(writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Leave out what a task wrote before it failed or was cancelled.

    LangGraph passes it to the saver together with the error, and then takes the task for done: a
    node whose branch was cancelled would be the last one of its run.
    """
    is_broken_off = any(channel == ERROR for channel, _ in writes)
    return [write for write in writes if write[0] in WRITES_IDX_MAP] if is_broken_off else writes

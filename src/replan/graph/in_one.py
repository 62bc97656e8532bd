"""Several nodes in one super-step, where nobody looks between them.

Each super-step of LangGraph costs about as much as one of these nodes, and a checkpoint.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite

from replan.base.langgraph_inside.delta_channel import Delta
from replan.base.langgraph_inside.tasks import as_node
from replan.nodes.host.new_settings import Node
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings

Way = Callable[[EnhancedState, RunnableConfig], Awaitable[Any]]
"""Says what follows a node."""


def in_one(
    first: str,
    entries: Sequence[str],
    stages: Mapping[str, tuple[Node, Way]],
    channels: Mapping[str, Any],
) -> Node:
    """Make one node of several; each sees the state as those before it have changed it.

    Args:
        first: The node that it begins with.
        entries: The nodes at which a super-step of its own begins.
        stages: The nodes by their names, and what follows each.
        channels: How each key of the state takes a change.
    """

    async def walked(
        state: EnhancedState, runtime: Runtime[RunSettings], config: RunnableConfig
    ) -> Command[Any]:
        walked_state, update = cast("dict[str, Any]", {**state}), dict[str, Any]()
        following: Any = first
        while isinstance(following, str) and following in stages:
            # A run that is to stop does so where it would between two super-steps.
            if update and (following in entries or runtime.drain_requested):
                break
            node, way = stages[following]
            as_itself = as_node(config, following)
            try:
                made = await node(walked_state, runtime=runtime, config=as_itself)
            except Exception as error:
                if following != first:
                    # LangGraph notes the node that the super-step began with.
                    error.add_note(f"In the node '{following}'")
                raise
            for key, change in made.items():
                walked_state[key] = _changed(channels[key], walked_state.get(key), change)
                is_whole = key in update and isinstance(channels[key], Delta)
                update[key] = Overwrite(walked_state[key]) if is_whole else change
            following = await way(cast("EnhancedState", walked_state), config)
        return Command(update=update, goto=following)

    return walked


def _changed(channel: Any, before: Any, change: Any) -> Any:
    """The value of a key after a change of a node; its channel checks it where it is written."""
    if isinstance(change, Overwrite):
        return change.value
    return channel.reducer(before, [change]) if isinstance(channel, Delta) else change

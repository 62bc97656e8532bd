"""Several nodes in one super-step, where nobody looks between them.

Each super-step of LangGraph costs about as much as one of these nodes, and a checkpoint; each of
its tasks, half as much as a step of a plan.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite, Send

from replan.base.langgraph_inside.langgraph_channels import Delta
from replan.base.langgraph_inside.tasks import as_node, as_task, signal_in
from replan.nodes.host.new_settings import Node
from replan.specialists.steps.board import Boards
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings

Way = Callable[[EnhancedState, RunnableConfig], Awaitable[Any]]
"""Says what follows a node."""

_APART = ("user_input",)
"""What begins a super-step of its own: a person who is asked finds the state as it was before."""

Changes = Mapping[str, Any]
"""What a node makes of the state."""


def in_one(
    first: str,
    asking: Collection[str],
    stages: Mapping[str, tuple[Node, Way]],
    channels: Mapping[str, Any],
    steps: Mapping[str, Node],
) -> Node:
    """Make one node of several; each sees the state as those before it have changed it.

    Args:
        first: The node that it begins with.
        asking: The nodes of which this one does at most one.
        stages: The nodes by their names, and what follows each.
        channels: How each key of the state takes changes.
        steps: The nodes of specialists that do their steps in this node, too, by their names.
    """
    deltas = frozenset(key for key, channel in channels.items() if isinstance(channel, Delta))

    async def walked(
        state: EnhancedState, runtime: Runtime[RunSettings], config: RunnableConfig
    ) -> Command[Any]:
        changed = _ChangedState(cast("dict[str, Any]", {**state}), channels, deltas)
        following: Any = first
        apart: Collection[str] = _APART
        numbers = count()  # of the steps, in all rounds
        # A run that is to stop does so where it would between two super-steps.
        while not (changed.update and (following in apart or runtime.drain_requested)):
            if steps and _are_sends(following):
                made, signals = await _steps_done(
                    following, changed, steps, runtime, config, numbers
                )
                changed.take(made)
                if signals:
                    return Command(update=changed.update, goto=signals)
                following = "result_collector"
            elif isinstance(following, str) and following in stages:
                node, way = stages[following]
                apart = (*_APART, *asking) if following in asking else apart
                as_itself = as_node(config, following)
                changed.take(
                    [await _noted(following, first, node(changed.state, runtime, as_itself))]
                )
                following = await way(cast("EnhancedState", changed.state), config)
            else:
                break
        return Command(update=changed.update, goto=following)

    return walked


@dataclass
class _ChangedState:
    """The state as the nodes so far have changed it, and all their changes as one."""

    state: dict[str, Any]
    channels: Mapping[str, Any]
    deltas: Collection[str]  # the keys whose channels reduce changes
    update: dict[str, Any] = field(default_factory=dict[str, Any])

    def take(self, made: Sequence[Changes]) -> None:
        """Take the changes of nodes that worked at the same time."""
        for key in dict.fromkeys(key for each in made for key in each):
            new = [each[key] for each in made if key in each]
            self.state[key] = self._changed(key, new)
            is_whole = key in self.deltas and (len(new) > 1 or key in self.update)
            self.update[key] = Overwrite(self.state[key]) if is_whole else new[-1]

    def _changed(self, key: str, changes: Sequence[Any]) -> Any:
        """The value of a key after changes of nodes; its channel checks it where it is written."""
        if len(changes) == 1 and isinstance(changes[0], Overwrite):
            return changes[0].value
        if key not in self.deltas:
            return changes[-1]
        return self.channels[key].reducer(self.state.get(key), [*changes])


async def _noted(name: str, first: str, work: Awaitable[Changes]) -> Changes:
    try:
        return await work
    except Exception as error:
        if name != first:
            # LangGraph notes the node that the super-step began with.
            error.add_note(f"In the node '{name}'")
        raise


def _are_sends(following: Any) -> bool:
    if not isinstance(following, list):
        return False
    return all(isinstance(each, Send) for each in cast("list[Any]", following))


async def _steps_done(
    sends: Sequence[Send],
    changed: _ChangedState,
    steps: Mapping[str, Node],
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    numbers: Iterator[int],
) -> tuple[list[Changes], list[Send]]:
    """Do the steps of a round; return what they made, and what a task of its own has to raise."""
    boards, state = Boards(), {**changed.state}

    async def outcome(sent: Send) -> Changes | Send:
        own = as_task(config, sent.node, next(numbers))
        work = steps[sent.node]({**sent.arg, "state": state}, runtime, own, boards=boards)
        try:
            return await _noted(sent.node, "", work)
        except GraphBubbleUp as signal:
            # An interrupt, or the end of a run that is to stop, is LangGraph's to hear.
            raised = signal_in(own, sent.node, signal)
            return Send(sent.node, {**sent.arg, "raised": raised})

    failures: Sequence[BaseException] = ()
    tasks: Sequence[asyncio.Task[Changes | Send]] = ()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(sent)) for sent in sends]
    except BaseExceptionGroup as errors:
        failures = errors.exceptions
    if failures:
        # As in LangGraph, the first failure has ended the others. Its cause stays what it is.
        raise failures[0]
    outcomes = [task.result() for task in tasks]
    signals = [each for each in outcomes if isinstance(each, Send)]
    return [each for each in outcomes if not isinstance(each, Send)], signals

"""A node that calls the host's model: LangGraph gives it the state, and it gets the call, too."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from replan.host.host_call import HostCall, host_call
from replan.host.new_settings import Node, with_new_settings
from replan.prompts.sections import Caller
from replan.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings

HostNode = Callable[[EnhancedState, HostCall], Awaitable[Any]]
"""A node that may call a model: its second argument has what the call needs."""


def host_node(name: Caller) -> Callable[[HostNode], Node]:
    """Make a node of a function of the state and of the call that it may make."""

    def with_call(node: HostNode) -> Node:
        async def called(
            state: EnhancedState,
            runtime: Runtime[RunSettings],
            config: RunnableConfig,
            *,
            services: Services,
        ) -> Any:
            return await node(state, host_call(name, state, services, runtime, config))

        called.__name__, called.__doc__ = node.__name__, node.__doc__
        return with_new_settings(called)

    return with_call

"""Whether somebody hears the pieces of a reply: if nobody does, it is asked for as a whole."""

from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

from replan.langgraph_inside.callbacks import is_fed_by_streams
from replan.langgraph_inside.tasks import does_nothing
from replan.models.handlers import handlers_of

# LangChain copies what does not begin like this into the metadata, which checkpoints keep.
_UNHEARD = "__replan_tokens_unheard"

# A log of runs gets tokens, too, and is no reason to stream.
_NOT_LISTENING = (BaseCallbackHandler, AsyncCallbackHandler, BaseTracer, AsyncBaseTracer)


def without_tokens(config: RunnableConfig) -> RunnableConfig:
    """Say that whoever reads the stream of custom events reads no tokens."""
    return merge_configs(config, {"configurable": {_UNHEARD: True}})


def stream_is_heard(write: Callable[[Any], None], config: RunnableConfig) -> bool:
    """Whether tokens that are written to LangGraph's stream reach somebody.

    Args:
        write: The stream writer of the node.
        config: The configuration of the node.
    """
    return not (config.get("configurable", {}).get(_UNHEARD) or does_nothing(write))


def has_listener(config: RunnableConfig) -> bool:
    """Whether a callback of a configuration, or of what runs right now, takes tokens.

    Such are handlers of one's own that take them, LangGraph's `messages` mode, `astream_events`.
    """
    return any(_listens(handler) for handler in handlers_of(config))


def makes_langchain_stream(config: RunnableConfig) -> bool:
    """Whether a callback is of the kind for which LangChain streams a call for the whole, too."""
    return any(is_fed_by_streams(handler) for handler in handlers_of(config))


def _listens(handler: BaseCallbackHandler) -> bool:
    own = getattr(handler, "hears_tokens", None)
    if own is not None:
        return bool(own)
    if is_fed_by_streams(handler):
        return True
    takes = type(handler).on_llm_new_token
    return all(takes is not kind.on_llm_new_token for kind in _NOT_LISTENING)

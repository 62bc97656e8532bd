"""Whether somebody hears the pieces of a reply: if nobody does, it is asked for as a whole."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

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
    return not (config.get("configurable", {}).get(_UNHEARD) or _does_nothing(write))


def has_listener(config: RunnableConfig) -> bool:
    """Whether a callback of a configuration, or of what runs right now, takes tokens.

    Such are handlers of one's own that take them, LangGraph's `messages` mode, `astream_events`.
    """
    return any(_listens(handler) for handler in handlers_of(config))


def makes_langchain_stream(config: RunnableConfig) -> bool:
    """Whether a callback is of the kind for which LangChain streams a call for the whole, too."""
    return any(_is_fed_by_streams(handler) for handler in handlers_of(config))


def _listens(handler: BaseCallbackHandler) -> bool:
    own = getattr(handler, "hears_tokens", None)
    if own is not None:
        return bool(own)
    if _is_fed_by_streams(handler):
        return True
    takes = type(handler).on_llm_new_token
    return all(takes is not kind.on_llm_new_token for kind in _NOT_LISTENING)


def _is_fed_by_streams(handler: BaseCallbackHandler) -> bool:
    # LangChain's mark of what takes the pieces of a stream, whatever else it is.
    return hasattr(handler, "tap_output_aiter")


def _nothing(_: Any) -> None:
    pass


def _does_nothing(write: Callable[[Any], None]) -> bool:
    """Whether this is the writer that LangGraph gives a node where nobody reads custom events.

    It has no public sign, so its code is compared: an unknown writer counts as one that is read.
    """
    is_plain = isinstance(write, FunctionType) and write.__closure__ is None
    return is_plain and write.__code__.co_code == _nothing.__code__.co_code

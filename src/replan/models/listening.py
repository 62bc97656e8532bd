"""Whether somebody hears the pieces of a reply: if nobody does, it is asked for as a whole."""

from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    BaseCallbackManager,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

from replan.langgraph_inside.callbacks import is_fed_by_streams

# A log of runs gets tokens, too, and is no reason to stream.
_NOT_LISTENING = (BaseCallbackHandler, AsyncCallbackHandler, BaseTracer, AsyncBaseTracer)


def handlers_of(config: RunnableConfig) -> list[BaseCallbackHandler]:
    """The callbacks of a configuration, or of what runs right now."""
    given = config.get("callbacks")
    callbacks = (ensure_config().get("callbacks") if given is None else given) or []
    return callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks


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

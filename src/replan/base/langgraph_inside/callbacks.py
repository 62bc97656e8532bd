"""How LangChain calls callbacks, what it reports, and which of them get replies in pieces."""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackHandler,
    AsyncCallbackManager,
    BaseCallbackHandler,
    BaseCallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, chat_models
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
    var_child_runnable_config,
)
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

T = TypeVar("T")

ASKS_NO_OTHER = "asks_no_other_model"
"""What a class of models says of itself, not of those that are made of it, by a true attribute."""

# A log of runs gets tokens, too, and is not a reason to stream.
_NOT_LISTENING = (BaseCallbackHandler, AsyncCallbackHandler, BaseTracer, AsyncBaseTracer)


# LangChain asks where it awaits callbacks. In other code it calls them at once: what is
# asynchronous it would run on the side there, and drop what it raises; in code that awaits, what is
# plain could wait for nothing. Two handlers do not do, since LangChain changes their order.
class _Callback:
    """A callback that looks like a coroutine function to code that asks, else like a plain one."""

    __defaults__ = None
    __kwdefaults__ = None

    def __init__(self, awaited: Callable[..., Any], plain: Callable[..., Any]) -> None:
        self._awaited = awaited
        self._plain = plain
        self._is_asked = False

    @property
    def __name__(self) -> str:
        return self._awaited.__name__

    @property
    def __code__(self) -> CodeType:
        self._is_asked = True
        return self._awaited.__code__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return (self._awaited if self._is_asked else self._plain)(*arguments, **named)


def either(awaited: Callable[..., Any], plain: Callable[..., Any]) -> property:
    """A callback that is `awaited` where LangChain awaits callbacks, and `plain` elsewhere."""

    def callback(handler: object) -> _Callback:
        return _Callback(awaited.__get__(handler), plain.__get__(handler))

    return property(callback)


def is_fed_by_streams(handler: BaseCallbackHandler) -> bool:
    """Whether LangChain streams a call for this callback although a whole reply is requested."""
    # Its mark of what takes the pieces of a stream, whatever else it is.
    return hasattr(handler, "tap_output_aiter")


class StreamRequest(BaseCallbackHandler):
    """Makes LangChain stream the calls of models that are asked for whole replies.

    Their pieces go to the other callbacks. What runs gives is left as it is.
    """

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[T]) -> Iterator[T]:
        return output


def handlers_of(config: RunnableConfig) -> list[BaseCallbackHandler]:
    """The callbacks of a configuration, or of the current run."""
    callbacks = _callbacks_of(config)
    return callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks


def _callbacks_of(config: RunnableConfig) -> list[BaseCallbackHandler] | BaseCallbackManager:
    own = config.get("callbacks")
    surrounding = var_child_runnable_config.get() if own is None else None
    return (surrounding.get("callbacks") if surrounding else own) or []


def reported_inside_only(
    config: RunnableConfig, handlers: Collection[BaseCallbackHandler]
) -> RunnableConfig:
    """A configuration whose call is not reported to these callbacks, but what is called in it is.

    A chat model that asks another one gives that the callbacks that its own call hands down.
    """
    callbacks = _callbacks_of(config)
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
    else:
        manager = AsyncCallbackManager([*callbacks], [*callbacks])
    manager.handlers = [one for one in manager.handlers if one not in handlers]
    return {**config, "callbacks": manager}


def has_listener(config: RunnableConfig) -> bool:
    """Whether a callback of a configuration, or of the current run, takes tokens."""
    # Such are handlers of your own that take them, LangGraph's `messages` mode, `astream_events`.
    return any(_listens(handler) for handler in handlers_of(config))


def is_seen(config: RunnableConfig) -> bool:
    """Whether such a callback shows the tokens to somebody, and does not only count them."""
    return any(
        _listens(handler) and getattr(handler, "shows_tokens", True)
        for handler in handlers_of(config)
    )


def makes_langchain_stream(config: RunnableConfig) -> bool:
    """Whether LangChain streams a call for such a callback even if a whole reply is requested."""
    return any(is_fed_by_streams(handler) for handler in handlers_of(config))


def _listens(handler: BaseCallbackHandler) -> bool:
    hears_tokens = getattr(handler, "hears_tokens", None)
    if hears_tokens is not None:
        return bool(hears_tokens)
    if is_fed_by_streams(handler):
        return True
    takes = type(handler).on_llm_new_token
    return all(takes is not kind.on_llm_new_token for kind in _NOT_LISTENING)


class ReportedCall(NamedTuple):
    """What LangChain reports about a model before it is called."""

    parameters: Mapping[str, Any]
    names: Sequence[str]
    most_output: int | None
    provider: str  # what LangChain calls it; empty if it does not know


def read_reported_call(
    serialized: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> ReportedCall:
    """Read the arguments of a callback that is called before a model."""
    parameters: Mapping[str, Any] = options.get("invocation_params") or {}
    metadata: Mapping[str, Any] = options.get("metadata") or {}
    kind: Sequence[str] = (serialized or {}).get("id") or ()
    names = (metadata.get("ls_model_name"), parameters.get("model"), parameters.get("model_name"))
    most = (parameters.get("max_completion_tokens"), metadata.get("ls_max_tokens"))
    return ReportedCall(
        parameters,
        [name for name in (*names, *kind[-1:]) if isinstance(name, str)],
        next((number for number in most if isinstance(number, int) and number > 0), None),
        str(metadata.get("ls_provider") or ""),
    )


def report_call(
    config: RunnableConfig | None, names: Sequence[str], messages: Sequence[BaseMessage]
) -> CallbackManagerForLLMRun:
    """Report to callbacks a call of a model that LangChain does not report; its full name first."""
    manager = get_callback_manager_for_config(ensure_config(config))
    metadata = {"ls_model_name": names[0], "ls_model_type": "embedding", "ls_max_tokens": 1}
    manager.add_metadata(metadata, inherit=False)
    parameters = {"model": names[-1]}
    (call,) = manager.on_chat_model_start({}, [[*messages]], invocation_params=parameters)
    return call


async def whole_reply(
    model: Runnable[Any, AIMessage], messages: Sequence[BaseMessage], config: RunnableConfig
) -> AIMessage:
    """Ask a model for a whole reply.

    A fifth of the work that LangChain does for a call is for callbacks. Where there are none, be it
    of the call, of the model or of the whole program, a model is asked as LangChain asks it inside.
    A model that asks others in its call hands callbacks on to them, so that is not left out.
    """
    asks_no_other = vars(type(model)).get(ASKS_NO_OTHER, False)
    if not asks_no_other or _is_heard(cast("BaseChatModel", model), config):
        return await model.ainvoke([*messages], config)
    inside: Any = model
    result = await inside._agenerate_with_cache(_normalised([*messages]))  # noqa: SLF001
    return result.generations[0].message


_normalised = cast("Any", chat_models)._normalize_messages  # noqa: SLF001


def _is_heard(model: BaseChatModel, config: RunnableConfig) -> bool:
    """Whether a callback hears a call; LangChain knows those of the whole program."""
    others = AsyncCallbackManager.configure(None, model.callbacks, verbose=model.verbose)
    handlers = (*handlers_of(config), *others.handlers)
    return not all(each.ignore_llm and each.ignore_chat_model for each in handlers)

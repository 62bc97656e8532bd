"""How LangChain calls callbacks, and what it tells them of a model call."""

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from langchain_core.callbacks import BaseCallbackHandler


class _Callback:
    """A callback that is a coroutine function to who asks, and a plain function to all others.

    LangChain asks where it awaits callbacks. In other code it calls them at once: what is
    asynchronous it would run on the side there, and drop what it raises; in code that awaits, what
    is plain could wait for nothing. Two handlers do not do, since LangChain changes their order.
    """

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

    def __call__(self, *given: Any, **named: Any) -> Any:
        return (self._awaited if self._is_asked else self._plain)(*given, **named)


def either(awaited: Callable[..., Any], plain: Callable[..., Any]) -> property:
    """A callback of a handler that works in code that awaits callbacks, and in all other."""

    def callback(handler: object) -> _Callback:
        return _Callback(awaited.__get__(handler), plain.__get__(handler))

    return property(callback)


def is_fed_by_streams(handler: BaseCallbackHandler) -> bool:
    """Whether LangChain streams a call for this callback though the whole reply is asked for."""
    # Its mark of what takes the pieces of a stream, whatever else it is.
    return hasattr(handler, "tap_output_aiter")


class Told(NamedTuple):
    """What LangChain tells of a model before it is called."""

    parameters: Mapping[str, Any]
    names: Sequence[str]
    most_output: int | None


def told_of_call(serialized: Mapping[str, Any] | None, given: Mapping[str, Any]) -> Told:
    """Read what a callback gets when a model is about to be called.

    Args:
        serialized: What LangChain says of the model's class.
        given: The keyword arguments of the callback.
    """
    parameters: Mapping[str, Any] = given.get("invocation_params") or {}
    known: Mapping[str, Any] = given.get("metadata") or {}
    kind: Sequence[str] = (serialized or {}).get("id") or ()
    names = (known.get("ls_model_name"), parameters.get("model"), parameters.get("model_name"))
    most = (parameters.get("max_completion_tokens"), known.get("ls_max_tokens"))
    return Told(
        parameters,
        [name for name in (*names, *kind[-1:]) if isinstance(name, str)],
        next((number for number in most if isinstance(number, int) and number > 0), None),
    )

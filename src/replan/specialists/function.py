"""A specialist that is a plain function, and how what others wrote is called: sync or async."""

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from replan.replies.shape import Shape
from replan.specialists.abandonable_threads import in_thread
from replan.specialists.answers import result_of, shaped_result
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

KEY = "idempotency_key"
"""The parameter of a function or a tool that takes an idempotency key."""

_END = object()
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class FunctionSpecialist:
    card: SpecialistCard
    function: Callable[..., Any]
    shape: Shape | None = None

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Call the function; text, a message or a `SpecialistResult` is a result."""
        if self.shape is None:
            return result_of(await call(self.function, context, config))
        asked = context.replace(expected_format="json")
        return shaped_result(await call(self.function, asked, config), self.shape)


async def call(function: Callable[..., Any], given: object, config: RunnableConfig) -> Any:
    """Call a function with what it takes; one that is not async runs in a thread of its own."""
    # A thread that hangs is abandoned: it is a daemon, so the process can end without it.
    ready = _with_arguments(function, given, config)
    if _is_async(function):
        return await ready()
    answer = await in_thread(ready)
    return await answer if inspect.isawaitable(answer) else answer


async def call_in_pieces(
    function: Callable[..., Any], given: object, config: RunnableConfig
) -> AsyncIterator[Any]:
    """Call a function that gives its answer in pieces; one that gives it whole gives one piece."""
    answer = await call(function, given, config)
    if hasattr(answer, "__aiter__"):
        async for piece in answer:
            yield piece
    elif hasattr(answer, "__next__"):
        while (piece := await in_thread(lambda: next(answer, _END))) is not _END:
            yield piece
    else:
        yield answer


async def joined(pieces: AsyncIterator[Any], on_text: Callable[[str], Awaitable[None]]) -> Any:
    """Join a stream: text and message chunks are added up, of anything else the last counts."""
    whole: Any = None
    async for piece in pieces:
        text = piece.text if isinstance(piece, BaseMessageChunk) else piece
        if isinstance(text, str) and text:
            await on_text(str(text))
        whole = whole + piece if _can_be_joined(whole, piece) else piece
    return whole


def parameters_of(work: object) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function by their names; empty for what is none, or does not tell."""
    try:
        return inspect.signature(work).parameters if callable(work) else {}
    except (TypeError, ValueError):
        return {}


def _with_arguments(
    function: Callable[..., Any], given: object, config: RunnableConfig
) -> Callable[[], Any]:
    """The function with what it takes: the configuration as its second parameter, and the key."""
    parameters = parameters_of(function)
    # A parameter with a default is often what a closure binds, and not meant to be given.
    wanted = [
        each
        for name, each in parameters.items()
        if each.kind in _POSITIONAL
        and name != KEY
        and (each.default is inspect.Parameter.empty or name == "config")
    ]
    arguments = (given, config) if len(wanted) > 1 else (given,)
    if KEY not in parameters:
        return functools.partial(function, *arguments)
    key = config.get("metadata", {}).get(KEY, "")
    return functools.partial(function, *arguments, **{KEY: key})


def _is_async(function: Callable[..., Any]) -> bool:
    # An object that can be called may have a call that is async.
    call_of_object = getattr(type(function), "__call__", None)  # noqa: B004 - its kind, not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call_of_object)


def _can_be_joined(whole: object, piece: object) -> bool:
    if isinstance(piece, BaseMessageChunk | AddableDict):
        return isinstance(whole, type(piece))
    return isinstance(piece, str) and isinstance(whole, str)

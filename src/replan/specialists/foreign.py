"""Call what others wrote: sync or async, of one parameter or two, and check what it gives."""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk
from langchain_core.runnables import RunnableConfig

from replan.state.results import SpecialistResult


async def call(function: Callable[..., Any], given: object, config: RunnableConfig) -> Any:
    """Call a function with what it takes; one that is not async runs in a thread of its own.

    A thread that hangs is abandoned: it is a daemon, so the process can end without it.
    """
    arguments = arguments_of(function, given, config)
    if _is_async(function):
        return await function(*arguments)
    work = functools.partial(function, *arguments)
    answer = await _in_thread(work)
    return await answer if inspect.isawaitable(answer) else answer


def arguments_of(
    function: Callable[..., Any], given: object, config: RunnableConfig
) -> tuple[object, ...]:
    """What a function is called with: the configuration only if it takes a second argument."""
    return (given, config) if _takes_two(function) else (given,)


async def last_of(pieces: AsyncIterator[Any]) -> Any:
    """Join a stream: text and message chunks are added up, of anything else the last counts."""
    whole: Any = None
    async for piece in pieces:
        whole = whole + piece if _can_be_joined(whole, piece) else piece
    return whole


def message_of(answer: object) -> BaseMessage:
    """Take the message out of what a runnable gave.

    Raises:
        TypeError: It gave neither a message, nor text, nor a state with messages.
    """
    if isinstance(answer, BaseMessage):
        return answer
    if isinstance(answer, str):
        return AIMessage(answer)
    messages: Any = cast("Any", answer).get("messages") if isinstance(answer, dict) else None
    if messages:
        return message_of(messages[-1])
    kind = type(cast("object", answer)).__name__
    raise TypeError(f"it gave {kind}; give a message, text, or a state with `messages`")


def result_of(answer: object) -> SpecialistResult:
    """Take the result out of what a function gave.

    Raises:
        TypeError: It gave neither a `SpecialistResult`, nor a message, nor text.
    """
    if isinstance(answer, SpecialistResult):
        return answer
    message = message_of(answer)
    return SpecialistResult(result=AIMessage(message.text, id=message.id))


def with_message(result: SpecialistResult, message: BaseMessage) -> SpecialistResult:
    """Fill in the message that an output processor left out."""
    if not isinstance(cast("object", result), SpecialistResult):
        kind = type(cast("object", result)).__name__
        raise TypeError(f"the output processor gave {kind}; give a SpecialistResult")
    if result.result is not None:
        return result
    return result.replace(result=AIMessage(message.text, id=message.id))


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run in a daemon thread: the threads of asyncio and anyio are waited for at exit."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(answer)
        else:
            future.set_exception(error)

    def target() -> None:
        answer, error = None, None
        try:
            answer = context.run(work)
        except StopIteration as stop:
            error = RuntimeError("it raised StopIteration")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - it belongs to the one who waits
            error = raised
        # The loop may be closed by the time that an abandoned function ends.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, answer, error)

    threading.Thread(target=target, name="replan specialist", daemon=True).start()
    return await future


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    # A parameter with a default is the function's own, unless it is named for the configuration.
    return (
        sum(
            parameter.kind in positional
            and (parameter.default is parameter.empty or parameter.name == "config")
            for parameter in parameters
        )
        > 1
    )


def _is_async(function: Callable[..., Any]) -> bool:
    # An object that can be called may have a call that is async.
    call_of_object = getattr(type(function), "__call__", None)  # noqa: B004 - its kind, not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call_of_object)


def _can_be_joined(whole: object, piece: object) -> bool:
    if isinstance(piece, BaseMessageChunk):
        return isinstance(whole, type(piece))
    return isinstance(piece, str) and isinstance(whole, str)

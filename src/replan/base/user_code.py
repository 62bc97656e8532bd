"""How the code of users is called: sync or async, whole or in pieces.

Code that is not async may hang, so it runs in a thread that cannot keep the process alive. Python
waits for the threads of `concurrent.futures`, of asyncio's default executor and of anyio when the
process ends, even if their callers are gone. The threads here get only a moment: a thread in
foreign code while the interpreter shuts down can crash the process.
"""

import asyncio
import atexit
import contextvars
import functools
import inspect
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent import futures
from typing import Any, TypeVar
from weakref import WeakSet

from langchain_core.messages import BaseMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

T = TypeVar("T")

KEY = "idempotency_key"  # the parameter of a function or a tool that takes an idempotency key
MOMENT = 0.5  # seconds that the end of the process waits for abandoned work that still runs

_given_up: "WeakSet[Work]" = WeakSet()
_END = object()
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


async def call(function: Callable[..., Any], arguments: object, config: RunnableConfig) -> Any:
    """Call a function with the arguments that it takes; if it is not async, in a thread."""
    taken, named = _arguments_for(function, arguments, config)
    return await call_with(function, *taken, **named)


async def call_with(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function with just these arguments; if it is not async, in a thread."""
    # A thread that hangs is abandoned: it is a daemon, so the process can end without it.
    ready = functools.partial(function, *arguments, **named)
    if _is_async(function):
        return await ready()
    answer = await in_thread(ready)
    return await answer if inspect.isawaitable(answer) else answer


async def in_thread(work: Callable[[], T]) -> T:
    """Do the work in its own thread; cancelling this abandons the thread."""
    task = Work(functools.partial(contextvars.copy_context().run, work))
    threading.Thread(target=task.run, name="replan-work", daemon=True).start()
    return await asyncio.wrap_future(task)


async def call_in_pieces(
    function: Callable[..., Any], arguments: object, config: RunnableConfig
) -> AsyncIterator[Any]:
    """Call a function that yields its answer in pieces; a whole answer is one piece."""
    answer = await call(function, arguments, config)
    if hasattr(answer, "__aiter__"):
        async for piece in answer:
            yield piece
    elif hasattr(answer, "__next__"):
        while (piece := await in_thread(lambda: next(answer, _END))) is not _END:
            yield piece
    else:
        yield answer


async def joined(pieces: AsyncIterator[Any], on_text: Callable[[str], Awaitable[None]]) -> Any:
    """Join a stream: text and message chunks are added up; of other values, the last counts."""
    whole: Any = None
    async for piece in pieces:
        text = piece.text if isinstance(piece, BaseMessageChunk) else piece
        if isinstance(text, str) and text:
            await on_text(str(text))
        whole = whole + piece if _can_be_joined(whole, piece) else piece
    return whole


def parameters_of(work: object) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function by name; empty if it is not one, or has no signature."""
    try:
        return inspect.signature(work).parameters if callable(work) else {}
    except (TypeError, ValueError):
        return {}


def _arguments_for(
    function: Callable[..., Any], argument: object, config: RunnableConfig
) -> tuple[tuple[Any, ...], dict[str, str]]:
    """The arguments of a function: the configuration as second parameter, and the key by name."""
    parameters = parameters_of(function)
    # A parameter with a default is often bound by a closure, and not meant to be passed.
    needed = [
        parameter
        for name, parameter in parameters.items()
        if parameter.kind in _POSITIONAL
        and name != KEY
        and (parameter.default is inspect.Parameter.empty or name == "config")
    ]
    arguments = (argument, config) if len(needed) > 1 else (argument,)
    key = config.get("metadata", {}).get(KEY, "")
    return arguments, {KEY: key} if KEY in parameters else {}


def _is_async(function: Callable[..., Any]) -> bool:
    # A callable object may have an async `__call__`.
    call_of_object = getattr(type(function), "__call__", None)  # noqa: B004 - its kind, not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call_of_object)


def _can_be_joined(whole: object, piece: object) -> bool:
    if isinstance(piece, BaseMessageChunk | AddableDict):
        return isinstance(whole, type(piece))
    return isinstance(piece, str) and isinstance(whole, str)


@atexit.register
def still_at_work() -> bool:
    """Give abandoned work a moment to end; return whether some of it still runs."""
    until = time.monotonic() + MOMENT
    return not all(work.ended(until - time.monotonic()) for work in list(_given_up))


class Work(futures.Future[Any]):
    """Work in a thread that dies with the process; `leave` is called when its place is free."""

    def __init__(
        self, work: Callable[[], Any], leave: "Callable[[Work], None]" = lambda _: None
    ) -> None:
        super().__init__()
        self._work = work
        self._leave = leave
        self._is_over = threading.Event()

    def ended(self, within: float) -> bool:
        return self._is_over.wait(max(0.0, within))

    def cancel(self) -> bool:
        """Abandon the work: if it has begun, it continues, but nothing waits for it."""
        if super().cancel():
            return True
        if self.running():
            _given_up.add(self)
            self._leave(self)
        return False

    def run(self) -> None:
        if self.set_running_or_notify_cancel():
            try:
                self.set_result(self._work())
            except (StopIteration, KeyboardInterrupt) as error:
                # A future of asyncio refuses the first, and whoever waits would wait forever. The
                # second is not a person's Ctrl-C, which only the main thread gets.
                self.set_exception(RuntimeError(f"it raised {error!r}"))
            except BaseException as error:  # noqa: BLE001 - foreign code; who waits gets it
                self.set_exception(error)
        self._is_over.set()

"""An OpenAI-compatible HTTP server for tests: it plays a script, and fails as real ones do."""

import asyncio
import inspect
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self

try:
    from aiohttp import web
except ModuleNotFoundError as error:
    message = 'OpenAIServer needs aiohttp. Install it with: pip install "replan[testing]"'
    raise ModuleNotFoundError(message, name=error.name) from error

from replan.base.failures import describe
from replan.base.own_loop import Portal
from replan.state.usage import TokenCount
from replan.testing.answering import Exchange, answer, refusal
from replan.testing.replies import Reply, Said, as_reply
from replan.testing.script import Replies, Script, keys_of
from replan.testing.wire import (
    BadRequest,
    Capabilities,
    ChatRequest,
    embeddings_body,
    models_body,
    read_request,
    texts_in,
)

Freeform = Callable[[ChatRequest], Said | Awaitable[Said]]
"""A function, sync or async, that answers every request."""

_BAD_REQUEST = 400
_PATIENCE = 10.0
_GRACE = 0.05
_BACKLOG = 1024
_LARGEST_REQUEST = 256 * 1024 * 1024


class OpenAIServer:
    """Serves chat completions on 127.0.0.1, on a free port, from its own thread.

    The script is the one of `ScriptedModel`; each HTTP request takes one reply, a client's retry
    too. Or it is a function of the `ChatRequest`. At the end of the `with` block (plain or
    `async`) the server stops, cuts off what still hangs, and checks that the script is used up.
    It also serves embeddings: texts with words in common have similar vectors.

    Example:
        >>> with OpenAIServer(lambda request: "Hello.", models=("tiny",)) as server:
        ...     server.base_url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(
        self,
        script: Replies | Freeform,
        *,
        models: tuple[str, ...] = ("scripted",),
        streaming: bool = True,
        tools: bool = True,
        json_mode: bool = True,
        strict_roles: bool = False,
    ) -> None:
        self._capabilities = Capabilities(
            streaming=streaming, tools=tools, json_mode=json_mode, strict_roles=strict_roles
        )
        self._models = models
        self._embedded: list[str] = []
        self._freeform: Freeform | None = script if callable(script) else None
        self._script = Script(() if callable(script) else script)
        self._requests: list[ChatRequest] = []
        self._reported: list[TokenCount] = []
        self._arrival = threading.Condition()
        self._portal: Portal | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """What a client takes as the address: `http://127.0.0.1:PORT/v1`.

        Raises:
            RuntimeError: The server was not started.
        """
        if self._portal is None:
            msg = "The server is not started. Use it in a `with` block, or call start()."
            raise RuntimeError(msg)
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> tuple[ChatRequest, ...]:
        """Every readable chat request so far, refused ones too, in the order of arrival."""
        return tuple(self._requests)

    @property
    def calls(self) -> Counter[str]:
        """How many requests came by the narrowest key: `think`, `step 3/analyst`, `*`."""
        return Counter(keys_of(request.call)[0] for request in self._requests)

    @property
    def embedded(self) -> tuple[str, ...]:
        """Every text so far whose vector was asked for, in the order of arrival."""
        return tuple(self._embedded)

    @property
    def usage(self) -> TokenCount:
        """The sum of the usage that was reported to clients, exactly as they can count it."""
        return sum(self._reported, TokenCount())

    @property
    def left(self) -> dict[str, int]:
        """The keys that still have replies, and how many."""
        return self._script.left

    def wait_for_requests(self, count: int, *, seconds: float = _PATIENCE) -> None:
        """Wait until so many requests have arrived in all.

        Raises:
            TimeoutError: They did not.
        """
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self._requests) >= count, seconds):
                msg = f"{len(self._requests)} of {count} requests arrived in {seconds:g} s."
                raise TimeoutError(msg)

    def assert_finished(self) -> None:
        """Check that each reply was used and that no request was left without one.

        Raises:
            UnexpectedModelCall: A request found no reply, whatever its client made of the error.
            UnconsumedReplies: Replies are left over.
        """
        self._script.assert_finished()

    def start(self) -> Self:
        """Start serving; the address is known when this returns."""
        self._portal = Portal()
        self._port = self._portal.enter(self._serving())
        return self

    def close(self) -> None:
        """Stop serving; requests that still hang are cut off."""
        if self._portal is not None and self._portal.is_open:
            self._portal.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
        self._script.leave(error)

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await asyncio.to_thread(self.close)
        self._script.leave(error)

    @asynccontextmanager
    async def _serving(self) -> AsyncGenerator[int]:
        """Serve on a free port, and give it."""
        application = web.Application(client_max_size=_LARGEST_REQUEST)
        application.router.add_get("/v1/models", self._list_models)
        application.router.add_post("/v1/chat/completions", self._complete)
        application.router.add_post("/v1/embeddings", self._embed)
        runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=_GRACE
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, backlog=_BACKLOG).start()
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    async def _list_models(self, http: web.Request) -> web.StreamResponse:
        return web.Response(body=models_body(self._models), content_type="application/json")

    async def _embed(self, http: web.Request) -> web.StreamResponse:
        try:
            model, texts = texts_in(await http.read())
        except BadRequest as error:
            return refusal(_BAD_REQUEST, str(error), parameter=error.parameter)
        self._embedded += texts
        return web.Response(body=embeddings_body(model, texts), content_type="application/json")

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        arrived = time.monotonic()
        try:
            request = read_request(await http.read(), http.headers, arrived)
            number = self._record(request)
            self._capabilities.check(request.body)
        except BadRequest as error:
            return refusal(_BAD_REQUEST, str(error), parameter=error.parameter)
        try:
            reply = await self._reply(request)
        except AssertionError as error:
            # Not a status that clients try again.
            return refusal(_BAD_REQUEST, describe(error))
        except Exception as error:  # noqa: BLE001 - whatever a function of the script raises
            reply = as_reply(error)
        reply = reply.as_sent
        exchange = Exchange(
            http=http,
            request=request,
            reply=reply,
            number=number,
            report=lambda: self._reported.append(reply.counted(request.messages)),
        )
        return await answer(exchange)

    def _record(self, request: ChatRequest) -> int:
        with self._arrival:
            self._requests.append(request)
            self._arrival.notify_all()
            return len(self._requests)

    async def _reply(self, request: ChatRequest) -> Reply:
        if self._freeform is None:
            return await self._script.reply(request.call, request.messages)
        with self._script.remembering():
            reply = self._freeform(request)
            return as_reply(await reply if inspect.isawaitable(reply) else reply)

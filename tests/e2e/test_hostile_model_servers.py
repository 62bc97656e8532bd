"""A model server that sends too much, or elsewhere, ends one call with an error that says so."""

import gzip
import json
import resource
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest
from aiohttp import web
from langchain_core.language_models import BaseChatModel

from replan import (
    Host,
    Limits,
    ModelCallError,
    Specialist,
    Team,
    build_graph,
    open_storage,
    run,
)
from replan.base.failures import is_transient
from replan.errors import ConfigurationError, ReplyTooLongError
from replan.models.providers.chat_models import LangChainModels
from replan.models.providers.reply_body import LONGEST_BODY, LONGEST_STREAM
from replan.ports.storage import Storage
from replan.testing import OpenAIServer, always
from scripts import THREAD

Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]

_BLOCK = b"x" * 64_000


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[str]:
    """Serve all requests with a handler; give the base URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        await runner.cleanup()


async def endless(
    http: web.Request, piece: bytes, kind: str = "text/event-stream", **headers: str
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": kind, **headers})
    await response.prepare(http)
    while True:
        await response.write(piece)


async def endless_body(http: web.Request) -> web.StreamResponse:
    return await endless(http, _BLOCK, "application/json")


async def endless_line(http: web.Request) -> web.StreamResponse:
    return await endless(http, _BLOCK)


async def endless_event(http: web.Request) -> web.StreamResponse:
    return await endless(http, b"data: x\n")


async def endless_tokens(http: web.Request) -> web.StreamResponse:
    # Large ones, so that a test need not read very many.
    return await endless(http, b": " + _BLOCK + b"\r\n\r\n")


@cache
def packed_blanks() -> bytes:
    """Give 100 MB in 100 kB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(b" " * 1_000_000) for _ in range(100)) + packer.flush()


async def bomb(http: web.Request) -> web.StreamResponse:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=packed_blanks(), headers=headers)


async def streamed_bomb(http: web.Request) -> web.StreamResponse:
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}
    return web.Response(body=packed_blanks(), headers=headers)


def team(url: str, storage: Storage | None = None) -> Any:
    models = LangChainModels(base_url=url, max_retries=0)
    a = Specialist(name="a", intended_use="Works.", run=lambda context: "done")
    config = Team(
        host=Host(model="openai:tiny"),
        specialists=[a],
        limits=Limits(max_model_calls=2, step_timeout=30),
    )
    return build_graph(config, storage=storage, models=models)


async def first_piece(model: BaseChatModel) -> str:
    return (await anext(model.astream("Hi."))).text


@pytest.mark.parametrize("handler", [endless_body, bomb])
async def test_a_reply_that_does_not_end_is_a_failed_call(handler):
    async with served(handler) as url:
        with pytest.raises(ModelCallError, match="longer than 2,000,000 bytes"):
            await run(team(url), "Hi.")


@pytest.mark.parametrize(
    ("handler", "longest"),
    [
        (endless_line, LONGEST_BODY),
        (endless_event, LONGEST_BODY),
        (streamed_bomb, LONGEST_BODY),
        (endless_tokens, LONGEST_STREAM),
    ],
)
async def test_a_stream_that_does_not_end_is_broken_off(handler, longest):
    async with served(handler) as url:
        model = LangChainModels(base_url=url, max_retries=0).chat_model("openai:tiny")
        with pytest.raises(ReplyTooLongError, match=f"longer than {longest:,} bytes") as caught:
            async for _ in model.astream("Hi."):
                pass
    assert not is_transient(caught.value)


async def test_a_bomb_takes_little_memory():
    packed_blanks()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with served(bomb) as url:
        model = LangChainModels(base_url=url, max_retries=0).chat_model("openai:tiny")
        with pytest.raises(ReplyTooLongError):
            await model.ainvoke("Hi.")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_a_call_that_was_broken_off_is_made_once_and_counts():
    calls: list[str] = []

    async def counting(http: web.Request) -> web.StreamResponse:
        calls.append(http.path)
        return await endless_body(http)

    async with served(counting) as url, open_storage(":memory:") as storage:
        with pytest.raises(ModelCallError):
            await run(team(url, storage), "Hi.", run_id="r", config=THREAD)
        spent = await storage.log.spent("r")
    assert len(calls) == 1
    assert spent["run"].calls == 1
    assert spent["run"].tokens > 0


async def test_a_compressed_reply_of_usual_size_is_read():
    message = {"role": "assistant", "content": "Lima."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    async def packed(http: web.Request) -> web.StreamResponse:
        data = gzip.compress(json.dumps(body, indent=1).encode())
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=data, headers=headers)

    async with served(packed) as url:
        model = LangChainModels(base_url=url).chat_model("openai:tiny")
        assert (await model.ainvoke("Hi.")).text == "Lima."


async def test_a_compressed_stream_of_usual_size_is_read():
    event = b'data: {"choices":[{"index":0,"delta":{"content":"Lima."}}]}\r\n\r\n'

    async def packed(http: web.Request) -> web.StreamResponse:
        data = gzip.compress(event * 3 + b"data: [DONE]\n\n")
        headers = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}
        return web.Response(body=data, headers=headers)

    async with served(packed) as url:
        model = LangChainModels(base_url=url).chat_model("openai:tiny")
        pieces = [piece.text async for piece in model.astream("Hi.")]
    assert "".join(pieces) == "Lima." * 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_error_and_nothing_is_sent_on(status, stream):
    async with OpenAIServer({"*": always("Lima.")}) as other:

        async def sends_on(http: web.Request) -> web.StreamResponse:
            where = f"{other.base_url}/chat/completions?key=k-Secret-998877"
            return web.Response(status=status, headers={"Location": where})

        async with served(sends_on) as url:
            model = LangChainModels(base_url=url).chat_model("openai:tiny")
            asked = first_piece(model) if stream else model.ainvoke("Hi.")
            with pytest.raises(ConfigurationError, match="the server redirects to") as caught:
                await asked
        assert other.requests == ()
    assert other.base_url.removesuffix("/v1") in str(caught.value)
    assert "Secret" not in str(caught.value)
    assert not is_transient(caught.value)

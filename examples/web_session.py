"""A session over HTTP: FastAPI, server-sent events, a page that reconnects by event number.

    pip install fastapi uvicorn
    python examples/web_session.py
    python examples/web_session.py --model openai:NAME --base-url http://127.0.0.1:8000/v1

`app` is the server, and what stands below it plays the page. The model is the offline one, or the
one of `--model` or REPLAN_MODEL. A real server asks who calls, and takes `client.as_user(...)`.
"""

import asyncio
import json
import os
import socket
from argparse import ArgumentParser
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread
from typing import Annotated, Any

import httpx2
import uvicorn
from fastapi import Body, FastAPI, Header
from fastapi.responses import StreamingResponse

import replan
from replan import Host, Specialist, Team, ask_user, open_storage
from replan.sessions import AgentResult, ClientAgentAdapter, build_agent

arguments = ArgumentParser(description="Serve sessions, and have a conversation with the server.")
arguments.add_argument("--model", default=os.environ.get("REPLAN_MODEL", "offline"))
arguments.add_argument("--base-url")
given = arguments.parse_args()
turns: dict[str, list[Any]] = {}  # what was told of each; a real server forgets it in time
tasks, news = set[asyncio.Task[None]](), asyncio.Condition()


@asynccontextmanager
async def opened(app: FastAPI) -> AsyncGenerator[None]:
    painter = Specialist("painter", "Paints.", run=lambda _: ask_user("Colour?"), effects="pure")
    agent = build_agent(Team(Host(given.model), [painter]), base_url=given.base_url)
    async with agent, open_storage(":memory:") as storage:
        app.state.client = ClientAgentAdapter(storage, agent)
        yield


app = FastAPI(lifespan=opened)


@app.post("/{session}/{turn}")
async def take(session: str, turn: str, said: Annotated[Any, Body()]) -> None:
    """Take a turn once. It continues even if nobody follows it any more."""
    if (key := f"{session}/{turn}") not in turns:
        turns[key] = []
        parts = app.state.client.stream(session, said, turn_id=turn)
        tasks.add(asyncio.create_task(work(turns[key], parts)))


async def work(told: list[Any], parts: AsyncIterator[Any]) -> None:
    try:
        async for part in parts:
            await tell(told, part)
    except replan.ReplanError as error:
        await tell(told, AgentResult(success=False, response="", error=str(error)))


async def tell(told: list[Any], part: Any) -> None:
    async with news:
        told.append(part)
        news.notify_all()


@app.get("/{session}/{turn}")
async def follow(session: str, turn: str, last_event_id: Annotated[int, Header()] = 0) -> Any:
    """Send the events after a number, which a browser sends when it reconnects."""
    told = turns[f"{session}/{turn}"]

    async def after(number: int) -> AsyncIterator[str]:
        while not (number and isinstance(told[number - 1], AgentResult)):
            async with news:
                await news.wait_for(lambda known=number: len(told) > known)
            number += 1
            yield f"id: {number}\ndata: {told[number - 1].model_dump_json()}\n\n"

    return StreamingResponse(after(last_event_id), media_type="text/event-stream")


def page(url: str, said: str, loses_connection_after: int) -> None:
    """A browser's work: send a message, follow the events, reconnect after a loss."""
    httpx2.post(url, json=said).raise_for_status()
    last, result = 0, dict[str, Any]()
    while not result:
        headers = {"Last-Event-ID": str(last)}
        with httpx2.stream("GET", url, headers=headers, timeout=None) as following:
            for line in following.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    last = int(value)
                elif name == "data" and "response" in (data := json.loads(value)):
                    result = data
                if last == loses_connection_after and not line:
                    print(f"{said}: the connection is lost after event {last}")
                    break
    print(f"and is there again, up to the result: {result['response'] or result['error']}")


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = Thread(target=server.run, args=[[listener]])
        thread.start()
        session = f"http://127.0.0.1:{listener.getsockname()[1]}/eva"
        page(f"{session}/turn-1", "Paint the hall @painter", 3)
        page(f"{session}/turn-2", "blue", 2)
        server.should_exit = True
        thread.join()

"""What a server bears, and what it adds.

A thousand clients in another process follow the events of ten runs over HTTP, while each run does
twenty steps of 50 ms one after the other. Meanwhile the loop of the server is asked a hundred times
a second how late it is. Then the first piece of an answer is waited for, through the door for chat
clients and from the library itself, in turns; the model's server is one of our own on loopback.
"""

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

import openai
from langchain_openai import ChatOpenAI

from replan import Host, Specialist, Team, build_graph, open_server, stream
from replan.testing import OpenAIServer, ScriptedModel, always

_STREAMS, _RUNS, _STEPS, _SECONDS, _TURNS = 1_000, 10, 20, 0.05, 30
_TOKEN = "a-token-for-a-benchmark"  # noqa: S105 - of a server of a minute
_END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}
_SIMPLE = "---\ncomplexity: simple\n---\nParis is the capital of France."


async def work(_: object) -> str:
    """A step."""
    await asyncio.sleep(_SECONDS)
    return "done"


async def lags(into: list[float]) -> None:
    """Ask the loop again and again how late it is, in ms."""
    while True:
        at = time.perf_counter()
        await asyncio.sleep(0.01)
        into.append(1_000 * (time.perf_counter() - at - 0.01))


async def followed(url: str, runs: list[str]) -> int:
    """Follow runs with many streams, and count the events; the work of the other process."""
    host, port = url.removeprefix("http://").split(":")
    begun = asyncio.Semaphore(50)

    async def one(run: str) -> int:
        async with begun:
            reader, writer = await asyncio.open_connection(host, int(port))
            head = f"GET /runs/{run}/events HTTP/1.1\r\nHost: {host}\r\n"
            head += f"Authorization: Bearer {_TOKEN}\r\nAccept: text/event-stream\r\n\r\n"
            writer.write(head.encode())
        number = 0
        while b"event: idle" not in (line := await reader.readline()):
            number += line.startswith(b"id: ")
        writer.close()
        return number

    return sum(await asyncio.gather(*(one(runs[n % len(runs)]) for n in range(_STREAMS))))


async def streams() -> dict[str, float]:
    """Open the server and the streams, and measure the loop."""
    member = Specialist("worker", "Works.", run=work, effects="pure")
    team = Team(Host(ScriptedModel(_END)), [member])
    chain = "".join(
        f"- [ ] {n}. Dig @worker{f' (after {n - 1})' if n > 1 else ''}\n"
        for n in range(1, _STEPS + 1)
    )
    async with open_server({"team": team}, tokens=_TOKEN) as server:
        client = await _client(server.url)
        starts = [client("/runs", {"plan": chain}) for _ in range(_RUNS)]
        runs = [each["run_id"] for each in await asyncio.gather(*starts)]
        late: list[float] = []
        asking = asyncio.create_task(lags(late))
        command = [sys.executable, __file__, "--follow", server.url, *runs]
        began = time.perf_counter()
        child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        told, _ = await child.communicate()
        seconds = time.perf_counter() - began
        asking.cancel()
    cut = statistics.quantiles(late, n=100)
    return {
        "streams": _STREAMS,
        "events told": float(told),
        "seconds": seconds,
        "lag of the loop, median, ms": cut[49],
        "p99, ms": cut[98],
    }


async def _client(url: str) -> Any:
    import httpx2  # noqa: PLC0415 - the other process needs none

    http = httpx2.AsyncClient(
        base_url=url, headers={"Authorization": f"Bearer {_TOKEN}"}, trust_env=False, timeout=60
    )

    async def post(path: str, body: dict[str, str]) -> Any:
        return (await http.post(path, json=body)).json()

    return post


async def first_pieces() -> dict[str, float]:
    """Wait for first pieces, through the door and without it, in turns."""
    with OpenAIServer(lambda _: _SIMPLE) as models:
        model = ChatOpenAI(model="scripted", base_url=models.base_url, api_key="none")
        team = Team(Host(model), [Specialist("worker", "Works.", run=work)])
        graph = build_graph(team)
        async with (
            open_server({"team": team}, tokens=_TOKEN) as server,
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=_TOKEN) as client,
        ):
            own, door = [], []
            for _ in range(_TURNS):
                own.append(await _until_first(_pieces(graph)))
                door.append(await _until_first(_chunks(client)))
    return {
        "first piece of the library, median, ms": statistics.median(own),
        "through the door, median, ms": statistics.median(door),
        "added, ms": statistics.median(b - a for a, b in zip(own, door, strict=True)),
    }


async def _until_first(texts: AsyncGenerator[str]) -> float:
    began = time.perf_counter()
    async with contextlib.aclosing(texts):
        async for text in texts:
            if text:
                took = 1_000 * (time.perf_counter() - began)
                # All of it, so that the turns do not overlap.
                async for _ in texts:
                    pass
                return took
    raise RuntimeError("nothing was said")


async def _pieces(graph: Any) -> AsyncGenerator[str]:
    async for event in stream(graph, "The capital of France?"):
        yield event.text if event.type == "answer_token" else ""


async def _chunks(client: openai.AsyncOpenAI) -> AsyncGenerator[str]:
    messages: Any = [{"role": "user", "content": "The capital of France?"}]
    async for chunk in await client.chat.completions.create(
        model="team", messages=messages, stream=True
    ):
        yield (chunk.choices[0].delta.content or "") if chunk.choices else ""


async def main() -> None:
    """Measure, and print."""
    found = {**await streams(), **await first_pieces()}
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    print("| | |\n| --- | ---: |")
    for name, value in found.items():
        print(f"| {name} | {value:,.1f} |")


if __name__ == "__main__":
    if "--follow" in sys.argv:
        print(asyncio.run(followed(sys.argv[2], sys.argv[3:])))
    else:
        asyncio.run(main())

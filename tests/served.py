"""A real server on a free port of loopback, whose answers must be as it describes them."""

import asyncio
from contextlib import asynccontextmanager

import httpx
import httpx2
import jsonschema
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from replan import open_server
from replan.server.app import web_application
from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens, one_token

DESCRIBED = web_application().openapi()
OWNER = "the-token-of-the-owner"


def tokens_of(**identities):
    """Tokens `NAME-has-this-token` of identities by their names."""
    found = {}
    for name, fields in identities.items():
        one = one_token(f"{name}-has-this-token", Identity(name=name, **fields))
        found |= one.by_digest
    return Tokens(found)


def as_(name):
    return {"Authorization": f"Bearer {name}-has-this-token"}


async def check_described(response):
    """See that an answer is one of those that the document has for its address."""
    path, method = response.request.url.path, response.request.method.lower()
    template = next((each for each in DESCRIBED["paths"] if _is_of(path, each)), None)
    operation = DESCRIBED["paths"].get(template, {}).get(method)
    if operation is None:
        return
    kind = response.headers.get("content-type", "").partition(";")[0]
    answer = operation["responses"][str(response.status_code)]
    if kind.startswith("text/"):
        assert kind in answer["content"]
    elif kind:
        await response.aread()
        schema = {**answer["content"][kind]["schema"], "components": DESCRIBED["components"]}
        jsonschema.validate(response.json(), schema, jsonschema.Draft202012Validator)


def _is_of(path, template):
    parts, wanted = path.split("/"), template.split("/")
    return len(parts) == len(wanted) and all(
        part == each or each.startswith("{") for part, each in zip(parts, wanted, strict=True)
    )


@asynccontextmanager
async def served(teams, where=":memory:", tokens=OWNER, **options):
    """A server, and a client of its owner."""
    teams = teams if isinstance(teams, dict) else {"house": teams}
    async with (
        open_server(teams, storage=where, tokens=tokens, **options) as address,
        httpx.AsyncClient(
            base_url=address.url,
            headers={"Authorization": f"Bearer {OWNER}"},
            trust_env=False,
            timeout=60,
            event_hooks={"response": [check_described]},
        ) as client,
    ):
        yield client


async def rested(client, run_id, **options):
    """How a run stands once it rests."""
    async with asyncio.timeout(30):
        while True:
            run = (await client.get(f"/runs/{run_id}", **options)).json()
            if run["outcome"] != "running":
                return run
            async with client.stream(
                "GET",
                f"/runs/{run_id}/events",
                headers={"Accept": "text/event-stream", **options.get("headers", {})},
            ) as stream:
                async for _ in stream.aiter_lines():
                    pass


@asynccontextmanager
async def agent_of(client, headers=None, where="town", *, streaming=True):
    """A client that knows no more than the address of an agent and a token."""
    address = f"{str(client.base_url).rstrip('/')}/a2a/{where}"
    headers = headers or {"Authorization": f"Bearer {OWNER}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
        card = await A2ACardResolver(http, address).get_agent_card()
        config = ClientConfig(streaming=streaming, httpx_client=http)
        async with ClientFactory(config).create(card) as agent:
            yield agent


@asynccontextmanager
async def tools_of(client, token=OWNER, **options):
    """A client by MCP."""
    headers = {"Authorization": f"Bearer {token}"}
    address = f"{str(client.base_url).rstrip('/')}/mcp"
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), **options) as mcp,
    ):
        yield mcp

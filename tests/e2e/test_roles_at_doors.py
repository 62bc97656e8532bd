"""What clients call a system message, at every door: it reaches models as words of the user."""

import httpx2
import pytest
from a2a.helpers.proto_helpers import new_text_part
from a2a.types.a2a_pb2 import Message as A2AMessage, Role, SendMessageRequest
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from replan import Host, MemoryOptions, Specialist, Team
from replan.assembly.graphs import team_graph
from replan.models.providers.chat_models import LangChainModels
from replan.sessions import AgentContext, build_agent
from replan.testing import OpenAIServer
from roles import check_requests, foreign
from scripts import THREAD
from served import OWNER, agent_of, served

NOON = "2026-03-01T12:00:00+00:00"
KEY = "a key of many characters"
PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Look @clerk\n"


def reply(request):
    """A plan for what is to be planned, else an answer at once."""
    node = request.call.node
    if node == "think":
        is_planned = "plan it" in request.messages[-1].text
        return PLAN if is_planned else "---\ncomplexity: simple\n---\nGood day."
    return "---\nverdict: complete\n---\nDone." if node == "feedback" else "Found."


@pytest.fixture
def models():
    with OpenAIServer(reply, strict_roles=True) as server:
        yield server


def team_on(models, **settings):
    clerk = Specialist(
        "clerk",
        "Looks.",
        chat_model=LangChainModels(base_url=models.base_url).chat_model("openai:m"),
    )
    host = Host(LangChainModels(base_url=models.base_url).chat_model("openai:m"))
    return Team(host, [clerk], **settings)


def said(role, text):
    return {"role": role, "content": text, "timestamp": NOON}


def history(turns=1):
    """A history that begins with a client's instructions, and has others in between."""
    talk = [
        each for at in range(turns) for each in (said("user", f"a{at}"), said("assistant", "b"))
    ]
    return [
        said("system", foreign("first")),
        *talk[:-1],
        said("system", foreign("later")),
        talk[-1],
    ]


def summarised(turns):
    ids = {"covered": 3, "last_covered_id": "m3", "text": foreign("summary")}
    return {"dialogue_history": history(turns), "project_state": {"memory_summary": ids}}


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("memory", [{}, {"history_limit": 2}, {"mode": "full"}], ids=str)
@pytest.mark.parametrize("text", ["Hello", "Look, plan it"])
async def test_a_context_s_system_entry_is_said_by_the_user(models, key, memory, text):
    agent = build_agent(team_on(models, memory=MemoryOptions(**memory)), context_key=key)
    for turns in (1, 9):
        context = {"session_id": "s", "dialogue_history": history(turns)}
        result = await agent.process(text, context)
        assert result.success, result.error
    new = {"session_id": "new", "dialogue_history": [said("system", foreign("first"))]}
    assert (await agent.process(text, new)).success
    # No window leaves out what the history begins with.
    check_requests(models, "first")
    for request in models.requests:
        assert "§first§" in str(request.body["messages"])


async def test_a_context_s_summary_is_in_the_message_of_the_request(models):
    memory = MemoryOptions(mode="summary", summary_enabled=False)
    agent = build_agent(team_on(models, memory=memory), context_key=KEY)
    for text in ("Hello", "Look, plan it"):
        await agent.process(text, {"session_id": "s", **summarised(9)})
    check_requests(models, "first", "later", "summary")
    for request in models.requests:
        assert "§summary§" in request.messages[-1].text


async def test_an_imported_session_s_system_entry_is_said_by_the_user(models):
    async with served({"town": team_on(models)}) as client:
        context = AgentContext.from_dict({"session_id": "s", "dialogue_history": history(3)})
        sent = await client.post("/sessions", json={"context": context.to_dict()})
        assert sent.status_code == 201, sent.text
        for text in ("Hello", "Look, plan it"):
            turn = await client.post("/sessions/s/turns", json={"input": text})
            assert turn.json()["success"], turn.text
    check_requests(models, "first", "later")


async def test_chat_and_ag_ui_clients_have_no_system_message(models):
    roles = [{"role": role, "content": foreign(role)} for role in ("system", "developer")]
    chat = [*roles, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi."}]
    chat += [roles[0], {"role": "user", "content": foreign("request") + ", plan it"}]
    talk = [{"id": str(at), **each} for at, each in enumerate(chat)]
    context = [{"description": foreign("description"), "value": foreign("known")}]
    body = {"threadId": "t", "runId": "r", "state": {"x": foreign("state")}, "messages": talk}
    body |= {"context": context, "tools": [], "forwardedProps": {}}
    async with served({"town": team_on(models)}) as client:
        told = await client.post("/v1/chat/completions", json={"model": "town", "messages": chat})
        assert told.status_code == 200, told.text
        check_requests(models, "system", "developer", "request")
        seen = await client.post("/ag-ui/town", json=body)
        assert "RUN_FINISHED" in seen.text
    check_requests(models, "known", "description")


async def test_a2a_mcp_and_run_requests_are_said_by_the_user(models):
    async with served({"town": team_on(models)}) as client:
        async with agent_of(client) as agent:
            part = new_text_part(foreign("a2a") + ", plan it")
            sent = A2AMessage(message_id="m", role=Role.ROLE_USER, parts=[part])
            assert [each async for each in agent.send_message(SendMessageRequest(message=sent))]
        headers = {"Authorization": f"Bearer {OWNER}"}
        address = f"{str(client.base_url).rstrip('/')}/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http)) as mcp,
        ):
            result = await mcp.call_tool("town", {"task": foreign("mcp"), "plan": _plan("brief")})
            assert not result.is_error
        body = {"task": foreign("task"), "plan": _plan("plan")}
        assert (await client.post("/runs", json=body)).status_code == 201
        await _finished(client)
    check_requests(models, "a2a", "mcp", "brief", "task", "plan")


def _plan(place):
    return f"# {foreign(place)}\n\n- [ ] 1. {foreign(place)} @clerk\n\n  {foreign(place)}\n"


async def _finished(client):
    runs = (await client.get("/runs")).json()["runs"]
    for each in runs:
        async with client.stream(
            "GET", f"/runs/{each['run_id']}/events", headers={"Accept": "text/event-stream"}
        ) as stream:
            async for _ in stream.aiter_lines():
                pass


SYSTEM = [
    ("system", foreign("client")),
    ["system", foreign("client")],
    {"role": "developer", "content": foreign("client")},
    {"type": "system", "content": [{"type": "text", "text": foreign("client")}]},
    SystemMessage(foreign("client")),
]


@pytest.mark.parametrize("message", SYSTEM, ids=["pair", "list", "developer", "blocks", "object"])
async def test_a_client_of_a_served_graph_has_no_system_message(models, message, tmp_path):
    file = tmp_path / "team.yaml"
    file.write_text(TEAM.replace("URL", models.base_url))
    graph = team_graph(file, environment={"OPENAI_API_KEY": "k"}, served=True)
    graph.checkpointer = InMemorySaver()
    await graph.ainvoke({"messages": [message, ("user", "Hello")]}, THREAD)
    await graph.aupdate_state(THREAD, {"messages": [message]}, as_node="direct_answer")
    await graph.ainvoke({"messages": [("user", "Look, plan it")]}, THREAD)
    whole = {"messages": Overwrite([message, AIMessage("Good day.")])}
    await graph.aupdate_state(THREAD, whole, as_node="final_answer")
    await graph.ainvoke(Command(update={"messages": [message]}), THREAD)
    await graph.ainvoke({"messages": [("user", "Hello")]}, THREAD)
    check_requests(models, "client")
    state = (await graph.aget_state(THREAD)).values
    assert "system" not in {each.type for each in state["messages"]}


TEAM = """\
host: {model: main}
specialists:
  - {name: clerk, intended_use: Looks., chat_model: main}
models:
  main: {model: big-one, base_url: URL}
"""

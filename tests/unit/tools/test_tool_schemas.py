"""Schemas from outside that are small and become large: measured first, refused by name."""

import asyncio
import json
import sys

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from replan import Host, Specialist, Team, build_graph, run_sync
from replan.errors import ConfigurationError, ToolServerError
from replan.ports.tool_provider import ToolDefinition
from replan.specialists.granted_tools import GrantedTools
from replan.specialists.tool_servers.http import Program
from replan.specialists.tool_servers.server import McpServer
from replan.testing import ScriptedModel
from schemas import doubling_schema

PROGRAM = """
import json, sys
def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)
tools, content = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "odd", "version": "1"}})
    elif method == "tools/list":
        send(id=number, result={"tools": tools})
    elif method == "tools/call":
        send(id=number, result={"content": [{"type": "text", "text": "paid"}],
             "structuredContent": content})
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})
"""


def server(tools, content=None):
    words = ["-c", PROGRAM, json.dumps([tools, content])]
    return McpServer("evil", Program(sys.executable, words, {}, None), seconds=30.0)


def listed(**schemas):
    return [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]


PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}}
BOMBS = [
    doubling_schema(30),
    doubling_schema(30, key="definitions"),
    doubling_schema(30, inner="anyOf"),
    doubling_schema(12, fan=5, description="as well"),
]


class Provider:
    """A provider of a team's own, with the same tools."""

    def __init__(self, **schemas):
        self.schemas = schemas

    async def list_tools(self):
        return [ToolDefinition(name=k, parameters=v) for k, v in self.schemas.items()]

    async def get_tool(self, name):
        raise AssertionError(name)

    async def execute(self, name, arguments):
        return f"{name} is done"


@pytest.mark.parametrize("schema", BOMBS)
async def test_a_schema_that_doubles_is_refused_by_name_and_leaves_the_other_tools(schema):
    odd = server(listed(bad=schema, good=PLAIN))
    for provider in (odd, Provider(bad=schema, good=PLAIN)):
        granted = GrantedTools({"evil": provider}, ["evil/*"], ["evil/*"])
        (tool,), approved = await granted.now()
        assert (tool.name, approved) == ("evil__good", {"evil__good"})
        problem = "evil: the schema of its tool bad cannot be used: it has more than"
        with pytest.raises(ToolServerError, match=problem):
            await GrantedTools({"evil": provider}, ["evil/bad"], []).now()
    await odd.aclose()


async def test_where_none_of_the_tools_can_be_used_it_is_an_error():
    provider = Provider(bad=BOMBS[0], worse=BOMBS[1])
    with pytest.raises(ToolServerError, match="evil: the schema of its tool bad cannot be used"):
        await GrantedTools({"evil": provider}, ["evil/*"], []).now()


async def test_the_tools_of_one_loop_are_bounded_together():
    long = {"properties": {"a": {"enum": ["x" * 49_000]}}}
    provider = Provider(**{f"t{n}": long for n in range(100)})
    tools, _ = await GrantedTools({"evil": provider}, ["evil/*"], []).now()
    assert 30 < len(tools) < 50


async def test_schemas_are_measured_while_the_loop_is_free():
    ended, turns = asyncio.Event(), 0

    async def others():
        nonlocal turns
        while not ended.is_set():
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    provider = Provider(**{f"t{n}": BOMBS[0] for n in range(30)}, good=PLAIN)
    await GrantedTools({"evil": provider}, ["evil/*"], []).now()
    ended.set()
    await beside
    assert turns > 30


def test_a_run_goes_on_without_the_tool_and_says_so():
    call = {"name": "evil__good", "args": {"a": "x"}, "id": "1"}
    script = {
        "step 1": [AIMessage("", tool_calls=[call]), "Done."],
        "feedback": "---\nverdict: complete\n---\nDone.",
    }
    with ScriptedModel(script) as model:
        worker = Specialist("worker", "Works.", chat_model=model, tools=["evil/*"])
        provider = Provider(bad=BOMBS[0], worse=BOMBS[1], good=PLAIN)
        team = Team(Host(model), [worker], tool_servers={"evil": provider})
        result = run_sync(team, {"plan": "- [ ] 1. Work @worker\n"})
    assert result.results[1].result.text == "Done."
    (warning,) = result.warnings
    assert warning == (
        "Tools of the tool server evil are left out: the schema of its tool bad cannot be used: "
        "it has more than 50,000 characters, written out; and 1 more."
    )


@pytest.mark.parametrize(
    "form",
    [
        {"type": "object", "properties": {"n": {"type": "integer", "allOf": [{}]}}},
        {"type": "object", "properties": {"n": {"pattern": "^(a+)+$"}}},
        {"allOf": [{"$ref": "#/$defs/d29"}], **doubling_schema(30, inner="allOf")},
        {"type": "object", "required": ["n"], "properties": {"n": {"$ref": "https://x.example"}}},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1_500)}},
    ],
)
async def test_of_the_form_of_a_result_only_what_takes_no_time_is_checked(form):
    pay = [{"name": "pay", "inputSchema": PLAIN, "outputSchema": form}]
    content = {"n": "a" * 40 + "!"} if "integer" not in json.dumps(form) else {"n": 5}
    odd = server(pay, content)
    await odd.list_tools()
    assert await odd.execute("pay", {}) == "paid"
    await odd.aclose()


def test_a_tool_of_a_teams_own_with_such_a_schema_is_a_mistake_of_the_team():
    tool = StructuredTool(name="bad", description="Bad.", args_schema=BOMBS[0], func=print)
    with ScriptedModel({}) as model:
        worker = Specialist("worker", "Works.", chat_model=model, tools=[tool])
        with pytest.raises(ConfigurationError, match="more than 50,000 characters") as error:
            build_graph(Team(Host(model), [worker]))
    assert "tools[0].args_schema" in str(error.value)

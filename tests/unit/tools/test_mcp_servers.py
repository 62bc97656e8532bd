"""The adapter to MCP servers: what it makes of results, and of servers that are out of order."""

import asyncio
import json
import sys

import pytest

import mcp_servers
from cases import cases_of
from replan import ConfigurationError, Specialist, Team, TeamError, ToolServer
from replan.errors import ToolCallLostError, ToolServerError
from replan.ports.ask_user import Waiting
from replan.ports.run_context import using
from replan.ports.tool_provider import server_in
from replan.specialists.granted_tools import GrantedTools, shown_name
from replan.specialists.steps.step_record import Asker
from replan.specialists.tool_servers.connection import StderrTail
from replan.specialists.tool_servers.http import Program
from replan.specialists.tool_servers.server import McpServer

CASES = cases_of(__file__)

# A server of a protocol before 2026, which asks in a message of its own.
OLD = """
import json, sys
def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)
print("I greet before I begin", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "old", "version": "1"}})
    elif method == "tools/list":
        send(id=number, result={"tools": [
            {"name": "book", "inputSchema": {"type": "object"}},
            {"name": "odd.name", "inputSchema": {"type": "object",
             "properties": {"a": {"$ref": "#/nowhere"}}}}]})
    elif method == "tools/call":
        send(id=1000 + number, method="elicitation/create", params={
             "message": "For whom, and when?",
             "requestedSchema": {"type": "object", "required": ["who"], "properties": {
                 "who": {"type": "string"}, "day": {"type": "integer"}}}})
    elif number is not None and number >= 1000:
        said = json.dumps(message.get("result", message.get("error")))
        send(id=number - 1000, result={"content": [{"type": "text", "text": said}]})
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})
"""


def python(code, seconds=30.0):
    return McpServer("t", Program(sys.executable, ["-c", code], {}, None), seconds=seconds)


@pytest.fixture
async def old():
    server = python(OLD)
    yield server
    await server.aclose()


def asker(asked, answers):
    def new(question):
        asked.append(question)
        answer = answers.get(len(asked))
        return question if answer is None else question.replace(answer=answer)

    return using(asker=Asker(1, "worker", new=new))


async def test_a_server_of_an_older_protocol_asks_the_step_that_calls_it(old):
    asked = []
    with pytest.raises(Waiting), asker(asked, {}):
        await old.execute("book", {})
    assert asked[0].text == (
        "The tool server t asks: For whom, and when?\n"
        "Answer with a JSON object of who (string), day (integer); or no."
    )
    with asker([], {1: '{"who": "Ada", "day": 3}'}):
        assert '"action": "accept", "content": {"who": "Ada", "day": 3}' in await old.execute(
            "book", {}
        )


def asking(properties):
    whole = """{"type": "object", "required": ["who"], "properties": {
                 "who": {"type": "string"}, "day": {"type": "integer"}}}"""
    assert whole in OLD
    return python(OLD.replace(whole, repr({"type": "object", "properties": properties})))


@pytest.mark.parametrize(
    "properties",
    [*CASES["schemas"], {"a": {"type": "string", "enum": ["x" * 10_000]}}],
)
async def test_a_server_that_asks_by_no_schema_is_told_so_and_nobody_is_asked(properties):
    server, asked = asking(properties), []
    with asker(asked, {}):
        answer = await server.execute("book", {})
    assert "the schema of what is asked is not valid" in answer
    assert not asked
    await server.aclose()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "(a+)+$"},
        {"$ref": "#/nowhere"},
        True,
    ],
)
async def test_what_of_a_schema_takes_forever_or_leads_nowhere_is_the_servers_to_check(schema):
    server, given = asking({"a": schema}), "a" * 60 + "!"
    with asker([], {1: given}):
        answer = await server.execute("book", {})
    assert json.loads(answer) == {"action": "accept", "content": {"a": given}}
    await server.aclose()


async def test_of_calls_at_once_nobody_knows_which_an_older_server_asks_for(old):
    asked = []

    async def call():
        with asker(asked, {}):
            return await old.execute("book", {})

    await old.list_tools()
    answers = await asyncio.gather(call(), call(), return_exceptions=True)
    assert not asked
    assert any("decline" in str(answer) for answer in answers)


async def test_what_is_to_be_approved_must_be_granted(old):
    with pytest.raises(ToolServerError, match="it has no tool t/buy"):
        await GrantedTools({"t": old}, ["t/book"], ["t/buy"]).now()


@pytest.mark.parametrize(
    ("code", "seconds", "problem"),
    [
        ("raise SystemExit('no licence')", 30, "it said: no licence"),
        ("while True: print('nonsense')", 30, "Connection closed"),
        ("import sys; sys.stdin.read()", 0.5, "did not answer within 0.5 s as an MCP server does"),
    ],
)
async def test_a_program_that_is_no_server_is_named_with_its_last_words(code, seconds, problem):
    server = python(code, seconds)
    with pytest.raises(ToolServerError, match="tool server t: the program ") as error:
        await server.list_tools()
    assert problem in str(error.value)


def test_a_program_may_say_as_much_as_it_likes_and_the_end_of_it_is_kept():
    words = StderrTail()
    words.sink.write("x" * 5_000_000 + "no licence")
    told = words.end()
    assert told.startswith("; it said: xxx")
    assert told.endswith("no licence")
    assert len(told) < 600


async def test_a_server_that_died_is_started_again(tmp_path):
    way = Program(sys.executable, [str(mcp_servers.PROGRAM), str(tmp_path)], {}, None)
    server = McpServer("t", way, seconds=30)
    with pytest.raises(ToolCallLostError, match="pay_and_die gave no answer") as error:
        await server.execute("pay_and_die", {"amount": 1})
    assert str(error.value).endswith("it said: database file is corrupt")
    assert await server.execute("put", {"config": "a", "self_": "b"}) == "put a"
    assert (await server.get_tool("put")).description == "Put a configuration."
    assert await server.execute("pieces", {}) == (
        "a text\n"
        "[image of type image/png, 3 bytes, not shown]\n"
        "[report: file:///report.md] The report.\n"
        "[file:///a.txt]\ninside\n"
        "[file:///b.bin: application/x-b, 3 bytes, not shown]"
    )
    assert {tool.effects for tool in await server.list_tools()} == {"unsafe"}
    await server.aclose()


@pytest.mark.parametrize(
    ("path", "name"),
    [("git/log", "git__log"), ("git/admin.log", "git__admin_log_"), ("g/" + "a" * 80, "g__aaa")],
)
def test_models_are_told_names_that_they_take(path, name):
    shown = shown_name(path)
    assert shown.startswith(name)
    assert len(shown) <= 64


@pytest.mark.parametrize("other", ["module:function", "search", "a__b/c", "/x", "git/", "g it/x"])
def test_what_is_no_grant(other):
    assert server_in(other) == ""


def team(**server):
    member = Specialist("a", "Works.", chat_model="offline", tools=["t/x"])
    return Team("offline", [member], tool_servers={"t": ToolServer(**server)})


@pytest.mark.parametrize(
    ("server", "field", "code"),
    CASES["servers"],
)
def test_a_wrong_server_is_told_with_its_field(server, field, code):
    with pytest.raises(TeamError) as error:
        team(**server)
    assert [(each.field, each.code) for each in error.value.mistakes] == [(field, code)]


def test_a_tool_of_a_server_that_nobody_describes_is_told():
    member = Specialist("a", "Works.", chat_model="offline", tools=["files/x"], approve=["fils/x"])
    with pytest.raises(TeamError) as error:
        Team("offline", [member], tool_servers={"files": ToolServer(command="a")})
    assert error.value.mistakes[0].field == "specialists[0].approve[0]"
    assert "Did you mean files?" in str(error.value)


@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"url": "http://a", "token_env": "MISSING"}, "token_env"),
        ({"url": "http://a", "headers_from": {"X-Key": "MISSING"}}, "headers_from.X-Key"),
        ({"command": "a", "env_from": ["MISSING"]}, "env_from"),
    ],
)
def test_a_variable_that_is_not_set_is_told_when_the_server_is_built(server, field):
    with pytest.raises(
        ConfigurationError, match="the environment variable MISSING is not"
    ) as error:
        ToolServer(**server).built("t", {"MISSING": ""})
    assert error.value.field == f"tool_servers.t.{field}"


async def test_where_nobody_can_be_asked_a_server_gets_a_no(old):
    assert '"action": "decline"' in await old.execute("book", {})

"""MCP servers that answer wrongly: what may have been done counts as lost, and is told by name."""

import asyncio
import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from http_answers import Answering, serving
from replan import Host, Specialist, Team, ToolServer
from replan.errors import ToolCallLostError, ToolServerError
from replan.specialists.granted_tools import GrantedTools, shown_name
from replan.specialists.tool_servers.http import Address, Program
from replan.specialists.tool_servers.results import LONGEST_MESSAGE
from replan.specialists.tool_servers.server import McpServer
from replan.testing import ScriptedModel
from replan.views.ahead.team_outlook import known_servers

# A server of a protocol before 2026, whose answer to a call is what its argument says.
PROGRAM = """
import json, sys, time
def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)
listed = 0
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    how = message.get("params", {}).get("arguments", {}).get("how")
    if method == "initialize":
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "odd", "version": "1"}})
    elif method == "tools/list":
        listed += 1
        names = TOOLS
        send(id=number, result={"tools": [
            {"name": name, "inputSchema": {"type": "object"}, "outputSchema": {
             "type": "object", "properties": {"n": {"type": "integer"}}}} for name in names]})
    elif how == "lie":
        send(id=number, result={"content": [], "structuredContent": {"n": "none"}})
    elif how == "no result":
        send(id=number, result={"paid": True})
    elif how == "internal error":
        send(id=number, error={"code": -32603, "message": "the drive is full"})
    elif how == "long":
        sys.stdout.write("x" * 50_000_000)
        sys.stdout.flush()
        time.sleep(60)
    elif how == "bytes":
        sys.stdout.buffer.write(b"\\xff\\xfe is no text\\n")
        sys.stdout.buffer.flush()
        send(id=number, result={"content": [{"type": "text", "text": "paid"}],
             "structuredContent": {"n": 1}})
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})
"""


def program(seconds=30.0, tools='["pay"]'):
    code = PROGRAM.replace("TOOLS", tools)
    return McpServer("t", Program(sys.executable, ["-c", code], {}, None), seconds=seconds)


@pytest.fixture
async def odd():
    server = program()
    yield server
    await server.aclose()


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("lie", "pay gave an answer that cannot be used: RuntimeError: Invalid structured content"),
        ("no result", "pay gave an answer that cannot be used: "),
        ("long", f"one of its messages has more than {LONGEST_MESSAGE:,} bytes"),
    ],
)
async def test_a_call_with_an_answer_that_cannot_be_used_may_have_been_carried_out(
    odd, how, problem
):
    with pytest.raises(ToolCallLostError, match="tool server t: pay gave") as error:
        await odd.execute("pay", {"how": how})
    assert problem in str(error.value)
    assert len(str(error.value)) < 3_000


async def test_what_is_no_text_is_no_message_and_ends_nothing(odd):
    assert await odd.execute("pay", {"how": "bytes"}) == "paid"


@pytest.mark.parametrize("value", ["\ud800", object(), json.loads("[" * 900 + "]" * 900)])
async def test_arguments_that_no_message_can_hold_are_not_sent_and_end_nothing(odd, value):
    (tool,) = await odd.list_tools()
    with pytest.raises(ToolServerError, match="t: pay: its arguments cannot be sent") as error:
        await odd.execute("pay", {"how": "bytes", "what": value})
    assert not isinstance(error.value, ToolCallLostError)
    assert await odd.list_tools() == [tool]


async def test_a_call_before_which_the_tools_cannot_be_listed_was_not_made():
    server = program(tools="[] if listed == 1 else 1")
    await server.list_tools()
    with pytest.raises(ToolServerError, match="t: tools/list gave no answer") as error:
        await server.execute("pay", {"how": "bytes"})
    assert not isinstance(error.value, ToolCallLostError)
    await server.aclose()


async def test_a_tool_that_is_gone_is_not_called():
    server = program(tools='["pay"] if listed == 1 else []')
    assert [tool.name for tool in await server.list_tools()] == ["pay"]
    assert await server.list_tools() == []
    with pytest.raises(ToolServerError, match="t: it has no tool pay") as error:
        await server.execute("pay", {"how": "bytes"})
    assert not isinstance(error.value, ToolCallLostError)
    await server.aclose()


async def test_of_more_tools_than_can_be_used_those_that_are_granted_are():
    server = program(tools="[f'{each}/{n}' for each in ('get', 'put') for n in range(1_500)]")
    tools, _ = await GrantedTools({"t": server}, ["t/get/7", "t/put/*"], ()).now()
    assert len(tools) == 1_501
    assert tools[0].name == shown_name("t/get/7")
    problem = r"more than 2,000 of its tools fit \*. Grant fewer, by their names"
    with pytest.raises(ToolServerError, match=f"tool server t: {problem}"):
        await GrantedTools({"t": server}, ["t/*"], ()).now()
    with pytest.raises(ToolServerError, match=r"t: it has no tool t/none\.$"):
        await GrantedTools({"t": server}, ["t/none"], ()).now()
    with pytest.raises(ToolServerError, match="tool server t: it has no tool pay"):
        await server.execute("pay", {"how": "bytes"})
    await server.aclose()


def checked_server(grants, tools):
    server = ToolServer(command=sys.executable, args=["-c", PROGRAM.replace("TOOLS", tools)])
    with ScriptedModel({}) as model:
        buyers = [
            Specialist(name=f"buyer-{n}", intended_use="Buys.", chat_model=model, tools=row)
            for n, row in enumerate(grants)
        ]
        team = Team(host=Host(model=model), specialists=buyers, tool_servers={"t": server})
        (known,) = known_servers(team, starts=True)
    return known


def test_a_check_of_a_server_says_what_its_users_would_find():
    tools = "[f'{each}/{n}' for each in ('get', 'put') for n in range(1_500)]"
    # Each loop has its own bound: together they may be granted more.
    known = checked_server([["t/get/*"], ["t/put/*", "t/get/7"]], tools)
    assert (len(known.tools), known.problem) == (3_000, None)
    assert any("these are the granted ones" in line for line in known.lines)
    known = checked_server([["t/get/7"]], tools)
    assert ([each.name for each in known.tools], known.is_whole) == (["get/7"], False)
    known = checked_server([["t/*"]], tools)
    assert "more than 2,000 of its tools fit *. Grant fewer, by their names" in known.problem
    known = checked_server([["t/pay", "t/none"]], "['pay', 'order']")
    assert known.problem == "it has no tool t/none"
    known = checked_server([["t/pay"]], "['pay', 'order']")
    assert (len(known.tools), known.is_whole, known.problem) == (2, True, None)


async def test_a_server_that_hangs_is_waited_for_once():
    server = program(seconds=1.0, tools="time.sleep(60)")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(ToolServerError, match="t: tools/list did not answer within 1 s"):
        await server.list_tools()
    assert loop.time() - begun < 2.5
    await server.aclose()


def result_of(message):
    """What an MCP server of a protocol before 2026 answers until a tool is called."""
    if message["method"] == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    if message["method"] == "tools/list":
        return {"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]}
    return None


class Odd(Answering, BaseHTTPRequestHandler):
    """Answers as its server is told to, where it is not to answer as any other server."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = None if self.server.is_odd_at_once else result_of(message)
        if result is not None:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
            self.give(200, body.encode(), **{"mcp-session-id": "s1"})
        elif self.server.is_odd_at_once or message["method"] == "tools/call":
            self.server.answer(self, message)
        else:
            self.give(404 if "id" in message else 202, b"")

    def do_GET(self):
        self.give(405, b"")

    def do_DELETE(self):
        if self.server.is_parting:
            self.give(200, b"")
        else:
            self.server.is_over.wait(30)

    def give(self, status, body, kind="application/json", **headers):
        super().give(status, body, **{"content-type": kind, **headers})


@contextmanager
def over_http(answer, *, is_odd_at_once=False, is_parting=True):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    server.answer, server.is_odd_at_once = answer, is_odd_at_once
    server.is_parting, server.is_over = is_parting, threading.Event()
    with serving(server) as url:
        try:
            yield McpServer("t", Address(f"{url}/mcp", {}), seconds=20)
        finally:
            server.is_over.set()


def html(handler, _):
    handler.give(200, b"<p>Welcome</p>", "text/html")


def nothing(handler, _):
    handler.give(202, b"")


def garbage(handler, _):
    handler.give(200, b"{nonsense")


def large(handler, _):
    handler.give(200, b'"' + b"x" * 50_000_000)


def gateway(handler, _):
    handler.give(504, b"late", "text/plain")


def half(handler, _):
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "100")
    handler.end_headers()
    handler.wfile.write(b'{"jsonrpc"')
    handler.close_connection = True


def closed_stream(handler, _):
    handler.give(200, b": hello\n\n", "text/event-stream")


def large_event(handler, _):
    handler.give(200, b"data: " + b"x" * 20_000_000, "text/event-stream")


def refused(handler, _):
    handler.give(401, b"who are you?", "text/plain")


def forgotten(handler, message):
    error = {"code": -32001, "message": "Session not found"}
    body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
    handler.give(404, json.dumps(body).encode())


def elsewhere(handler, _):
    handler.give(307, b"", location="http://127.0.0.1:9/other")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (html, "its answer with status 200 OK is not a message"),
        (nothing, "its answer with status 202 Accepted is not a message"),
        (garbage, "Failed to parse JSON response"),
        (large, f"one of its messages has more than {LONGEST_MESSAGE:,} bytes"),
        (gateway, "it answered with status 504 Gateway Timeout"),
        (half, "its answer was cut off"),
        (closed_stream, "SSE stream ended without a response"),
        (large_event, "SSE stream failed"),
    ],
)
async def test_over_http_what_may_have_been_carried_out_counts_as_lost(answer, problem):
    with over_http(answer) as server:
        with pytest.raises(ToolCallLostError, match="tool server t: pay gave no answer") as error:
            await server.execute("pay", {})
        await server.aclose()
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (refused, "pay: it answered with status 401 Unauthorized"),
        (forgotten, "pay: it has forgotten its session"),
        (elsewhere, "http://127.0.0.1:9/other"),
    ],
)
async def test_over_http_what_was_refused_was_not_carried_out(answer, problem):
    with over_http(answer) as server:
        with pytest.raises(ToolServerError) as error:
            await server.execute("pay", {})
        assert not isinstance(error.value, ToolCallLostError)
        assert str(error.value).startswith("tool server t: ")
        assert problem in str(error.value)
        # It is connected anew where that is needed.
        assert [tool.name for tool in await server.list_tools()] == ["pay"]
        await server.aclose()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (refused, "it answered with status 401 Unauthorized"),
        (elsewhere, "http://127.0.0.1:9/other"),
        (html, "its answer with status 200 OK is not a message"),
        (garbage, "Failed to parse JSON response"),
    ],
)
async def test_an_address_that_is_no_server_is_told_with_what_it_answers(answer, problem):
    with over_http(answer, is_odd_at_once=True) as server:
        with pytest.raises(ToolServerError, match="tool server t: the address http") as error:
            await server.list_tools()
        await server.aclose()
    assert problem in str(error.value)


async def test_a_server_that_does_not_answer_a_parting_word_is_left():
    with over_http(html, is_parting=False) as server:
        await server.list_tools()
        async with asyncio.timeout(10):
            await server.aclose()

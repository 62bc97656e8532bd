"""Specialists with the tools of real MCP servers, asked for by a model over real HTTP."""

import json
import os

import pytest
from langchain_core.messages import AIMessage, ToolMessage

import mcp_servers
from replan import (
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    ToolServer,
    build_graph,
    open_runtime,
    open_storage,
    open_tools,
    run,
    run_sync,
)
from replan.models.providers.chat_models import LangChainModels
from replan.testing import OpenAIServer

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker"
COMPLETE = "---\nverdict: complete\n---\nIt is done."
TOKEN = "a-token-of-tests"  # noqa: S105 - it opens nothing
ONCE = RunSettings(limits=Limits(step_retries=0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def address(folder):
    with mcp_servers.served(folder) as found:
        yield found


@pytest.fixture
def made(folder, address):
    """The calls of this test that the server over HTTP was made to do something by."""
    before = len(mcp_servers.calls(folder))
    return lambda: mcp_servers.calls(folder)[before:]


def calling(name, number=0, /, **arguments):
    call = {"name": name, "args": arguments, "id": f"call-{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def graph_on(model, servers, *, checkpointer=None, storage=None, host_tools=(), **worker):
    worker = {"tools": ["t/*"], **worker}
    team = Team(
        Host("openai:m", tools=host_tools),
        [Specialist("worker", "Works.", chat_model="openai:m", **worker)],
        tool_servers=servers,
    )
    models = LangChainModels(base_url=model.base_url)
    return build_graph(team, models=models, checkpointer=checkpointer, storage=storage)


def script(*replies):
    return {"think": PLAN, "step 1": list(replies), "feedback": COMPLETE}


def told(model):
    """What the model was told of its calls, in its last request for the step."""
    requests = [request for request in model.requests if request.call.step == 1]
    messages = requests[-1].messages if requests else []
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def offered(model):
    bodies = [request.body for request in model.requests if request.call.step == 1]
    return {tool["function"]["name"]: tool["function"] for body in bodies for tool in body["tools"]}


async def outcome_of(replies, servers, *, settings=ONCE, **worker):
    """Run one step; give its result, what the model was told, and what it was offered."""
    with OpenAIServer(script(*replies)) as model:
        graph = graph_on(model, servers, **worker)
        async with open_tools(graph):
            state = (await run(graph, "Do it.", settings=settings)).state
        seen = told(model), offered(model)
    return state["current_specialist_results"]["1/worker"], *seen


async def test_a_specialist_calls_a_tool_of_a_program_that_ends_with_the_run(tmp_path):
    server = mcp_servers.over_streams(tmp_path, env={"GREETING": "hello"})
    replies = calling("t__environment"), "Three."
    tools = ["t/add", "t/env*"]
    result, answers, tools = await outcome_of(replies, {"t": server}, tools=tools)
    assert result.text == "Three."
    assert list(tools) == ["t__add", "t__environment"]
    assert tools["t__add"]["description"] == "Add two numbers."
    assert set(tools["t__add"]["parameters"]["properties"]) == {"a", "b"}
    variables = json.loads(answers[0])
    assert variables["GREETING"] == "hello"
    assert "REPLAN_TEST_WARM" not in variables


def test_a_synchronous_run_leaves_no_program_behind(tmp_path):
    with OpenAIServer(script(calling("t__own_process"), "Done.")) as model:
        graph = graph_on(model, {"t": mcp_servers.over_streams(tmp_path)})
        assert run_sync(graph, "Do it.").outcome == "completed"
        (process,) = told(model)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


async def test_a_server_over_http_gets_the_token_that_a_variable_names(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLS_TOKEN", TOKEN)
    with mcp_servers.served(tmp_path, WANTED_TOKEN=TOKEN) as address:
        server = ToolServer(url=address, token_env="TOOLS_TOKEN")  # noqa: S106 - its name
        result, answers, _ = await outcome_of(
            (calling("t__add", a=1, b=2), "Three."), {"t": server}
        )
        assert (result.text, answers) == ("Three.", ["3"])
        nobody, *_ = await outcome_of((), {"t": ToolServer(url=address)})
    assert nobody.is_failed
    assert nobody.error.startswith("ToolServerError: tool server t: the address http")


async def test_two_servers_with_a_tool_of_one_name_are_kept_apart(tmp_path, address):
    servers = {"t": ToolServer(url=address), "u": mcp_servers.over_streams(tmp_path)}
    replies = calling("u__pay", amount=5), "Paid."
    result, answers, tools = await outcome_of(replies, servers, tools=["t/pay", "u/pay"])
    assert result.text == "Paid."
    assert (list(tools), answers) == (["t__pay", "u__pay"], ["paid 5"])
    assert mcp_servers.calls(tmp_path) == ["pay 5"]


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        (
            "fail",
            {},
            "Error: ToolServerError: tool server t: fail failed: Error executing",
        ),
        ("add", {"a": "no"}, "Error: ToolServerError: tool server t: add failed: "),
        ("lie", {}, "Error: ToolServerError: tool server t: lie failed: "),
        ("megabyte", {}, "xxx"),
    ],
)
async def test_what_goes_wrong_in_a_call_is_told_to_the_model(address, tool, arguments, answer):
    replies = calling(f"t__{tool}", **arguments), "I know."
    result, answers, _ = await outcome_of(replies, {"t": ToolServer(url=address)})
    assert result.text == "I know."
    assert answers[0].startswith(answer)
    assert len(answers[0]) < 51_000


async def test_a_call_of_a_trusted_server_has_a_time_of_its_own(address):
    server = ToolServer(url=address, timeout=0.5, trusted=True)
    replies = calling("t__wait_reading"), "I gave up."
    result, answers, _ = await outcome_of(replies, {"t": server})
    assert result.text == "I gave up."
    assert "t__wait_reading" not in answers[0]
    assert "tool server t: wait_reading did not answer within 0.5 s" in answers[0]


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (ToolServer(command="/nowhere/program"), "the program /nowhere/program cannot be used"),
        (ToolServer(url="http://127.0.0.1:9/mcp"), "the address http://127.0.0.1:9/mcp cannot be"),
    ],
)
async def test_a_server_that_is_missing_fails_the_step_that_needs_it_first(server, problem):
    result, *_ = await outcome_of((), {"t": server})
    assert result.error.startswith(f"ToolServerError: tool server t: {problem}")


async def test_a_function_with_the_name_of_a_servers_tool_is_told(address):
    def t__add(a: int) -> str:
        """Add."""
        return str(a)

    result, *_ = await outcome_of((), {"t": ToolServer(url=address)}, tools=["t/add", t__add])
    assert "tools: a tool of a tool server has the same name (got 't__add')" in result.error


async def test_a_tool_that_a_server_does_not_have_is_told_with_those_that_it_has(address):
    result, *_ = await outcome_of((), {"t": ToolServer(url=address)}, tools=["t/ad"])
    assert "tool server t: it has no tool t/ad. Did you mean t/add?" in result.error


async def test_tools_that_came_meanwhile_are_there_for_the_next_step(tmp_path):
    plan = f"{PLAN}\n- [ ] 2. And on @worker (after 1)"
    step = {"step 1": [calling("t__grow"), "Grown."], "step 2": "Done."}
    with OpenAIServer({"think": plan, **step, "feedback": COMPLETE}) as model:
        graph = graph_on(model, {"t": mcp_servers.over_streams(tmp_path)})
        async with open_tools(graph):
            await run(graph, "Do it.")
        names = {
            request.call.step: {tool["function"]["name"] for tool in request.body["tools"]}
            for request in model.requests
            if request.call.step
        }
    assert names[2] - names[1] == {"t__newest"}


async def test_the_host_uses_tools_of_servers_for_its_own_answer(address):
    simple = "---\ncomplexity: simple\n---\n"
    answers = [calling("t__add", a=1, b=2), "It is three."]
    with OpenAIServer({"think": simple, "direct_answer": answers}) as model:
        graph = graph_on(model, {"t": ToolServer(url=address)}, host_tools=["t/add"])
        async with open_tools(graph):
            assert (await run(graph, "One and two?")).text == "It is three."


async def asked_of(graph, storage, answers, *, first=None):
    """Run until nothing is asked; give the questions and the last result."""
    questions = []
    async with open_runtime(graph, storage=storage) as runtime:
        result = await (await runtime.start("Do it.", run_id="r")).result()
        for answer in answers:
            (ask,) = result.pending_questions
            questions.append(ask)
            result = await (await runtime.answer("r", {ask.key: answer})).result()
    return questions, result


async def test_an_unsafe_call_whose_server_died_is_asked_about_and_not_made_again(tmp_path):
    replies = calling("t__pay_and_die", amount=3), "Paid."
    async with open_storage(tmp_path / "runs.db") as storage:
        with OpenAIServer(script(*replies)) as model:
            servers = {"t": mcp_servers.over_streams(tmp_path)}
            graph = graph_on(model, servers, storage=storage)
            (ask,), result = await asked_of(graph, storage, ["done: it was paid"])
            answers = told(model)
    assert ask.kind == "unknown_outcome"
    assert "t__pay_and_die" in ask.text
    assert (result.outcome, answers) == ("completed", ["it was paid"])
    assert mcp_servers.calls(tmp_path) == ["pay 3"]


async def test_while_a_server_asks_for_one_step_another_one_calls_it(tmp_path):
    plan = f"{PLAN}\n- [ ] 2. And this @worker\n- [ ] 3. Both @worker (after 1, 2)"
    steps = {
        "step 1": [calling("t__order", name="shoes"), "Ordered."],
        "step 2": [calling("t__pay", amount=3), "Paid."],
        "step 3": "Both.",
    }
    async with open_storage(tmp_path / "runs.db") as storage:
        with OpenAIServer({"think": plan, **steps, "feedback": COMPLETE}) as model:
            servers = {"t": mcp_servers.over_streams(tmp_path)}
            graph = graph_on(model, servers, storage=storage)
            (ask,), result = await asked_of(graph, storage, ["42"])
    assert (ask.step_id, result.outcome) == (1, "completed")
    assert {key: each.text for key, each in result.results.items()} == {
        "1/worker": "Ordered.",
        "2/worker": "Paid.",
        "3/worker": "Both.",
    }
    assert mcp_servers.calls(tmp_path) == ["pay 3", "order shoes 42"]


@pytest.mark.parametrize(("answer", "way"), [("42", "streams"), ({"size": 42}, "http")])
async def test_what_a_server_asks_is_asked_of_the_user(tmp_path, answer, way, address, made):
    replies = calling("t__order", name="shoes"), "Ordered."
    is_http = way == "http"
    async with open_storage(tmp_path / "runs.db") as storage:
        with OpenAIServer(script(*replies)) as model:
            server = ToolServer(url=address) if is_http else mcp_servers.over_streams(tmp_path)
            graph = graph_on(model, {"t": server}, storage=storage)
            (ask,), result = await asked_of(graph, storage, [answer])
            answers = told(model)
    assert ask.text == (
        "The tool server t asks: What size for shoes?\nAnswer with size (integer, Size); or no."
    )
    assert (result.outcome, answers) == ("completed", ["ordered shoes in 42"])
    assert (made() if is_http else mcp_servers.calls(tmp_path)) == ["order shoes 42"]


async def test_an_answer_that_does_not_fit_is_asked_for_again_and_no_is_a_no(
    tmp_path, address, made
):
    replies = calling("t__order", name="shoes"), "Ordered."
    async with open_storage(tmp_path / "runs.db") as storage:
        with OpenAIServer(script(*replies)) as model:
            graph = graph_on(model, {"t": ToolServer(url=address)}, storage=storage)
            asks, result = await asked_of(graph, storage, ["large", "no"])
            answers = told(model)
    assert "This did not fit: \"large\" ('large' is not of type 'integer')." in asks[1].text
    assert result.outcome == "completed"
    assert "declin" in answers[0]
    assert made() == []


async def test_a_person_approves_the_calls_of_a_servers_tools(tmp_path, address, made):
    replies = calling("t__pay", amount=3), "Paid."
    async with open_storage(tmp_path / "runs.db") as storage:
        with OpenAIServer(script(*replies)) as model:
            servers = {"t": ToolServer(url=address)}
            graph = graph_on(model, servers, storage=storage, approve=["t/pay*"])
            asks, _ = await asked_of(
                graph, storage, [{"action": "edit", "arguments": {"amount": 2}}]
            )
    assert [(each.kind, each.details["tool"]) for each in asks] == [("approval", "t__pay")]
    assert made() == ["pay 2"]

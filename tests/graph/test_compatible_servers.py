"""What OpenAI-compatible servers really do, as raw answers over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from replan import Host, Limits, RunSettings, Specialist, Team, run, run_sync, stream
from replan.assembly.graphs import build_graph
from replan.models.providers.chat_models import LangChainModels
from replan.testing import HttpFault, OpenAIServer, Raw, Reply

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Ask for the weather @forecaster\n"
SIMPLE = "---\ncomplexity: simple\n---\nIt rains."
DONE = "---\nverdict: complete\n---\nTake an umbrella."
ARGS = '{"town": "Bonn"}'
CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": ARGS}}


def whole(text: str | None = "", finish: str | None = "stop", **message: Any) -> Raw:
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return Raw({"id": "c", "object": "chat.completion", "model": "odd", "choices": [choice]})


def streamed(*deltas: dict[str, Any], finish: str | None = None) -> Raw:
    events = [
        {"id": "c", "object": "chat.completion.chunk", "model": "odd", "choices": [each]}
        for each in (
            *({"index": 0, "delta": delta, "finish_reason": None} for delta in deltas),
            *([{"index": 0, "delta": {}, "finish_reason": finish}] if finish else []),
        )
    ]
    return Raw([*events, b"data: [DONE]\n\n"])


def called(name: str = "weather", arguments: Any = ARGS, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}],
        **more,
    }


class World:
    """A team of one forecaster with a tool, whose server answers the specialist as told."""

    def __init__(self, answer: Any, *, streaming: bool = False) -> None:
        self.answer, self.streaming, self.towns = answer, streaming, list[str]()
        self.asked = list[Any]()

    def reply(self, request: Any) -> Any:
        node = request.call.node
        if node != "specialist":
            return PLAN if node == "think" else DONE
        self.asked.append(request)
        return self.answer(request) if callable(self.answer) else self.answer

    def run(self) -> Any:
        def weather(town: str) -> str:
            """Return the weather of a town."""
            self.towns.append(town)
            return f"It rains in {town}."

        with OpenAIServer(self.reply) as server:
            models = LangChainModels(base_url=server.base_url, environment={})
            forecaster = Specialist(
                "forecaster", "Knows.", chat_model="odd", tools=[weather], effects="pure"
            )
            team = Team(Host("odd"), [forecaster], callbacks=[Hearing()] if self.streaming else [])
            return run_sync(build_graph(team, models=models), "Umbrella?").results[1]


class Hearing:
    """Who hears tokens makes the models stream."""

    def on_event(self, event: Any) -> None: ...


def has_tool_result(request: Any) -> bool:
    return any(each.type == "tool" for each in request.messages)


def then(first: Raw, answer: str = "Take it.") -> Any:
    """The first answer until a tool has answered."""
    return lambda request: answer if has_tool_result(request) else first


WRITTEN = [
    f'<tool_call>\n{{"name": "weather", "arguments": {ARGS}}}\n</tool_call>',
    f'I will look.\n<tool_call>\n{{"name": "weather", "arguments": {ARGS}}}\n</tool_call>',
    "<function=weather>\n<parameter=town>\nBonn\n</parameter>\n</function>",
    "<tool_call>\n<function=weather>\n<parameter=town>\nBonn\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>weather\n<arg_key>town</arg_key>\n<arg_value>Bonn</arg_value>\n</tool_call>",
    f'[TOOL_CALLS][{{"name": "weather", "arguments": {ARGS}}}]',
    f"[TOOL_CALLS]weather[ARGS]{ARGS}",
    f'{{"name": "weather", "parameters": {ARGS}}}',
    f'```json\n{{"name": "weather", "parameters": {ARGS}}}\n```',
    f'<think>Hm.</think>\n<|python_tag|>{{"name": "weather", "parameters": {ARGS}}}',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_tool_call_that_was_written_as_text_is_made(text: str) -> None:
    world = World(then(whole(text)))
    result = world.run()
    assert (result.text, world.towns) == ("Take it.", ["Bonn"])


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n{broken\n</tool_call>",
        '<tool_call>\n{"name": "nothing", "arguments": {}}\n</tool_call>',
        "[TOOL_CALLS]",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n{ARGS}",
        f"<|channel|>commentary to=functions.weather <|message|>{ARGS}<|call|>",
    ],
)
def test_a_written_call_that_cannot_be_read_is_never_a_result(text: str) -> None:
    result = World(whole(text)).run()
    assert result.is_failed
    assert "the server did not parse the model's tool call" in result.error


@pytest.mark.parametrize(
    "text",
    ["Bonn is in `<tool_call>` land.", '{"name": "Bonn", "parameters": {}}', '{"town": "Bonn"}'],
)
def test_a_text_that_is_no_call_of_a_tool_is_a_result(text: str) -> None:
    result = World(whole(text)).run()
    assert (result.is_failed, result.text) == (False, text)


ODD_CALLS = {
    "arguments as an object": {"arguments": json.loads(ARGS)},
    "marks behind the name": {"name": "weather<|channel|>commentary"},
    "a prefix of the name": {"name": "functions.weather"},
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("odd", ODD_CALLS)
@pytest.mark.parametrize("streaming", [False, True])
def test_an_odd_call_is_made(odd: str, *, streaming: bool) -> None:
    message = called(**ODD_CALLS[odd])

    def answer(request: Any) -> Any:
        if has_tool_result(request):
            return "Take it."
        if request.stream:
            return streamed(message, finish="tool_calls")
        return whole(None, "tool_calls", **message)

    world = World(answer, streaming=streaming)
    result = world.run()
    assert (result.text, world.towns, len(world.asked)) == ("Take it.", ["Bonn"], 2), result.error
    assert world.asked[0].stream is streaming


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("streaming", [False, True])
def test_what_a_model_thought_goes_back_within_a_loop_of_tools(
    name: str, *, streaming: bool
) -> None:
    def answer(request: Any) -> Any:
        if has_tool_result(request):
            last = [each for each in request.body["messages"] if each["role"] == "assistant"][-1]
            if last.get(name) != "I should look.":
                return HttpFault(400, message=f"The `{name}` must be passed back.")
            return "Take it."
        if request.stream:
            return streamed({name: "I should "}, {name: "look."}, called(), finish="tool_calls")
        return whole(None, "tool_calls", **{name: "I should look."}, **called())

    world = World(answer, streaming=streaming)
    assert world.run().text == "Take it."
    assert name not in str([each.body["messages"] for each in world.asked[:1]])


def test_a_streamed_call_without_a_reason_for_its_end_is_made() -> None:
    def answer(request: Any) -> Any:
        if has_tool_result(request):
            return "Take it."
        return streamed(called()) if request.stream else whole(None, None, **called())

    world = World(answer, streaming=True)
    result = world.run()
    assert (result.text, world.towns, len(world.asked)) == ("Take it.", ["Bonn"], 2), result.error


def test_a_streamed_call_that_was_cut_off_is_asked_for_as_a_whole() -> None:
    def answer(request: Any) -> Any:
        if has_tool_result(request):
            return "Take it."
        if request.stream:
            return streamed(called(arguments='{"town": "Bo'))
        return whole(None, "tool_calls", **called())

    world = World(answer, streaming=True)
    result = world.run()
    assert (result.text, world.towns) == ("Take it.", ["Bonn"]), result.error


def test_a_loop_of_calls_that_cannot_be_made_ends_early_with_the_cause() -> None:
    world = World(whole(None, "tool_calls", **called("nothing")))
    result = world.run()
    assert result.is_failed
    assert "called only tools that there are not" in result.error
    assert len(world.asked) <= 4


def test_a_reply_of_reasoning_alone_is_said_to_be_that() -> None:
    result = World(whole(None, reasoning_content="An umbrella.")).run()
    assert "only its reasoning" in result.error


@pytest.mark.parametrize("status", [400, 422])
def test_the_bound_of_a_reply_has_the_name_that_the_server_takes(status: int) -> None:
    bodies = []

    def answer(request: Any) -> Any:
        bodies.append(request.body)
        if "max_completion_tokens" in request.body:
            place = ["body", "max_completion_tokens"]
            detail = [{"type": "extra_forbidden", "loc": place, "msg": "not permitted"}]
            return Raw({"object": "error", "message": {"detail": detail}}, status)
        return SIMPLE

    with OpenAIServer(answer) as server:
        models = LangChainModels(base_url=server.base_url, environment={})
        graph = build_graph(
            Team(Host("odd"), [Specialist("x", "X.", run=lambda _: "x")]), models=models
        )
        settings = RunSettings(limits=Limits(max_tokens=20_000))
        assert [run_sync(graph, "Rain?", settings=settings).text for _ in range(2)] == [
            "It rains."
        ] * 2
    assert ["max_tokens" in each for each in bodies] == [False, True, True]


def test_a_bound_that_is_too_large_is_no_reason_for_another_name() -> None:
    said = "max_completion_tokens is too large: 9. This model takes 4."
    with OpenAIServer(lambda _: HttpFault(400, message=said)) as server:
        models = LangChainModels(base_url=server.base_url, environment={})
        graph = build_graph(
            Team(Host("odd"), [Specialist("x", "X.", run=lambda _: "x")]), models=models
        )
        settings = RunSettings(limits=Limits(max_tokens=20_000))
        for _ in range(2):
            with pytest.raises(Exception, match="too large"):
                run_sync(graph, "Rain?", settings=settings)
        names = ["max_completion_tokens" in each.body for each in server.requests]
    assert names == [True, False, True, False]


def test_a_whole_reply_without_a_role_is_the_models() -> None:
    answer = whole("It rains.")
    del answer.body["choices"][0]["message"]["role"]
    result = World(answer).run()
    assert (result.is_failed, result.text) == (False, "It rains.")


def test_a_model_object_of_one_s_own_works_in_several_threads() -> None:
    with OpenAIServer(lambda _: Reply(SIMPLE, latency=0.01)) as server:
        model = ChatOpenAI(model="odd", base_url=server.base_url, api_key=SecretStr("k"))
        graph = build_graph(Team(Host(model), [Specialist("x", "X.", run=lambda _: "x")]))
        with ThreadPoolExecutor(6) as pool:
            texts = list(pool.map(lambda _: run_sync(graph, "Rain?").text, range(24)))
    assert texts == ["It rains."] * 24


@pytest.mark.parametrize("field", ["invokable", "streamable"])
@pytest.mark.parametrize("is_heard", [True, False])
async def test_the_words_of_an_agent_are_tokens_of_its_step(field: str, *, is_heard: bool) -> None:
    with OpenAIServer(lambda _: "It rains in Bonn.") as server:
        model = ChatOpenAI(model="odd", base_url=server.base_url, api_key=SecretStr("k"))
        agent: Any = {field: create_agent(model, [])}
        graph = build_graph(Team(Host("offline"), [Specialist("clerk", "Says.", **agent)]))
        given = {"plan": "- [ ] 1. Say @clerk\n"}
        if is_heard:
            events = [each async for each in stream(graph, given)]
            texts = [each.text for each in events if each.type == "specialist_token"]
            assert ("".join(texts), len(texts) > 1) == ("It rains in Bonn.", True)
        else:
            assert (await run(graph, given)).results[1].text == "It rains in Bonn."
        assert [each.stream for each in server.requests] == [is_heard]

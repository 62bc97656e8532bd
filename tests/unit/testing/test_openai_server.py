"""Tests of the OpenAI-compatible server on the wire, without any client library."""

import asyncio
import gc
import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from replan.prompts.sections import Call, Caller, call_tag
from replan.state.usage import TokenCount
from replan.testing import (
    ChatRequest,
    Empty,
    Hang,
    HttpFault,
    Malformed,
    OpenAIServer,
    Reply,
    Reset,
    Truncated,
    UnconsumedReplies,
    UnexpectedModelCall,
    always,
)

CALL = {"name": "add", "args": {"a": 1}, "id": "c1", "type": "tool_call"}


def system(node: Caller = "think", step: int | None = None) -> dict[str, str]:
    return {"role": "system", "content": f"Help.\n{call_tag(Call(node=node, step=step))}"}


def user(text: str = "Hi") -> dict[str, str]:
    return {"role": "user", "content": text}


def post(
    server: OpenAIServer, *messages: dict[str, Any], raw: bytes | None = None, **fields: Any
) -> tuple[int, dict[str, str], bytes]:
    url = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=10)
    body = raw or json.dumps(
        {"model": "tiny", "messages": messages or [system(), user()], **fields}
    )
    try:
        headers = {"Authorization": "Bearer hidden", "X-Trace": "7"}
        connection.request("POST", f"{url.path}/chat/completions", body, headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def events(body: bytes) -> list[Any]:
    found = [part.removeprefix("data: ") for part in body.decode().split("\n\n") if part]
    return [part if part == "[DONE]" else json.loads(part) for part in found]


def error_in(body: bytes) -> dict[str, Any]:
    return json.loads(body)["error"]


def test_a_completion_has_the_shape_of_the_protocol():
    with OpenAIServer({"think": Reply("Hello.", usage=(5, 2))}) as server:
        status, _, body = post(server)

    assert status == 200
    assert json.loads(body) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }


def test_a_stream_has_role_contents_finish_usage_and_end():
    with OpenAIServer({"think": Reply("One two", usage=(5, 2))}) as server:
        _, headers, body = post(server, stream=True, stream_options={"include_usage": True})
        assert server.usage == TokenCount(calls=1, input_tokens=5, output_tokens=2)

    *chunks, last, end = events(body)
    assert headers["Content-Type"] == "text/event-stream"
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "One"},
        {"content": " two"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 7
    assert end == "[DONE]"


def test_a_stream_that_does_not_ask_for_usage_gets_none():
    with OpenAIServer({"think": "Hello."}) as server:
        _, _, body = post(server, stream=True)
        assert server.usage == TokenCount()

    assert all("usage" not in event for event in events(body)[:-1])


def test_tools_are_called_whole_and_streamed():
    with OpenAIServer({"think": always(Reply(tool_calls=[CALL]))}) as server:
        _, _, whole = post(server)
        _, _, stream = post(server, stream=True)

    choice = json.loads(whole)["choices"][0]
    called = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    assert choice["message"] == {"role": "assistant", "content": None, "tool_calls": [called]}
    assert choice["finish_reason"] == "tool_calls"
    assert events(stream)[1]["choices"][0]["delta"] == {"tool_calls": [{"index": 0, **called}]}


def test_the_models_are_listed():
    with OpenAIServer({}, models=("tiny", "large")) as server:
        url = urlsplit(server.base_url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=10)
        connection.request("GET", "/v1/models")
        listed = json.loads(connection.getresponse().read())
        connection.close()

    assert [model["id"] for model in listed["data"]] == ["tiny", "large"]


def test_requests_are_recorded_without_their_key():
    with OpenAIServer({"think": "a", "step 2": "b", "*": "c"}) as server:
        post(server)
        post(server, system("specialist", 2), user("Count."))
        post(server, user())

    first, second, _ = server.requests
    assert first.headers["authorization"] == "***"
    assert first.headers["x-trace"] == "7"
    assert "hidden" not in repr(server.requests)
    assert (second.call, second.messages[-1].text) == (
        Call(node="specialist", step=2),
        "Count.",
    )
    assert first.time <= second.time
    assert server.calls == {"think": 1, "step 2": 1, "*": 1}


def test_the_call_is_read_from_parts_and_from_developer_messages():
    parts = {"role": "system", "content": [{"type": "text", "text": system()["content"]}]}
    developer = {"role": "developer", "content": system("feedback")["content"]}
    with OpenAIServer({"think": "a", "feedback": "b"}) as server:
        assert post(server, parts, user())[0] == 200
        assert post(server, developer, user())[0] == 200


def test_a_request_without_a_reply_is_refused_and_raised_at_the_end():
    def swallow() -> None:
        with OpenAIServer({"think": "once"}) as server:
            post(server)
            status, _, body = post(server)
            assert status == 400
            assert "UnexpectedModelCall" in error_in(body)["message"]

    with pytest.raises(UnexpectedModelCall, match="think"):
        swallow()


def test_a_reply_without_a_request_is_raised_at_the_end():
    with pytest.raises(UnconsumedReplies), OpenAIServer({"think": "never"}):
        pass


def test_an_error_in_flight_is_not_masked():
    with pytest.raises(RuntimeError, match="real"), OpenAIServer({"think": "never"}):
        raise RuntimeError("the real one")


def test_a_free_form_server_answers_every_request():
    async def answer(request: ChatRequest) -> str:
        return f"{request.model}: {request.messages[-1].text}"

    with OpenAIServer(answer) as server:
        bodies = [json.loads(post(server, user(text))[2]) for text in ("a", "b")]

    assert [body["choices"][0]["message"]["content"] for body in bodies] == ["tiny: a", "tiny: b"]


def test_a_failed_assertion_of_a_free_form_server_is_raised_at_the_end():
    def answer(request: ChatRequest) -> str:
        assert request.stream, "it should have streamed"
        return ""

    def swallow() -> None:
        with OpenAIServer(answer) as server:
            assert post(server)[0] == 400

    with pytest.raises(AssertionError, match="it should have streamed"):
        swallow()


def test_http_faults_and_errors_are_answered_with_their_status():
    def fails(messages: object) -> str:
        raise ValueError("broken")

    script = [HttpFault(429, retry_after=1.5), HttpFault(401, message="Who?"), HttpFault(503)]
    replies = [*(Reply(fault=fault) for fault in script), RuntimeError("down"), fails]
    with OpenAIServer(replies) as server:
        answers = [post(server) for _ in replies]

    assert [status for status, _, _ in answers] == [429, 401, 503, 500, 500]
    assert answers[0][1]["Retry-After"] == "1.5"
    assert [error_in(body)["type"] for _, _, body in answers[:3]] == [
        "rate_limit_error",
        "authentication_error",
        "server_error",
    ]
    assert error_in(answers[1][2])["message"] == "Who?"
    assert "ValueError: broken" in error_in(answers[4][2])["message"]


@pytest.mark.parametrize(
    ("switch", "fields"),
    [
        ("streaming", {"stream": True}),
        ("tools", {"tools": [{"type": "function", "function": {"name": "add"}}]}),
        ("json_mode", {"response_format": {"type": "json_object"}}),
    ],
)
def test_what_a_server_cannot_do_is_refused_and_takes_no_reply(switch: str, fields: dict[str, Any]):
    with OpenAIServer({"think": "Hello."}, **{switch: False}) as server:
        status, _, body = post(server, **fields)
        assert status == 400
        assert error_in(body)["param"] == next(iter(fields))
        assert server.left == {"think": 1}
        assert post(server)[0] == 200


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([system(), user()], 200),
        ([user()], 200),
        ([system(), user(), {"role": "assistant", "content": "a"}, user()], 200),
        ([user(), system()], 400),
        ([system(), system(), user()], 400),
        ([system(), user(), user()], 400),
        ([{"role": "assistant", "content": "a"}, user()], 400),
        ([system(), {"role": "assistant", "content": "a"}, user()], 400),
        ([system()], 400),
    ],
)
def test_a_strict_server_insists_on_turns(messages: list[dict[str, str]], status: int):
    with OpenAIServer(lambda request: "Hello.", strict_roles=True) as server:
        assert post(server, *messages)[0] == status


def test_a_strict_server_takes_several_results_of_tools():
    calls = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in "ab"
    ]
    turn = {"role": "assistant", "content": "", "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": i, "content": "x"} for i in "ab"]
    with OpenAIServer(lambda request: "Hello.", strict_roles=True) as server:
        assert post(server, system(), user(), turn, *results)[0] == 200


@pytest.mark.parametrize("raw", [b"{", b"[]", b"{}", b'{"messages": [{"role": "ghost"}]}'])
def test_an_unreadable_request_is_refused(raw: bytes):
    with OpenAIServer({}) as server:
        assert post(server, raw=raw)[0] == 400


@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_really_tears_the_connection_down(*, stream: bool):
    replies = [Reply("one two three", fault=Reset(after)) for after in (0, 2)]
    with OpenAIServer(replies) as server:
        for _ in replies:
            with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
                post(server, stream=stream)
        assert server.usage == TokenCount()


def test_malformed_replies_are_no_json():
    with OpenAIServer([always(Reply(fault=Malformed()))]) as server:
        whole, stream = post(server)[2], post(server, stream=True)[2]

    with pytest.raises(json.JSONDecodeError):
        json.loads(whole)
    with pytest.raises(json.JSONDecodeError):
        events(stream)


def test_truncated_and_empty_replies():
    with OpenAIServer(
        [
            *[Reply("a b", fault=Truncated())] * 2,
            *[Reply("a b", fault=Truncated("cut"))] * 2,
            *[Reply("a b", fault=Empty())] * 2,
        ]
    ) as server:
        long = json.loads(post(server)[2])["choices"][0]
        long_stream = events(post(server, stream=True)[2])
        with pytest.raises(http.client.IncompleteRead):
            post(server)
        cut_stream = events(post(server, stream=True)[2])
        empty = json.loads(post(server)[2])["choices"][0]
        empty_stream = events(post(server, stream=True)[2])

    assert (long["message"]["content"], long["finish_reason"]) == ("a b", "length")
    assert long_stream[-2]["choices"][0]["finish_reason"] == "length"
    assert cut_stream[-1]["choices"][0]["delta"] == {"content": " b"}
    assert (empty["message"]["content"], empty["finish_reason"]) == (None, "stop")
    assert len(empty_stream) == 3


def test_an_empty_reply_tells_the_usage_that_is_counted():
    with OpenAIServer({"think": Reply("some text", fault=Empty())}) as server:
        told = json.loads(post(server)[2])["usage"]
        assert told["completion_tokens"] == server.usage.output_tokens


def test_a_hanging_request_ends_when_the_server_closes():
    outcome: list[BaseException] = []

    def ask(server: OpenAIServer) -> None:
        try:
            post(server)
        except OSError as error:
            outcome.append(error)

    with OpenAIServer({"think": Reply(fault=Hang())}) as server:
        asking = threading.Thread(target=ask, args=(server,))
        asking.start()
        server.wait_for_requests(1)
    asking.join(5)

    assert not asking.is_alive()
    assert isinstance(outcome[0], OSError)


def test_waiting_for_requests_that_never_come_ends():
    with OpenAIServer({}) as server, pytest.raises(TimeoutError, match="0 of 1"):
        server.wait_for_requests(1, seconds=0.01)


def test_an_address_is_known_only_after_the_start():
    with pytest.raises(RuntimeError, match="not started"):
        _ = OpenAIServer({}).base_url


async def test_it_is_an_asynchronous_block_too():
    async with OpenAIServer({"think": "Hello."}) as server:
        status, _, _ = await asyncio.to_thread(post, server)

    assert status == 200


def test_servers_do_not_disturb_each_other_and_close_twice_without_harm():
    with OpenAIServer({"think": "a"}) as one, OpenAIServer({"think": "b"}) as two:
        assert one.base_url != two.base_url
        assert b'"a"' in post(one)[2]
        assert b'"b"' in post(two)[2]
        one.close()
    one.close()
    gc.collect()


def test_hundreds_of_requests_at_once_are_counted_exactly():
    script = {f"step {n}": Reply(f"{n}", usage=(n, 1)) for n in range(1, 201)}
    found: dict[int, str] = {}

    def ask(server: OpenAIServer, number: int) -> None:
        body = json.loads(post(server, system("specialist", number), user())[2])
        found[number] = body["choices"][0]["message"]["content"]

    with OpenAIServer(script) as server:
        threads = [threading.Thread(target=ask, args=(server, n)) for n in range(1, 201)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert server.usage == TokenCount(calls=200, input_tokens=20100, output_tokens=200)

    assert found == {n: str(n) for n in range(1, 201)}

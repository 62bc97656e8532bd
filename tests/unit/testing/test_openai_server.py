"""Tests of the OpenAI-compatible server on the wire, without any client library."""

import gc
import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest

from replan.prompts.sections import Call, Caller, call_tag
from replan.testing import (
    ChatRequest,
    Empty,
    Hang,
    OpenAIServer,
    Reply,
    Truncated,
    UnexpectedModelCall,
)


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


def error_in(body: bytes) -> dict[str, Any]:
    return json.loads(body)["error"]


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


def test_an_error_in_flight_is_not_masked():
    with pytest.raises(RuntimeError, match="real"), OpenAIServer({"think": "never"}):
        raise RuntimeError("the real one")


def test_a_failed_assertion_of_a_free_form_server_is_raised_at_the_end():
    def answer(request: ChatRequest) -> str:
        assert request.stream, "it should have streamed"
        return ""

    def swallow() -> None:
        with OpenAIServer(answer) as server:
            assert post(server)[0] == 400

    with pytest.raises(AssertionError, match="it should have streamed"):
        swallow()


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


def test_servers_do_not_disturb_each_other_and_close_twice_without_harm():
    with OpenAIServer({"think": "a"}) as one, OpenAIServer({"think": "b"}) as two:
        assert one.base_url != two.base_url
        assert b'"a"' in post(one)[2]
        assert b'"b"' in post(two)[2]
        one.close()
    one.close()
    gc.collect()


def events(body: bytes) -> list[Any]:
    found = [part.removeprefix("data: ") for part in body.decode().split("\n\n") if part]
    return [part if part == "[DONE]" else json.loads(part) for part in found]


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

"""Who may do what at the server, how much of it, and what it bears from clients that mean ill."""

import asyncio
import json
import re
import sys

import pytest
from langchain_openai import ChatOpenAI

from replan import Host, Specialist, Team, ask_user, open_runtime
from replan.runs.reads import state_of
from replan.testing import OpenAIServer, ScriptedModel, always
from served import OWNER, as_, rested, served, tokens_of

END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}
DIG = "- [ ] 1. Dig @worker\n"
ASK = "- [ ] 1. Paint @painter\n"


def house(work=lambda _: "dug", model=None, **settings):
    members = [
        Specialist(name="worker", intended_use="Works.", run=work, effects="pure"),
        Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Hue?")),
    ]
    return Team(host=Host(model=model or ScriptedModel(END)), specialists=members, **settings)


async def test_a_run_uses_what_is_of_the_person_and_the_tenant_of_its_token(tmp_path):
    where = tmp_path / "runs.db"
    tokens = tokens_of(cleo={"tenant": "north", "user": "Cleo"})
    async with served(house(), where, tokens) as client:
        began = await client.post("/runs", json={"plan": DIG}, headers=as_("cleo"))
        run = (await rested(client, began.json()["run_id"], headers=as_("cleo")))["run_id"]
    async with open_runtime(house(), storage=where) as runtime:
        settings = (await state_of(run, runtime.resources))["settings"]
    assert (settings.tenant, settings.user) == ("north", "Cleo")


async def test_what_a_token_may_take_a_day_bounds_its_runs_and_outlives_the_server(tmp_path):
    most, where = 12_000, tmp_path / "runs.db"
    tokens = tokens_of(anna={"limits": {"runs_at_once": 2, "tokens_a_day": most}})
    spent, statuses = 0, []

    def as_long_as_asked(request):
        most_of_reply = request.body.get("max_completion_tokens", 3_500)
        return f"---\ncomplexity: simple\n---\n{'Paris. ' * (most_of_reply // 2)}"

    with OpenAIServer(as_long_as_asked) as models:
        model = ChatOpenAI(model="scripted", base_url=models.base_url, api_key="none")
        for _ in range(2):
            async with served(house(model=model), where, tokens) as client:
                for _ in range(20):
                    began = await client.post("/runs", json={"task": "?"}, headers=as_("anna"))
                    statuses.append(began.status_code)
                    if began.status_code == 429:
                        break
                    run = await rested(client, began.json()["run_id"], headers=as_("anna"))
                    spent += run["usage"]["tokens"]
    assert began.json()["code"] == "used_up"
    # The second server counted what the runs of the first one took.
    assert statuses == [*[201] * (len(statuses) - 2), 429, 429]
    assert most / 2 < spent <= most


async def sent(client, text, *, ends=False):
    """What a server answers to bytes; empty if it just closes the connection."""
    host, port = client.base_url.host, client.base_url.port
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(text.encode())
    if ends:
        writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer.decode()


async def test_half_slow_huge_and_deep_requests_are_refused_and_hold_nothing():
    async with served(house(), head_seconds=0.2, body_seconds=0.2) as client:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {OWNER}\r\nConnection: close\r\n"
        post = f"POST /runs HTTP/1.1\r\n{head}"
        assert await sent(client, "POST /runs HT") == ""
        # What one reader takes for a body and another one for a request is neither.
        twice = f"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{post}\r\n"
        for given in (f"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n{twice}", post + twice):
            told = await sent(client, given)
            assert told.count("HTTP/1.1 400") == 1
            assert ("two_lengths" in told, told.count("HTTP/1.1 ")) == (True, 1), told
        slow = await sent(client, f'{post}Content-Length: 99\r\n\r\n{{"task":')
        assert "408" in slow.partition("\r\n")[0]
        assert "slow_request" in slow
        huge = await sent(client, f"{post}Content-Length: 99999999999\r\n\r\n{{")
        assert "413" in huge.partition("\r\n")[0]
        for body in ('{"task": "a"', "[" * 200_000, '{"task": NaN}', '{"task": "\\ud800"}', "[]"):
            told = await client.post("/runs", content=body)
            assert told.status_code in (400, 422), body[:20]
            assert told.json()["detail"], body[:20]
        deep = json.loads("[" * 500 + "]" * 500)
        told = await client.post("/runs", json={"task": "a", "answers": {"1": deep}})
        assert told.status_code == 422
        assert "nested deeper" in told.json()["mistakes"][0]["reason"]
        assert (await client.get("/runs")).json()["runs"] == []


async def test_a_door_whose_packages_are_missing_says_which_extra_it_needs(monkeypatch):
    ours = ("replan.server.doors.ag_ui", "replan.server.doors.a2a")
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("ag_ui", "a2a") or name.startswith(ours):
            monkeypatch.delitem(sys.modules, name)
    for package in ("ag_ui", "a2a"):
        monkeypatch.setitem(sys.modules, package, None)
    async with served(house()) as client:
        for path, extra in (("/ag-ui/house", "ag-ui"), ("/a2a/house", "a2a")):
            answer = await client.post(path, json={})
            assert (answer.status_code, f"replan[{extra}]" in answer.json()["detail"]) == (
                404,
                True,
            )
        assert (await client.get("/teams")).status_code == 200


FILE = {"name": "a.txt", "content": "YQ=="}
PART = {"type": "text", "text": "a"}
SAID = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/runs", {"files": [{}] * 190_000}, "files"),
        ("/runs", {"task": "a", "answers": dict.fromkeys(map(str, range(1_001)), 1)}, "answers"),
        ("/runs", {"task": "a", "answers": {"1/a/1": "a" * 200_001}}, "1/a/1"),
        ("/runs/r/answers", {"answers": dict.fromkeys(map(str, range(1_001)), 1)}, "answers"),
        ("/sessions/s/turns", {"input": "a", "files": [{}] * 190_000}, "files"),
        ("/v1/chat/completions", {"model": "house", "messages": [{}] * 190_000}, "messages"),
        ("/ag-ui/house", {"threadId": "t", "messages": [{}] * 190_000}, "messages"),
        ("/a2a/house", {"params": {"message": {"parts": [{}] * 190_000}}}, "params.message.parts"),
        ("/mcp", {"params": {"arguments": dict.fromkeys(map(str, range(10_001)), 1)}},
         "params.arguments"),
        ("/mcp", {"params": {"inputResponses": dict.fromkeys(map(str, range(10_001)), 1)}},
         "params.inputResponses"),
        ("/runs", {"task": "a", "files": [FILE] * 21}, "files"),
        ("/sessions/s/turns", {"input": "a", "files": [FILE] * 21}, "files"),
        ("/sessions/s/turns", {"input": dict.fromkeys(map(str, range(1_001)), 1)}, "input"),
        ("/v1/chat/completions", {"model": "house", "messages": [SAID] * 2_001}, "messages"),
        ("/v1/chat/completions",
         {"model": "house", "messages": [SAID | {"content": [PART] * 1_001}]}, "messages[0]"),
        ("/v1/chat/completions",
         {"messages": [SAID], "metadata": dict.fromkeys(map(str, range(10_001)), "a")}, "metadata"),
        ("/ag-ui/house", {"messages": [SAID | {"content": [PART] * 10_001}]},
         "messages[0].content"),
    ],
)  # fmt: skip
async def test_every_door_refuses_a_long_list_with_its_count_and_begins_nothing(path, body, field):
    async with served(house()) as client:
        told = await client.post(path, json=body)
        assert told.status_code in (200, 400, 422)
        assert re.search(r"at most|too many entries|1,001 answers", told.text)
        assert field in told.text
        assert len(told.content) < 2_000
        assert (await client.get("/runs")).json()["runs"] == []


async def test_the_values_of_a_body_for_mcp_are_counted_before_it_is_read():
    async with served(house()) as client:
        told = await client.post(
            "/mcp", json={"params": {"arguments": {"task": [[0] * 9_000] * 30}}}
        )
        assert (told.status_code, told.json()["id"]) == (400, None)
        assert "more than 200,000 values" in told.json()["error"]["message"]

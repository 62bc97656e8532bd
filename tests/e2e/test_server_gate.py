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


async def test_a_wrong_host_origin_or_token_is_refused_without_a_hint():
    async with served(house()) as client:
        own = str(client.base_url).removeprefix("http://").rstrip("/")
        cases = [
            ({"Host": "evil.example"}, 421, "wrong_host"),
            ({"Host": f"evil.example:{own.partition(':')[2]}"}, 421, "wrong_host"),
            ({"Host": ""}, 421, "wrong_host"),
            ({"Origin": "http://evil.example"}, 403, "wrong_origin"),
            ({"Origin": "null"}, 403, "wrong_origin"),
            ({"Authorization": ""}, 401, "no_token"),
            ({"Authorization": "Bearer no"}, 401, "no_token"),
            ({"Authorization": f"Basic {OWNER}"}, 401, "no_token"),
            ({"Authorization": f"Bearer {OWNER[:-1]}"}, 401, "no_token"),
        ]
        told = set()
        for headers, status, code in cases:
            for path in ("/runs", "/openapi.json", "/nowhere"):
                answer = await client.get(path, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (status, code), headers
                told |= {answer.text} if status == 401 else set()
        assert len(told) == 1
        assert OWNER[:-1] not in told.pop()
        same = {"Origin": f"http://{own}"}
        assert (await client.get("/runs", headers=same)).status_code == 200
        assert (await client.get("/ready", headers={"Authorization": ""})).status_code == 200


TENANTS = {
    "anna": {"tenant": "north", "roles": ["run"]},
    "ben": {"tenant": "south", "roles": ["run", "answer"]},
    "cleo": {"tenant": "north", "roles": ["answer"], "user": "Cleo"},
    "root": {"roles": ["operate"]},
}
BLUE = {"answers": {"1": "blue"}}


async def waiting_runs(client):
    """A run of the same name for anna and ben, that waits."""
    own = {}
    for name in ("anna", "ben"):
        body = {"plan": ASK, "run_id": "job"}
        began = await client.post("/runs", json=body, headers=as_(name))
        own[name] = began.json()["run_id"]
        assert (await rested(client, "job", headers=as_(name)))["run_id"] == own[name]
    return own


async def test_a_tenant_sees_nothing_of_another():
    async with served(house(), tokens=tokens_of(**TENANTS)) as client:
        own = await waiting_runs(client)
        assert own == {"anna": "north.job", "ben": "south.job"}
        for path in ("", "/events", "/texts/a"):
            other = await client.get(f"/runs/{own['anna']}{path}", headers=as_("ben"))
            never = await client.get(f"/runs/never-was{path}", headers=as_("ben"))
            assert other.status_code == never.status_code == 404
            assert other.text.replace("north.job", "never-was") == never.text
        for action, given in (("answers", BLUE), ("stop", {})):
            path = f"/runs/{own['anna']}/{action}"
            assert (await client.post(path, json=given, headers=as_("ben"))).status_code == 404
        listed = {}
        for name in ("anna", "ben", "root"):
            page = await client.get("/runs", headers=as_(name))
            listed[name] = {each["run_id"] for each in page.json()["runs"]}
        assert listed == {"anna": {own["anna"]}, "ben": {own["ben"]}, "root": {*own.values()}}
        stolen = await client.get("/runs", params={"label": "tenant:north"}, headers=as_("ben"))
        assert (stolen.status_code, "north.job" in stolen.text) == (422, False)


async def test_a_run_uses_what_is_of_the_person_and_the_tenant_of_its_token(tmp_path):
    where = tmp_path / "runs.db"
    tokens = tokens_of(cleo={"tenant": "north", "user": "Cleo"})
    async with served(house(), where, tokens) as client:
        began = await client.post("/runs", json={"plan": DIG}, headers=as_("cleo"))
        run = (await rested(client, began.json()["run_id"], headers=as_("cleo")))["run_id"]
    async with open_runtime(house(), storage=where) as runtime:
        settings = (await state_of(run, runtime.resources))["settings"]
    assert (settings.tenant, settings.user) == ("north", "Cleo")


async def test_a_role_bounds_what_a_token_does():
    async with served(house(), tokens=tokens_of(**TENANTS)) as client:
        run = (await waiting_runs(client))["anna"]
        for name, action in (("anna", "answers"), ("cleo", "stop"), ("anna", "retry")):
            given = BLUE if action == "answers" else {}
            refused = await client.post(f"/runs/{run}/{action}", json=given, headers=as_(name))
            assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        await client.post(f"/runs/{run}/answers", json=BLUE, headers=as_("cleo"))
        assert (await rested(client, run, headers=as_("cleo")))["outcome"] == "completed"
        events = await client.get(f"/runs/{run}/events", headers=as_("anna"))
        given = [each for each in events.json()["events"] if each["type"] == "answer_received"]
        assert [each["by"] for each in given] == ["Cleo"]


async def test_a_token_starts_no_more_runs_at_once_than_it_may():
    leave = asyncio.Event()

    async def work(_):
        await leave.wait()
        return "dug"

    tokens = tokens_of(anna={"limits": {"runs_at_once": 2}}, ben={})
    async with served(house(work), tokens=tokens) as client:
        began = [
            await client.post("/runs", json={"plan": DIG}, headers=as_("anna")) for _ in range(3)
        ]
        assert [each.status_code for each in began] == [201, 201, 429]
        assert began[2].json()["code"] == "too_many_runs"
        assert began[2].headers["retry-after"]
        other = await client.post("/runs", json={"plan": DIG}, headers=as_("ben"))
        assert other.status_code == 201
        leave.set()
        for each in (began[0], began[1], other):
            await rested(client, each.json()["run_id"], headers=as_("ben"))
        await client.post("/runs", json={"plan": DIG}, headers=as_("anna"))
        assert began[0].status_code == 201


async def test_an_answer_that_cannot_be_used_frees_nothing_of_a_run_at_work():
    leave = asyncio.Event()

    async def work(_):
        await leave.wait()
        return "dug"

    tokens = tokens_of(anna={"limits": {"runs_at_once": 1, "tokens_a_day": 100_000}})
    async with served(house(work), tokens=tokens) as client:
        client.headers.update(as_("anna"))
        body = {"plan": "- [ ] 1. Dig @worker\n- [ ] 2. Paint @painter\n"}
        run = (await client.post("/runs", json=body)).json()["run_id"]
        async with client.stream(
            "GET", f"/runs/{run}/events", headers={"Accept": "text/event-stream"}
        ) as stream:
            async for line in stream.aiter_lines():
                if "input_requested" in line:
                    break
        stale = {"answers": {"2": {"answer": "blue", "fingerprint": "another"}}}
        refused = await client.post(f"/runs/{run}/answers", json=stale)
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_input")
        assert (await client.post("/runs", json={"plan": DIG})).status_code == 429
        leave.set()
        await rested(client, run)
        again = await client.post(f"/runs/{run}/answers", json={"answers": {"2": "blue"}})
        assert again.status_code == 202


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


async def test_figures_are_for_who_watches_and_name_no_tenant():
    names = ("anna", "eye", "reader", "root", "watcher")
    tokens = tokens_of(
        anna={"tenant": "north"},
        eye={"roles": ["watch"]},
        reader={"roles": ["read"]},
        root={"roles": ["operate"]},
        watcher={"tenant": "south", "roles": ["watch"]},
    )
    with OpenAIServer(lambda _: "---\ncomplexity: simple\n---\nParis.") as models:
        model = ChatOpenAI(model="scripted", base_url=models.base_url, api_key="none")
        async with served(house(model=model), tokens=tokens) as client:
            begun = await client.post("/runs", json={"task": "Where?"}, headers=as_("anna"))
            await rested(client, begun.json()["run_id"], headers=as_("anna"))
            await client.post("/runs", json={"plan": ASK, "run_id": "job"}, headers=as_("anna"))
            await rested(client, "job", headers=as_("anna"))
            told = {name: await client.get("/metrics", headers=as_(name)) for name in names}
            assert [each.status_code for each in told.values()] == [403, 200, 403, 200, 403]
            seen = await client.get("/runs", headers=as_("eye"))
            assert (seen.status_code, seen.json()["code"]) == (403, "not_allowed")
    text = told["eye"].text
    for line in (
        'replan_runs_total{outcome="answered",team="house"} 1.0',
        'replan_runs_total{outcome="waiting",team="house"} 1.0',
        'replan_runs_unfinished{outcome="waiting",team="house"} 1.0',
        'replan_runs_active{team="house"} 0.0',
        'replan_model_call_seconds_count{model="scripted",result="ok",team="house"} 1.0',
        "replan_open_streams 0.0",
        "replan_loop_lag_seconds_count",
    ):
        assert line in text, text
    assert "north" not in text
    assert "anna" not in text


FILE = {"name": "a.txt", "content": "YQ=="}
PART = {"type": "text", "text": "a"}
SAID = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/runs", {"files": [{}] * 190_000}, "files"),
        ("/runs", {"task": "a", "answers": dict.fromkeys(map(str, range(1_001)), 1)}, "answers"),
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
        assert re.search(r"entries; at most|too many entries|1,001 answers", told.text)
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


@pytest.mark.parametrize(
    "answers", [{"1": "blue"}, {"1/worker/1": ""}, {"1/worker/1": "a" * 200_001}]
)
async def test_answers_that_no_question_can_have_are_refused_before_a_run_begins(answers):
    async with served(house()) as client:
        told = await client.post("/runs", json={"task": "a", "answers": answers})
        assert told.status_code == 422
        assert next(iter(answers)) in told.json()["detail"]
        assert (await client.get("/runs")).json()["runs"] == []

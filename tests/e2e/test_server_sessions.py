"""Sessions over HTTP: turns, what is kept of them, and whose they are."""

import asyncio
import json

from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always
from served import as_, served, tokens_of

THINK = "---\ncomplexity: complex\n---\n- [ ] 1. The hall @painter\n"
JUDGE = "---\nverdict: complete\n---\nThe hall is painted."
STREAM = {"Accept": "text/event-stream"}
TOKENS = tokens_of(
    anna={"tenant": "north", "user": "Anna", "roles": ["run", "answer"]},
    paul={"tenant": "north", "roles": ["run"]},
    ben={"tenant": "south", "user": "Anna", "roles": ["run", "answer"]},
)


class House:
    """A painter who asks, and can be held up."""

    def __init__(self):
        self.at_work, self.leave = asyncio.Event(), asyncio.Event()
        self.leave.set()
        self.painted = 0

    async def paint(self, context):
        self.at_work.set()
        await self.leave.wait()
        colour = ask_user("Which colour?")
        self.painted += 1
        return f"{context.task_description} is {colour}"

    def team(self, **settings):
        painter = Specialist(name="painter", intended_use="Paints.", run=self.paint, effects="pure")
        model = ScriptedModel({"think": always(THINK), "feedback": always(JUDGE)})
        return Team(host=Host(model=model), specialists=[painter], **settings)


async def taken(client, session, who="anna", **body):
    return await client.post(f"/sessions/{session}/turns", json=body, headers=as_(who))


async def streamed(client, session, who="anna", until=None, **body):
    """What a turn tells, each with its name, up to the event of a type."""
    told, name = [], "event"
    async with client.stream(
        "POST", f"/sessions/{session}/turns", json=body, headers={**as_(who), **STREAM}
    ) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                told.append((name, json.loads(line.removeprefix("data: "))))
                if until and told[-1][1]["type"] == until:
                    break
    return told


async def test_a_session_is_asked_answered_read_moved_and_removed(tmp_path):
    house = House()
    async with served(house.team(), tmp_path / "runs.db", TOKENS) as client:
        told = await streamed(client, "hall", input="Paint the hall.", turn_id="m1")
        assert [name for name, _ in told] == ["event"] * (len(told) - 1) + ["result"]
        asked = told[-1][1]
        assert (asked["response"], asked["metadata"]["version"]) == ("Which colour?", 1)
        run = asked["metadata"]["run_id"]
        seen = await client.get(f"/runs/{run}/events", headers=as_("anna"))
        kept = {each["seq"]: each for each in seen.json()["events"]}
        for each in (each for name, each in told if name == "event" and each["seq"]):
            # But for the names of long texts, which are kept beside the run, and its counts.
            beside = dict.fromkeys(("prompt", "reply", "refs", "stats"))
            assert {**kept[each["seq"]], **beside} == {**each, **beside}
        assert (await taken(client, "hall", input=" ")).status_code == 422
        done = (await taken(client, "hall", input="Blue.", turn_id="m2")).json()
        assert (done["response"], house.painted) == ("The hall is painted.", 1)
        assert (await taken(client, "hall", input="Blue.", turn_id="m2")).json() == done
        assert (await streamed(client, "hall", input="Blue.", turn_id="m2"))[0][1] == done
        assert (await taken(client, "hall", input="Red.", turn_id="m2")).status_code == 422


async def test_a_session_is_read_by_pages_moved_taken_back_and_removed(tmp_path):
    async with served(House().team(), tmp_path / "runs.db", TOKENS) as client:
        run = (await taken(client, "hall", input="Paint the hall.")).json()["metadata"]["run_id"]
        await taken(client, "hall", input="Blue.")
        page = await client.get("/sessions/hall/history?limit=3", headers=as_("anna"))
        said = [each["content"] for each in page.json()["messages"]]
        assert said == ["Which colour?", "Blue.", "The hall is painted."]
        before = {"before": page.json()["before"]}
        page = await client.get("/sessions/hall/history", params=before, headers=as_("anna"))
        assert [each["content"] for each in page.json()["messages"]] == ["Paint the hall."]

        context = (await client.get("/sessions/hall", headers=as_("anna"))).json()["context"]
        body = {"context": context}
        again = await client.post("/sessions", json=body, headers=as_("anna"))
        assert (again.status_code, again.json()["code"]) == (409, "conflict")
        moved = await client.post("/sessions", json=body, headers=as_("paul"))
        assert (moved.status_code, moved.json()) == (201, {"session_id": "hall", "version": 1})

        taken_back = await client.post("/sessions/hall/undo", headers=as_("anna"))
        assert [each["content"] for each in taken_back.json()["messages"]] == said[1:]
        context = (await client.get("/sessions/hall", headers=as_("anna"))).json()["context"]
        open_run = {**context, "session_id": "other"}
        refused = await client.post("/sessions", json={"context": open_run}, headers=as_("anna"))
        assert refused.json()["mistakes"][0]["field"] == "context.project_state.run"
        listed = (await client.get("/sessions", headers=as_("anna"))).json()["sessions"]
        assert [(each["session_id"], each["stage"]) for each in listed] == [("hall", "question")]
        assert (await client.delete("/sessions/hall", headers=as_("anna"))).status_code == 204
        assert (await client.get(f"/runs/{run}", headers=as_("anna"))).status_code == 404
        for name, left in (("anna", 0), ("paul", 1)):
            listed = (await client.get("/sessions", headers=as_(name))).json()["sessions"]
            assert len(listed) == left


async def test_another_ones_session_and_its_runs_are_as_unknown_as_one_that_never_was():
    async with served(House().team(), tokens=TOKENS) as client:
        asked = (await taken(client, "hall", input="Paint the hall.")).json()
        run = asked["metadata"]["run_id"]
        for name in ("paul", "ben"):
            for method, path in (
                ("GET", ""),
                ("DELETE", ""),
                ("GET", "/history"),
                ("POST", "/undo"),
            ):
                told = [
                    await client.request(method, f"/sessions/{each}{path}", headers=as_(name))
                    for each in ("hall", "never")
                ]
                assert [each.status_code for each in told] == [404, 404]
                assert told[0].text.replace("hall", "never") == told[1].text
            for path in ("", "/events"):
                found = await client.get(f"/runs/{run}{path}", headers=as_(name))
                assert found.status_code == 404
            assert (await client.get("/runs", headers=as_(name))).json()["runs"] == []
            # The same name is a session of their own.
            assert (await taken(client, "hall", name, input="Hello.")).json()["metadata"][
                "version"
            ] == 1
        labels = {"plan": "- [ ] 1. Paint @painter\n", "labels": {"session": "hall"}}
        refused = await client.post("/runs", json=labels, headers=as_("paul"))
        assert refused.json()["mistakes"][0]["field"] == "labels.session"
        key = asked["metadata"]["questions"][0]["key"]
        by_key = await taken(client, "hall", "paul", input={key: "blue"})
        assert (by_key.status_code, by_key.json()["code"]) == (403, "not_allowed")


async def test_who_leaves_a_turn_leaves_it_alone_and_a_second_one_is_busy():
    house = House()
    house.leave.clear()
    async with served(house.team(), tokens=TOKENS) as client:
        body = {"input": "Paint the hall.", "turn_id": "m1"}
        await streamed(client, "hall", until="specialist_invoked", **body)
        await house.at_work.wait()
        for headers in ({}, STREAM):
            busy = await client.post(
                "/sessions/hall/turns", json=body, headers={**as_("anna"), **headers}
            )
            assert (busy.status_code, busy.json()["code"]) == (409, "busy")
            assert busy.headers["retry-after"]
        house.leave.set()
        async with asyncio.timeout(20):
            while (result := await taken(client, "hall", **body)).status_code == 409:
                pass
        assert result.json()["response"] == "Which colour?"
        assert result.json()["metadata"]["version"] == 1


async def test_turns_count_for_their_token_and_loosen_nothing():
    house = House()
    house.leave.clear()
    limits = {"runs_at_once": 1}
    tokens = tokens_of(anna={"tenant": "north", "limits": limits}, ben={"tenant": "south"})
    teams = {"one": house.team(), "two": house.team()}
    async with served(teams, tokens=tokens) as client:
        body = {"input": "Paint.", "team": "one"}
        first = asyncio.create_task(taken(client, "a", **body))
        await house.at_work.wait()
        refused = await taken(client, "b", **body)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
        assert (await client.get("/sessions/b", headers=as_("anna"))).status_code == 404
        loose = {"limits": {"max_rounds": 1_000}}
        refused = await taken(client, "c", "ben", **body, settings=loose)
        assert refused.json()["mistakes"][0]["field"] == "settings.limits.max_rounds"
        house.leave.set()
        assert (await first).json()["metadata"]["stage"] == "question"
        other = await taken(client, "a", input="Blue.", team="two")
        assert other.json()["mistakes"][0]["field"] == "team"
        assert (await taken(client, "a", input="Blue.", team="one")).json()["success"]


async def test_a_turn_is_stopped_by_its_run_and_what_means_nothing_is_a_mistake_of_its_field():
    house = House()
    house.leave.clear()
    async with served(house.team(), tokens=TOKENS) as client:
        for given in (None, {}, {"1/painter/1": "blue"}):
            for headers in ({}, STREAM):
                path, body = "/sessions/new/turns", {"input": given, "turn_id": "t1"}
                refused = await client.post(path, json=body, headers={**as_("anna"), **headers})
                assert (refused.status_code, refused.json()["mistakes"][0]["field"]) == (
                    422,
                    "input",
                )
        for context, field in (
            ({}, "context.session_id"),
            ({"session_id": 7}, "context.session_id"),
            ({"session_id": "\ud800"}, "context.session_id"),
            ({"session_id": "a", "dialogue_history": [7]}, "context.dialogue_history[0]"),
            ({"session_id": "a", "format": 10_000}, "context.format"),
        ):
            body = json.dumps({"context": context})
            refused = await client.post("/sessions", content=body, headers=as_("anna"))
            assert refused.json()["mistakes"][0]["field"] == field
        turn = asyncio.create_task(taken(client, "hall", input="Paint the hall."))
        await house.at_work.wait()
        (run,) = (await client.get("/runs", headers=as_("anna"))).json()["runs"]
        path = f"/runs/{run['run_id']}/stop"
        await client.post(path, json={"force": True}, headers=as_("anna"))
        async with asyncio.timeout(20):
            assert (await turn).json()["metadata"]["outcome"] == "interrupted"
        house.leave.set()
        gone_on = (await taken(client, "hall", input=None)).json()
        assert gone_on["response"] == "Which colour?"

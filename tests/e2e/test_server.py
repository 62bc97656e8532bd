"""Runs over HTTP: a real client at a real server on loopback."""

import asyncio
import base64
import json

from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always
from served import rested, served

END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}
STREAM = {"Accept": "text/event-stream"}
PLAN = "# House\n\n- [ ] 1. Dig @worker\n- [ ] 2. Paint @painter (after 1)\n"


class House:
    """Work that can be held up, and a question."""

    def __init__(self, **settings):
        self.at_work, self.leave = asyncio.Event(), asyncio.Event()
        self.leave.set()
        self.did = []
        self.settings = settings

    async def work(self, context):
        self.did.append(context.plan_step.id)
        self.at_work.set()
        await self.leave.wait()
        return "dug"

    def team(self):
        works = {"run": self.work, "effects": "pure"}
        members = [
            Specialist(name="worker", intended_use="Works.", **works),
            Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Hue?")),
        ]
        return Team(host=Host(model=ScriptedModel(END)), specialists=members, **self.settings)


async def heard(client, run_id, after=None, until=lambda _: False, **query):
    """The events that a stream tells, and the last word of it."""
    headers = STREAM if after is None else {**STREAM, "Last-Event-ID": str(after)}
    told, rest = [], None
    async with client.stream(
        "GET", f"/runs/{run_id}/events", headers=headers, params=query
    ) as stream:
        name = ""
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                if name == "idle":
                    rest = data
                else:
                    told.append(data)
            if told and until(told[-1]):
                break
    return told, rest


async def test_who_leaves_a_stream_leaves_the_run_alone_and_misses_nothing():
    house = House()
    async with served(house.team(), beat=0.05) as client:
        house.leave.clear()
        began = await client.post("/runs", json={"plan": PLAN, "labels": {"job": "7"}})
        assert (began.status_code, began.json()["outcome"]) == (201, "running")
        run = began.json()["run_id"]
        await house.at_work.wait()
        first, _ = await heard(client, run, until=lambda each: each["type"] == "specialist_invoked")
        following = asyncio.create_task(heard(client, run, after=first[-1]["seq"]))
        async with client.stream("GET", f"/runs/{run}/events", headers=STREAM) as silent:
            async for line in silent.aiter_lines():
                if line == ": still there":
                    break
        house.leave.set()
        then, rest = await following
        assert rest == {"run_id": run, "outcome": "waiting"}
        seqs = [each["seq"] for each in first + then]
        assert seqs == [*range(1, len(seqs) + 1)]


async def test_a_run_is_answered_once_and_ends():
    async with served(House().team()) as client:
        run = (await client.post("/runs", json={"plan": PLAN})).json()["run_id"]
        waits = await rested(client, run)
        assert [step["status"] for step in waits["steps"]] == ["completed", "waiting"]
        (asked,) = waits["pending_questions"]
        assert (asked["key"], asked["kind"], asked["text"]) == ("2/painter/1", "question", "Hue?")
        given = {"answers": {"2": {"answer": "blue", "fingerprint": asked["fingerprint"]}}}
        assert (await client.post(f"/runs/{run}/answers", json=given)).status_code == 202
        ended = await rested(client, run)
        assert (ended["outcome"], ended["answer"]) == ("completed", "The end.")
        page = (await client.get(f"/runs/{run}/events", params={"after": 2, "limit": 3})).json()
        assert ([each["seq"] for each in page["events"]], page["next"]) == ([3, 4, 5], 5)
        whole, _ = await heard(client, run)
        assert whole[-1]["type"] == "task_completed"
        (answered,) = [each for each in whole if each["type"] == "answer_received"]
        assert answered["by"] == "owner"
        over = await client.get(
            f"/runs/{run}/events", headers={**STREAM, "Last-Event-ID": str(whole[-1]["seq"])}
        )
        assert over.status_code == 204
        again = await client.post(f"/runs/{run}/answers", json=given)
        assert (again.status_code, again.json()["code"]) == (409, "nothing_asked")


async def test_files_go_with_a_task_and_what_a_model_was_told_is_read_by_its_reference():
    model = ScriptedModel({"think": "---\ncomplexity: simple\n---\nA list of colours."})
    member = Specialist(name="a", intended_use="Works.", run=lambda _: "done")
    async with served(Team(host=Host(model=model), specialists=[member])) as client:
        held = base64.b64encode(b"blue, grey " * 200).decode()
        body = {"task": "What is this?", "files": [{"name": "colours.txt", "content": held}]}
        run = (await client.post("/runs", json=body)).json()["run_id"]
        assert (await rested(client, run))["answer"] == "A list of colours."
        assert "blue, grey" in str(model.calls[0].messages)
        events = (await client.get(f"/runs/{run}/events")).json()["events"]
        (called,) = [each for each in events if each["type"] == "model_invoked"]
        refs = [each["ref"] for each in called["prompt"]]
        texts = [(await client.get(f"/runs/{run}/texts/{ref}")).json()["text"] for ref in refs]
        assert "blue, grey" in texts[-1]


async def test_a_start_that_comes_again_is_the_same_run_and_another_one_is_refused(tmp_path):
    house, body = House(), {"plan": "- [ ] 1. Dig @worker\n", "run_id": "job-7"}
    async with served(house.team(), tmp_path / "runs.db") as client:
        both = await asyncio.gather(*(client.post("/runs", json=body) for _ in range(2)))
        assert {each.json()["run_id"] for each in both} == {"job-7"}
        await rested(client, "job-7")
        later = await client.post("/runs", json=body)
        assert (later.status_code, later.json()["outcome"]) == (200, "completed")
        assert house.did == [1]
        other = await client.post("/runs", json={**body, "title": "Other"})
        assert (other.status_code, other.json()["code"]) == (409, "run_id_taken")
        assert other.json()["mistakes"][0]["field"] == "run_id"


async def test_a_run_is_stopped_resumed_corrected_and_listed(tmp_path):
    house = House()
    async with served(house.team(), tmp_path / "runs.db") as client:
        house.leave.clear()
        plan = "- [ ] 1. Dig @worker\n- [ ] 2. Dig more @worker (after 1)\n"
        run = (await client.post("/runs", json={"plan": plan})).json()["run_id"]
        await house.at_work.wait()
        await client.post(f"/runs/{run}/stop", json={"force": True})
        assert (await rested(client, run))["outcome"] == "interrupted"
        house.leave.set()
        assert (await client.post(f"/runs/{run}/resume")).status_code == 202
        assert (await rested(client, run))["outcome"] == "completed"
        anew = await client.post(f"/runs/{run}/retry", json={"step": 2, "run_id": "again"})
        assert (anew.status_code, anew.json()["run_id"]) == (202, "again")
        new = await rested(client, "again")
        assert (new["outcome"], new["origin"]) == ("completed", run)
        unknown = await client.post(f"/runs/{run}/skip", json={"step": 9})
        assert (unknown.status_code, "no step 9" in unknown.json()["detail"]) == (422, True)
        for number in range(3):
            body = {"plan": "- [ ] 1. Dig @worker\n", "labels": {"n": str(number)}}
            await rested(client, (await client.post("/runs", json=body)).json()["run_id"])
        pages, cursor = [], {}
        while cursor is not None:
            page = (await client.get("/runs", params={"limit": 2, **cursor})).json()
            pages.append([each["run_id"] for each in page["runs"]])
            cursor = page["next"] and {"cursor": page["next"]}
        assert [len(each) for each in pages] in ([2, 2, 1], [2, 2, 1, 0])
        assert pages[2] == [run]
        by_label = (await client.get("/runs", params={"label": "n:1"})).json()["runs"]
        assert [each["labels"]["n"] for each in by_label] == ["1"]
        waiting = (await client.get("/runs", params={"outcome": "waiting"})).json()["runs"]
        assert waiting == []


async def test_what_is_wrong_is_a_problem_with_its_field_and_fix():
    house = House(limits={"max_rounds": 3})
    async with served(house.team()) as client:
        run = (await client.post("/runs", json={"plan": PLAN})).json()["run_id"]
        await rested(client, run)
        wrong = {
            "team": {"task": "Dig.", "team": "castle"},
            "tasks": {"tasks": "Dig."},
            "task": {},
            "settings.limits.max_rounds": {"task": "a", "settings": {"limits": {"max_rounds": 9}}},
            "settings.approvals": {"task": "Dig.", "settings": {"approvals": "plan"}},
            "settings.user": {"task": "Dig.", "settings": {"user": "eva"}},
            "labels.team": {"task": "Dig.", "labels": {"team": "x"}},
            "files[0].content": {"task": "a", "files": [{"name": "a.txt", "content": "?"}]},
            "run_id": {"task": "Dig.", "run_id": "a/b"},
            "plan": {"plan": "- [ ] 1. Dig @worker (after 2)\n"},
        }
        for field, body in wrong.items():
            told = await client.post("/runs", json=body)
            problem = told.json()
            assert told.headers["content-type"] == "application/problem+json", field
            assert (told.status_code, problem["status"]) == (422, 422), (field, problem)
            first = problem["mistakes"][0]
            assert first["field"] == field, problem
            assert first["reason"], problem
            assert first["fix"], problem
        assert problem["mistakes"][0]["line"] == 1
        never = f"/runs/{run}/events"
        cases = {
            "/runs/nobody": (404, "unknown_run"),
            f"{never}?after=999": (422, "bad_request"),
            f"{never}?before=1": (422, "bad_request"),
            f"/runs/{run}/texts/abc": (404, "unknown_text"),
            "/runs?label=a": (422, "bad_request"),
            "/runs?cursor=nobody": (422, "bad_request"),
            "/teams/castle": (404, "unknown_team"),
            "/castle": (404, "unknown_address"),
        }
        for path, (status, code) in cases.items():
            told = await client.get(path)
            assert (told.status_code, told.json()["code"]) == (status, code), path
        headers = {**STREAM, "Last-Event-ID": "999"}
        assert (await client.get(never, headers=headers)).status_code == 422
        wrong = (await client.delete("/runs")).json()
        assert (wrong["status"], wrong["detail"]) == (405, "/runs takes GET, POST, not DELETE.")
        given = await client.post(f"/runs/{run}/answers", json={"answers": {"9": "blue"}})
        assert given.json()["mistakes"][0]["field"] == "answers.9"
        assert (await client.get("/health")).json() == {"status": "ok"}
        told = (await client.get("/teams/house")).json()
        effects = {each["name"]: each["effects"] for each in told["specialists"]}
        assert effects == {"worker": "pure", "painter": "unsafe"}
        limits = told["settings"]["limits"]
        assert (limits["max_rounds"], limits["max_steps"]) == (3, 100)


async def test_what_only_looks_like_a_name_a_time_or_an_address_is_refused():
    async with served(House().team()) as client:
        for name in (
            ".",
            "..",
            " ",
            "a/b.txt",
            "a\\b.txt",
            "a\x7f.txt",
            "a\u202etxt.exe",
            "a\u2066",
        ):
            body = {"task": "Read.", "files": [{"name": name, "content": ""}]}
            refused = await client.post("/runs", json=body)
            assert refused.status_code == 422, name
            assert refused.json()["mistakes"][0]["field"] == "files[0].name"
        limits = {"limits": {"max_seconds": 1e-320}}
        refused = await client.post("/runs", json={"task": "Read.", "settings": limits})
        assert refused.json()["mistakes"][0]["field"] == "settings.limits.max_seconds"
        assert (await client.get("/runs/")).json()["code"] == "unknown_address"
        operations = [
            operation
            for path in (await client.get("/openapi.json")).json()["paths"].values()
            for operation in path.values()
        ]
        assert all("500" in each["responses"] for each in operations)
        named = {"name": "Grüße \u2665\ufe0f.txt", "content": "aGk="}
        body = {"plan": "- [ ] 1. Read @worker\n", "files": [named]}
        assert (await client.post("/runs", json=body)).status_code != 422

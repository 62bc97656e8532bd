"""The server as a front end sees it by AG-UI: every line is an event of the protocol."""

import asyncio
import json

from doors import EVENT, asked, state_of
from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always
from served import OWNER, as_, served, tokens_of

PLAN = "---\ncomplexity: complex\n---\n# Hall\n\n- [ ] 1. Paint the hall @painter\n"
END = always("---\nverdict: complete\n---\nThe hall is painted.")
OPENED = {"START": 1, "STARTED": 1, "END": -1, "FINISHED": -1}


def team(think=PLAN, **settings):
    def paint(context):
        return f"{context.task_description}: {ask_user('Which colour?')}"

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    model = ScriptedModel({"think": always(think), "feedback": END})
    return Team(host=Host(model=model), specialists=[member], **settings)


async def told(client, body, where="town", headers=None):
    """The events of a request, each checked by the protocol's own models."""
    events = []
    address = f"/ag-ui/{where}"
    async with client.stream("POST", address, json=body, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            assert not line or line.startswith(("data: ", ":"))
            if line.startswith("data: "):
                events.append(EVENT.validate_json(line.removeprefix("data: ")))
    check_order(events)
    return events


def check_order(events):
    """See that a run is opened and closed once, and that all that it opens is closed."""
    types = [each.type.value for each in events]
    assert types[0] == "RUN_STARTED"
    assert types[-1] in ("RUN_FINISHED", "RUN_ERROR")
    assert len([each for each in types if each.startswith("RUN_")]) == 2
    if types[-1] == "RUN_FINISHED":
        for kind in ("STEP", "TEXT_MESSAGE", "REASONING", "REASONING_MESSAGE", "TOOL_CALL"):
            ends = [each.removeprefix(f"{kind}_") for each in types if each.startswith(kind)]
            assert sum(OPENED.get(each, 0) for each in ends) == 0, (kind, types)


def text_of(events):
    return "".join(each.delta for each in events if each.type.value == "TEXT_MESSAGE_CONTENT")


async def check_refusals(client, interrupt):
    """See that each wrong request is refused with its field."""
    wrong = [
        ({"resume": [{"interruptId": "x", "status": "resolved"}]}, "resume[0].interruptId"),
        ({"resume": [{"interruptId": interrupt, "status": "resolved"}] * 2}, "resume"),
        ({"tools": [{"name": "a", "description": "", "parameters": {}}]}, "tools"),
        ({"messages": []}, "messages"),
        ({"threadId": 7}, "threadId"),
        ({"threadId": ""}, "threadId"),
    ]
    for fields, field in wrong:
        refused = await client.post("/ag-ui/town", json=asked() | fields)
        assert refused.status_code == 422, refused.text
        assert refused.json()["mistakes"][0]["field"] == field


async def test_a_run_is_told_as_events_and_an_interrupt_is_answered_in_its_thread():
    async with served({"town": team(approval="plan")}) as client:
        first = await told(client, asked("Paint the hall."))
        begun = first[0]
        assert (begun.thread_id, begun.run_id, begun.protocol_version) == ("t1", "r1", "1.0")
        (plan,) = first[-1].outcome.interrupts
        assert plan.reason == "confirmation"
        assert "- [ ] 1. Paint the hall" in plan.message
        assert "approve" in json.dumps(plan.response_schema)
        await check_refusals(client, plan.id)
        vague = {"interruptId": plan.id, "status": "resolved", "payload": "Looks interesting"}
        again = await told(client, asked(resume=[vague]))
        assert again[-1].outcome.interrupts[0].message.startswith("This is not a decision.")
        yes = {"interruptId": plan.id, "status": "resolved", "payload": {"action": "approve"}}
        second = await told(client, asked(resume=[yes]))
        (question,) = second[-1].outcome.interrupts
        assert (question.reason, question.message) == ("input_required", "Which colour?")
        steps = [each for each in second if each.type.value.startswith("STEP_")]
        assert [each.step_name for each in steps] == ["1 painter"] * 2
        # A front end that knows no interrupts answers by a message.
        third = await told(client, asked("Paint the hall.", "blue"))
        assert third[-1].outcome.type == "success"
        assert text_of(third) == "The hall is painted."
        assert [each["status"] for each in state_of(third)["steps"]] == ["completed"]
        run = (await client.get(f"/runs/{third[-1].result['run_id']}")).json()
        assert (run["outcome"], run["labels"]["door"]) == ("completed", "ag-ui")
        assert "blue" in run["steps"][0]["result"]
        # The next message begins a new run.
        assert (await told(client, asked("Again.")))[-1].outcome.type == "interrupt"


async def test_what_is_abandoned_waits_and_what_is_of_others_is_unknown():
    tokens = tokens_of(anna={"tenant": "north", "roles": ["run", "answer"]}, ben={"tenant": "s"})
    mute = tokens_of(eve={"tenant": "north", "roles": ["run"]})
    tokens.by_digest.update(mute.by_digest)
    async with served({"town": team()}, tokens=tokens) as client:
        first = await told(client, asked("Paint the hall."), headers=as_("anna"))
        (question,) = first[-1].outcome.interrupts
        # The same messages are no answer to what they led to.
        again = await told(client, asked("Paint the hall.", runId="r2"), headers=as_("anna"))
        assert [each.id for each in again[-1].outcome.interrupts] == [question.id]
        answer = {"interruptId": question.id, "status": "resolved", "payload": "blue"}
        # The same thread of another token has nothing that waits.
        for name in ("ben", "eve"):
            body = asked(resume=[answer])
            refused = await client.post("/ag-ui/town", json=body, headers=as_(name))
            assert "nothing waits" in refused.json()["detail"]
        await told(client, asked("Paint the hall."), headers=as_("eve"))
        refused = await client.post("/ag-ui/town", json=asked("blue"), headers=as_("eve"))
        assert (refused.status_code, "role 'answer'" in refused.text) == (403, True)
        left = {"interruptId": question.id, "status": "cancelled"}
        ended = await told(client, asked(resume=[left]), headers=as_("anna"))
        assert ended[-1].outcome.type == "cancelled"
        run = ended[0].metadata["replan"]["run_id"]
        seen = await client.get(f"/runs/{run}", headers=as_("anna"))
        assert seen.json()["outcome"] == "waiting"
        nobody = await client.post("/ag-ui/nobody", json=asked("Hi"), headers=as_("anna"))
        assert (nobody.status_code, nobody.json()["code"]) == (404, "unknown_team")
        described = (await client.get("/openapi.json", headers=as_("anna"))).json()
        assert "/ag-ui/{team}" in described["paths"]
    # A model that is away ends a run with an error.
    broken = Team(
        host=Host(model=ScriptedModel({"think": []})),
        specialists=[Specialist(name="a", intended_use="Works.", run=lambda _: "done")],
    )
    async with served({"town": broken}, tokens=OWNER) as client:
        events = await told(client, asked("Paint the hall."))
        assert events[-1].type.value == "RUN_ERROR"
        assert json.dumps(events[-1].message)


def said_by(role, text):
    return {"id": f"{role}-1", "role": role, "content": text}


async def test_a_request_whose_newest_words_are_not_the_users_answers_nothing():
    async with served({"town": team()}) as client:
        first = await told(client, asked("Paint the hall."))
        (question,) = first[-1].outcome.interrupts
        # A front end that comes back sends what it has, and no new message.
        for number, kept in enumerate(("reasoning", "assistant", "activity")):
            body = asked("Paint the hall.", runId=f"back-{number}")
            text = {"of": "a run"} if kept == "activity" else "I think."
            body["messages"] += [said_by(kept, text) | {"activityType": "course"}]
            again = await told(client, body)
            assert [each.id for each in again[-1].outcome.interrupts] == [question.id]
        # One that has cut the conversation has said nothing new, either.
        body = asked("Well, paint the hall.", runId="cut")
        body["messages"] += [said_by("assistant", "I think.")]
        refused = await client.post("/ag-ui/town", json=body)
        assert (refused.status_code, refused.json()["mistakes"][0]["field"]) == (422, "messages")
        done = await told(client, asked("Paint the hall.", "blue", runId="answer"))
        assert done[-1].outcome.type == "success"


async def test_what_cannot_be_taken_with_an_answer_is_told_and_what_waits_is_shown_again():
    picture = {"type": "image", "source": {"type": "data", "value": "aa", "mimeType": "image/png"}}
    async with served({"town": team(approval="always")}) as client:
        first = await told(client, asked("Paint the hall."))
        (plan,) = first[-1].outcome.interrupts
        yes = {"interruptId": plan.id, "status": "resolved", "payload": {"action": "approve"}}
        shown = state_of(first)
        edited = shown | {"plan": shown["plan"].replace("the hall", "the whole town")}
        refused = await told(client, asked(resume=[yes], state=edited, runId="r2"))
        (still,) = refused[-1].outcome.interrupts
        assert (still.id, "changes nothing" in still.message) == (plan.id, True)
        # It has the plan of the run again, and that can be approved.
        again = await told(client, asked(resume=[yes], state=state_of(refused), runId="r3"))
        (question,) = again[-1].outcome.interrupts
        body = asked("Paint the hall.", "Like this:", runId="r4")
        text = {"type": "text", "text": "Like this:"}
        body["messages"][-1]["content"] = [text, picture]
        refused = await told(client, body)
        (still,) = refused[-1].outcome.interrupts
        assert (still.id, "has a picture" in still.message) == (question.id, True)
        done = await told(client, asked("Paint the hall.", "blue", runId="r5"))
        assert done[-1].outcome.type == "success"


async def test_a_message_that_comes_while_another_one_of_its_thread_is_worked_on_is_not_used():
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def paint(context):
        at_work.set()
        await leave.wait()
        return f"{context.task_description}: {ask_user('Which colour?')}"

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    model = ScriptedModel({"think": always(PLAN), "feedback": END})
    held_up = Team(host=Host(model=model), specialists=[member])
    async with served({"town": held_up}) as client:
        first = asyncio.ensure_future(told(client, asked("Paint the hall.", runId="one")))
        await at_work.wait()
        second = asyncio.ensure_future(told(client, asked("Paint the door.", runId="two")))
        other = asyncio.ensure_future(told(client, asked("A.", runId="three", thread="t2")))
        while len((await client.get("/runs")).json()["runs"]) < 2:  # noqa: ASYNC110 - on the server
            await asyncio.sleep(0.02)
        leave.set()
        (ours,) = (await first)[-1].outcome.interrupts
        (theirs,) = (await second)[-1].outcome.interrupts
        assert "worked on another message" in theirs.message
        assert len((await other)[-1].outcome.interrupts) == 1
        answer = {"interruptId": ours.id, "status": "resolved", "payload": "blue"}
        done = await told(client, asked(resume=[answer], runId="four"))
        assert done[-1].result == {
            "run_id": (await first)[-1].result["run_id"],
            "outcome": "completed",
        }

"""The server through MCP's own client: a team is a tool."""

import asyncio

import pytest
from mcp import MCPError, types

from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always
from served import as_, rested, served, tokens_of, tools_of

PLAN = "# Hall\n\n- [ ] 1. Paint the hall @painter\n- [ ] 2. Dry it @painter (after 1)\n"
END = always("---\nverdict: complete\n---\nThe hall is painted.")


def team(**settings):
    def paint(context):
        return "dry" if context.plan_step.id > 1 else f"painted {ask_user('Which colour?')}"

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    host = Host(model=ScriptedModel({"feedback": END}))
    return Team(host=host, specialists=[member], **settings)


class User:
    """Somebody whom an MCP client asks."""

    def __init__(self, **said):
        self.asked, self.said = [], said

    async def __call__(self, context, params):
        self.asked.append(params.message)
        fields = params.requested_schema["properties"]
        content = {name: self.said[name] for name in fields if name in self.said}
        return types.ElicitResult(action="accept" if content else "decline", content=content)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_team_is_a_tool_that_tells_its_progress_and_asks(mode):
    user, heard = User(answer="blue", action="approve"), []

    async def progress(_, __, message):
        heard.append(message)

    async with served({"town hall": team(approval="plan")}) as client:
        async with tools_of(client, mode=mode, elicitation_callback=user) as mcp:
            (tool,) = (await mcp.list_tools()).tools
            assert tool.name == "town_hall"
            arguments = {"task": "Paint the hall.", "plan": PLAN}
            result = await mcp.call_tool(tool.name, arguments, progress_callback=progress)
        assert not result.is_error
        assert result.content[0].text == "The hall is painted."
        run = (await client.get(f"/runs/{result.structured_content['run_id']}")).json()
        assert (run["outcome"], run["labels"]["door"]) == ("completed", "mcp")
        assert "painted blue" in run["steps"][0]["result"]
    assert "Step 2 @painter: completed" in heard
    assert user.asked[-1] == "Which colour?"


async def test_who_cannot_or_may_not_ask_is_told_what_waits_and_a_refusal_decides_nothing():
    tokens = tokens_of(anna={"roles": ["run"], "tenant": "north"})
    arguments = {"task": "Paint the hall.", "plan": PLAN}
    async with served({"town": team()}, tokens=tokens) as client:
        for options in ({}, {"elicitation_callback": User(answer="blue")}):
            async with tools_of(client, "anna-has-this-token", **options) as mcp:
                result = await mcp.call_tool("town", arguments)
            assert "Which colour?" in result.content[0].text
            run = result.structured_content["run_id"]
            assert f"/runs/{run}/answers" in result.content[0].text
            seen = await client.get(f"/runs/{run}", headers=as_("anna"))
            assert seen.json()["outcome"] == "waiting"
        async with tools_of(client, "anna-has-this-token") as mcp:
            asked = (await client.get(f"/runs/{run}", headers=as_("anna"))).json()[
                "pending_questions"
            ]
            place = f"{asked[0]['key']} {asked[0]['fingerprint']}".strip()
            answer = {place: types.ElicitResult(action="accept", content={"answer": "blue"})}
            given = {"input_responses": answer, "request_state": run}
            refused = await mcp.call_tool("town", arguments, **given)
            assert (refused.is_error, "'answer'" in refused.content[0].text) == (True, True)
        seen = await client.get(f"/runs/{run}", headers=as_("anna"))
        assert seen.json()["outcome"] == "waiting"
    async with served({"town": team()}) as client:
        user = User()
        async with tools_of(client, mode="legacy", elicitation_callback=user) as mcp:
            result = await mcp.call_tool("town", arguments)
        assert (user.asked, result.structured_content["outcome"]) == (["Which colour?"], "waiting")


async def test_an_answer_counts_once_and_another_one_to_what_it_answered_is_refused():
    arguments = {"task": "Paint the hall.", "plan": PLAN}
    teams = {"town hall": team(), "town_hall": team()}
    async with served(teams) as client, tools_of(client) as mcp:
        names = [each.name for each in (await mcp.list_tools()).tools]
        assert names == ["town_hall", "town_hall_2"]
        run = (await mcp.call_tool(names[1], arguments)).structured_content["run_id"]
        (asked,) = (await client.get(f"/runs/{run}")).json()["pending_questions"]
        place = f"{asked['key']} {asked['fingerprint']}"

        async def answered(text):
            said = types.ElicitResult(action="accept", content={"answer": text})
            responses = {"input_responses": {place: said}, "request_state": run}
            return await mcp.call_tool(names[1], arguments, **responses)

        for _ in range(2):
            assert (await answered("blue")).content[0].text == "The hall is painted."
        refused = await answered("red")
        assert (refused.is_error, "does not wait" in refused.content[0].text) == (True, True)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_its_client_gives_up_is_stopped(mode):
    at_work, never = asyncio.Event(), asyncio.Event()

    async def paint(_):
        at_work.set()
        await never.wait()

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    held_up = Team(host=Host(model=ScriptedModel({"feedback": END})), specialists=[member])
    arguments = {"task": "Paint the hall.", "plan": PLAN}
    async with served({"town": held_up}, grace=0.1) as client:
        async with tools_of(client, mode=mode) as mcp:
            call = asyncio.ensure_future(mcp.call_tool("town", arguments))
            await at_work.wait()
            call.cancel()
            await asyncio.wait({call})
            (begun,) = (await client.get("/runs")).json()["runs"]
            run = await rested(client, begun["run_id"])
        assert (run["outcome"], run["reason"].startswith("it was stopped by")) == (
            "interrupted",
            True,
        )


async def test_a_call_that_is_too_large_or_cannot_be_kept_is_told_why():
    async with served({"town": team()}) as client, tools_of(client) as mcp:
        for task, why in (("x" * 33_000_000, "larger than 32,000,000 bytes"), ("a\0b", "a NUL")):
            with pytest.raises(MCPError, match=why):
                await mcp.call_tool("town", {"task": task})
        assert not (await client.get("/runs")).json()["runs"]


async def test_too_many_answers_are_refused():
    arguments = {"task": "Paint the hall.", "plan": PLAN}
    said = types.ElicitResult(action="accept", content={"answer": "blue"})
    async with served({"town": team()}) as client, tools_of(client) as mcp:
        run = (await mcp.call_tool("town", arguments)).structured_content["run_id"]
        given = {"input_responses": {str(n): said for n in range(1_001)}, "request_state": run}
        refused = await mcp.call_tool("town", arguments, **given)
        assert (refused.is_error, "1,000 at most" in refused.content[0].text) == (True, True)
        seen = await client.get(f"/runs/{run}")
    assert seen.json()["outcome"] == "waiting"

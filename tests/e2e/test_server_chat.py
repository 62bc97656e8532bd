"""The server through OpenAI's own client: a team is a model."""

import asyncio

import httpx2
import openai
import pytest

from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always
from served import OWNER, served

PLAN = "---\ncomplexity: complex\n---\n# Hall\n\n- [ ] 1. Paint the hall @painter\n"
END = always("---\nverdict: complete\n---\nThe hall is painted.")
SIMPLE = "---\ncomplexity: simple\n---\nParis is the capital."


def team(think, **settings):
    def paint(context):
        return f"{context.task_description}: {ask_user('Which colour?')}"

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    model = ScriptedModel({"think": think and always(think), "feedback": END})
    return Team(host=Host(model=model), specialists=[member], **settings)


def client_of(client, key=OWNER):
    http = httpx2.AsyncClient(trust_env=False, timeout=60)
    return openai.AsyncOpenAI(
        base_url=f"{client.base_url}/v1".replace("//v1", "/v1"),
        api_key=key,
        http_client=http,
        max_retries=0,
    )


def said(*turns):
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)]


async def test_a_team_answers_as_a_model_whole_and_in_pieces():
    async with served({"town": team(SIMPLE)}) as client, client_of(client) as chat:
        assert [each.id async for each in await chat.models.list()] == ["town"]
        asked = [{"role": "system", "content": "Be short."}, *said("The capital of France?")]
        whole = await chat.chat.completions.create(model="town", messages=asked, temperature=0)
        (choice,) = whole.choices
        assert (choice.message.content, choice.finish_reason) == ("Paris is the capital.", "stop")
        run = (await client.get(f"/runs/{whole.replan['run_id']}")).json()
        assert (run["outcome"], run["labels"]["door"]) == ("answered", "chat")
        stream = await chat.chat.completions.create(
            model="town", messages=asked, stream=True, stream_options={"include_usage": True}
        )
        pieces = [each async for each in stream]
        text = "".join(each.choices[0].delta.content or "" for each in pieces if each.choices)
        assert text == "Paris is the capital."
        assert len([each for each in pieces if each.choices]) > 3
        assert pieces[-1].usage.total_tokens == whole.usage.total_tokens


async def test_a_question_is_the_answer_and_the_next_message_answers_it():
    async with served({"town": team(PLAN)}) as client, client_of(client) as chat:
        turns = ["Paint the hall."]
        first = await chat.chat.completions.create(model="town", messages=said(*turns))
        asked = first.choices[0].message.content
        assert asked.startswith("Which colour?")
        # Another conversation of the same words is another run.
        other = await chat.chat.completions.create(model="town", messages=said(*turns))
        assert other.replan["run_id"] != first.replan["run_id"]
        stream = await chat.chat.completions.create(
            model="town",
            messages=said(*turns, f"{asked} ", "blue"),
            stream=True,
            reasoning_effort="low",
        )
        pieces = [each async for each in stream]
        assert "".join(p.choices[0].delta.content or "" for p in pieces) == "The hall is painted."
        course = "".join(
            getattr(p.choices[0].delta, "reasoning_content", None) or "" for p in pieces
        )
        assert "Step 1 @painter: completed" in course
        run = (await client.get(f"/runs/{first.replan['run_id']}")).json()
        assert (run["outcome"], "blue" in run["steps"][0]["result"]) == ("completed", True)


async def test_two_messages_of_a_session_at_once_on_two_servers_begin_one_run(postgres_database):
    at_work, leave = asyncio.Event(), asyncio.Event()

    async def paint(_):
        at_work.set()
        await leave.wait()
        return ask_user("Which colour?")

    def waits():
        member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
        model = ScriptedModel({"think": always(PLAN), "feedback": END})
        return {"town": Team(host=Host(model=model), specialists=[member])}

    async with (
        served(waits(), postgres_database) as one,
        served(waits(), postgres_database) as two,
        client_of(one) as first,
        client_of(two) as second,
    ):
        session = {"model": "town", "metadata": {"session_id": "7"}}

        def say(chat, text):
            return chat.chat.completions.create(messages=said(text), **session)

        both = asyncio.gather(say(first, "The hall."), say(second, "The door."))
        await at_work.wait()
        leave.set()
        replies = [each.choices[0].message.content for each in await both]
        assert all("Which colour?" in each for each in replies)
        assert len([each for each in replies if "worked on another message" in each]) == 1
        (run,) = (await one.get("/runs")).json()["runs"]
        # Sent again, what was not used is no answer to what it has not seen.
        for chat, text in ((first, "The hall."), (second, "The door.")):
            again = await say(chat, text)
            assert again.replan == {"run_id": run["run_id"], "outcome": "waiting"}
        assert (await say(second, "blue")).replan["outcome"] == "completed"


async def test_errors_have_the_form_that_openais_client_knows():
    async with served({"town": team(SIMPLE)}) as client, client_of(client) as chat:
        with pytest.raises(openai.NotFoundError) as raised:
            await chat.chat.completions.create(model="city", messages=said("Hello?"))
        assert raised.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as raised:
            await chat.chat.completions.create(model="town", messages=said("Hello?"), n=2)
        assert raised.value.param == "n"
        async with client_of(client, "no-such-token-here") as stranger:
            with pytest.raises(openai.AuthenticationError) as raised:
                await stranger.models.list()
            assert raised.value.code == "invalid_api_key"
    async with served({"town": team([])}) as client, client_of(client) as chat:
        stream = await chat.chat.completions.create(
            model="town", messages=said("Hello?"), stream=True
        )
        with pytest.raises(openai.APIError, match="did not answer"):
            [each async for each in stream]

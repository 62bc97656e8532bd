"""The server through OpenAI's own client: a team is a model."""

import asyncio

import httpx2
import openai
import pytest

from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always
from served import OWNER, as_, served, tokens_of

PLAN = "---\ncomplexity: complex\n---\n# Hall\n\n- [ ] 1. Paint the hall @painter\n"
END = always("---\nverdict: complete\n---\nThe hall is painted.")
SIMPLE = "---\ncomplexity: simple\n---\nParis is the capital."


def team(think, **settings):
    def paint(context):
        return f"{context.task_description}: {ask_user('Which colour?')}"

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    model = ScriptedModel({"think": always(think), "feedback": END})
    return Team(host=Host(model=model), specialists=[member], **settings)


def client_of(client, key=OWNER):
    http = httpx2.AsyncClient(trust_env=False, timeout=60)
    return openai.AsyncOpenAI(
        base_url=f"{client.base_url}/v1".replace("//v1", "/v1"),
        api_key=key,
        http_client=http,
        max_retries=0,
    )


PICTURE = {"url": "data:image/png;base64,aaaa"}


def shown(role, picture, text="Look:"):
    """A message with a picture."""
    parts = [{"type": "image_url", "image_url": picture}, {"type": "text", "text": text}]
    return {"role": role, "content": parts if role == "system" else parts[::-1]}


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


async def test_a_session_goes_on_by_its_id_and_a_model_that_is_away_is_an_error():
    model = ScriptedModel({"think": [SIMPLE, SIMPLE]})
    member = Specialist(name="a", intended_use="Works.", run=lambda _: "done")
    alone = Team(host=Host(model=model), specialists=[member])
    async with served({"town": alone}) as client, client_of(client) as chat:
        session = {"model": "town", "metadata": {"session_id": "7"}}
        await chat.chat.completions.create(messages=said("The capital of France?"), **session)
        await chat.chat.completions.create(messages=said("And its river?"), **session)
        shown = str(model.calls[-1].messages)
        assert "The capital of France?" in shown
        assert "Paris is the capital." in shown
        # Nothing is left of the script.
        with pytest.raises(openai.InternalServerError, match="did not answer"):
            await chat.chat.completions.create(messages=said("And?"), **session)
        stream = await chat.chat.completions.create(
            model="town", messages=said("And?"), stream=True
        )
        with pytest.raises(openai.APIError, match="did not answer"):
            [each async for each in stream]


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


async def test_a_message_that_comes_again_answers_nothing_and_says_how_it_would():
    async with served({"town": team(PLAN)}) as client, client_of(client) as chat:
        session = {"model": "town", "metadata": {"session_id": "hall"}}
        create = chat.chat.completions.create
        first = await create(messages=said("Paint the hall."), **session)
        again = await create(messages=said("Paint the hall."), **session)
        assert again.replan == first.replan
        assert "`1/painter/1=ANSWER`" in again.choices[0].message.content
        named = {"model": "town", "extra_headers": {"Idempotency-Key": "k"}}
        await create(messages=said("Paint the hall."), **named)
        with pytest.raises(openai.ConflictError, match="said something else"):
            await create(messages=said("Paint the mill."), **named)


async def test_a_plan_is_decided_by_a_word_that_is_one_and_by_who_may():
    tokens = tokens_of(anna={"roles": ["run", "answer"]}, ben={"roles": ["run"]})
    team_ = team(PLAN, approval="plan")
    async with served({"town": team_}, tokens=tokens) as client:
        chats = [client_of(client, f"{name}-has-this-token") for name in ("anna", "ben")]
        session = {"model": "town", "metadata": {"session_id": "hall"}}
        for chat in chats:
            first = await chat.chat.completions.create(messages=said("Paint it."), **session)
            assert "- [ ] 1. Paint the hall" in first.choices[0].message.content
        anna, ben = chats
        with pytest.raises(openai.PermissionDeniedError, match="role 'answer'"):
            await ben.chat.completions.create(messages=said("approve"), **session)
        vague = await anna.chat.completions.create(messages=said("Looks interesting"), **session)
        assert vague.choices[0].message.content.startswith("This is not a decision.")
        asks = await anna.chat.completions.create(messages=said("approve"), **session)
        assert "Which colour?" in asks.choices[0].message.content
        ends = await anna.chat.completions.create(messages=said("red"), **session)
        assert ends.choices[0].message.content == "The hall is painted."
        events = await client.get(f"/runs/{ends.replan['run_id']}/events", headers=as_("anna"))
        given = [e for e in events.json()["events"] if e["type"] == "answer_received"]
        assert [(each["kind"], each["by"]) for each in given] == [
            ("plan", "anna"),
            ("question", "anna"),
        ]
        for chat in chats:
            await chat.close()


async def test_errors_have_the_form_that_openais_client_knows():
    async with served({"town": team(SIMPLE)}) as client, client_of(client) as chat:
        create = chat.chat.completions.create
        with pytest.raises(openai.NotFoundError) as raised:
            await create(model="city", messages=said("Hello?"))
        assert raised.value.code == "model_not_found"
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        wrong = {
            "tools": {"tools": tools},
            "n": {"n": 2},
            "response_format": {"response_format": {"type": "json_object"}},
            "tool_choice": {"tool_choice": "required"},
            "logprobs": {"logprobs": True},
            "modalities": {"modalities": ["text", "audio"]},
            "messages[0].content[0]": {"messages": [shown("system", PICTURE), *said("Hello?")]},
            "messages[0].content[1].image_url": {"messages": [shown("user", {})]},
            "messages[0].role": {"messages": [{"role": "tool", "content": "a"}]},
            "messages": {"messages": [{"role": "assistant", "content": "a"}]},
        }
        for field, options in wrong.items():
            with pytest.raises(openai.BadRequestError) as raised:
                await create(**{"model": "town", "messages": said("Hello?"), **options})
            assert raised.value.param == field
        async with client_of(client, "no-such-token-here") as stranger:
            with pytest.raises(openai.AuthenticationError) as raised:
                await stranger.models.list()
            assert raised.value.code == "invalid_api_key"


async def test_a_picture_in_an_answer_is_told_and_not_left_out():
    async with served({"town": team(PLAN)}) as client, client_of(client) as chat:
        asked = said("Paint the hall.")
        first = await chat.chat.completions.create(model="town", messages=asked)
        asked += [{"role": "assistant", "content": first.choices[0].message.content}]
        asked += [shown("user", PICTURE)]
        again = await chat.chat.completions.create(model="town", messages=asked)
        assert (again.replan["outcome"], again.replan["run_id"]) == (
            "waiting",
            first.replan["run_id"],
        )
        assert "has a picture" in again.choices[0].message.content
        assert "Which colour?" in again.choices[0].message.content


async def test_what_a_request_sets_without_effect_is_named_in_the_reply():
    async with served({"town": team(SIMPLE)}) as client, client_of(client) as chat:
        asked = [{**said("The capital of France?")[0], "name": "ann"}]
        options = {"max_tokens": 5, "stop": ["is"], "temperature": 0, "extra_body": {"tempo": 1}}
        whole = await chat.chat.completions.create(model="town", messages=asked, **options)
        assert whole.choices[0].message.content == "Paris is the capital."
        unused = {"max_tokens", "stop", "temperature", "tempo", "messages[0].name"}
        assert set(whole.replan["unused"]) == unused
        pieces = await chat.chat.completions.create(
            model="town", messages=asked, stream=True, max_tokens=5
        )
        last = [each async for each in pieces][-1]
        assert set(last.replan["unused"]) == {"max_tokens", "messages[0].name"}
        plain = await chat.chat.completions.create(model="town", messages=said("And Spain's?"))
        assert "unused" not in plain.replan


async def test_the_first_request_of_a_session_is_read_as_a_whole():
    model = ScriptedModel({"think": always(SIMPLE)})
    member = Specialist(name="a", intended_use="Works.", run=lambda _: "done")
    alone = Team(host=Host(model=model), specialists=[member])
    async with served({"town": alone}) as client, client_of(client) as chat:
        session = {"model": "town", "metadata": {"session_id": "7"}}
        instructed = [{"role": "system", "content": "Be short."}]
        before = said("I live in Lyon.", "Good to know.", "Which capital is mine?")
        await chat.chat.completions.create(messages=[*instructed, *before], **session)
        seen = str(model.calls[-1].messages)
        assert all(text in seen for text in ("Be short.", "Lyon", "Good to know.", "is mine?"))
        later = [*instructed, *before, *said("Paris."), *said("And its river?")]
        await chat.chat.completions.create(messages=later, **session)
        seen = str(model.calls[-1].messages)
        # What the server keeps is not read again.
        assert [seen.count(text) for text in ("Be short.", "Lyon", "its river?")] == [1, 1, 1]


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

"""Answers and results of a type: asked for, checked, asked for once more, or failed clearly."""

from itertools import groupby

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from replan import Host, Specialist, Team, build_graph, run, stream
from replan.errors import ConfigurationError, TeamError
from replan.state.limits import Limits
from replan.state.results import SpecialistResult
from replan.testing import ScriptedModel


class Price(BaseModel):
    item: str
    cents: int


PEN = Price(item="pen", cents=120)
PEN_TEXT = '{"item": "pen", "cents": 120}'
SIMPLE = "---\ncomplexity: simple\nscore: 0.1\n---\n"
COMPLETE = "---\nverdict: complete\n---\n"
PLAN = {"messages": [("user", "Go.")], "plan": "- [ ] 1. Price the pen @buyer\n"}


def of_host(replies, **fields):
    model = ScriptedModel(replies)
    buyer = Specialist("buyer", "Buys.", run=lambda _: "It costs 120.")
    return model, Team(Host(model, **fields), [buyer])


def of_buyer(**fields):
    model = ScriptedModel({"feedback": f"{COMPLETE}Done."})
    return Team(model, [Specialist("buyer", "Buys.", output_type=Price, **fields)])


APART = {
    "think": "---\ncomplexity: complex\n---\n",
    "feedback": COMPLETE,
    "final_answer": f"```json\n{PEN_TEXT}\n```",
}


@pytest.mark.parametrize(
    ("script", "given", "calls", "outcome"),
    [
        ({"think": SIMPLE + PEN_TEXT}, "What does a pen cost?", "merged", "answered"),
        ({"feedback": COMPLETE + PEN_TEXT}, PLAN, "merged", "completed"),
        (APART, PLAN, "separate", "completed"),
    ],
    ids=["simple", "after a plan", "of a call of its own"],
)
async def test_the_answer_of_a_run_is_a_value(script, given, calls, outcome):
    model, team = of_host(script)
    with model:
        result = await run(team.replace(calls=calls), given, output_type=Price)
    assert (result.outcome, result.output) == (outcome, PEN)
    assert result.state["output"] == PEN.model_dump()
    assert any('"cents"' in call.messages[0].text for call in model.calls)


async def test_a_value_that_looks_like_a_reply_of_the_host_is_the_answer_whole():
    class Judged(BaseModel):
        answer: str
        score: float

    replies = {"think": SIMPLE, "direct_answer": '{"answer": "Yes.", "score": 0.5}'}
    model, team = of_host(replies, output_type=Judged)
    with model:
        result = await run(team.replace(calls="separate"), "Is it?")
    assert result.output == Judged(answer="Yes.", score=0.5)
    assert Judged.model_validate_json(result.text) == result.output


async def test_an_answer_of_another_type_is_asked_for_once_more_with_its_mistakes():
    model, team = of_host(
        {"think": f"{SIMPLE}A pen is 120 cents.", "direct_answer": PEN_TEXT}, output_type=Price
    )
    with model:
        events = [event async for event in stream(build_graph(team), "What does a pen cost?")]
    assert events[-1].output == PEN.model_dump()
    assert "no JSON value" in model.calls[1].messages[-1].text
    shown = [each.type for each in events if each.type.startswith("answer")]
    assert [kind for kind, _ in groupby(shown)] == [
        "answer_token",
        "answer_reset",
        "answer_token",
    ]


async def test_a_run_whose_answer_stays_of_another_type_fails_and_says_why():
    model, team = of_host(
        {"feedback": f"{COMPLETE}It is cheap.", "final_answer": '{"item": "pen"}'},
        output_type=Price,
    )
    with model:
        result = await run(team, PLAN)
    assert (result.outcome, result.output, result.text) == ("failed", None, "It is cheap.")
    warning = "There is no output: it is not a valid Price: cents: Field required."
    assert result.warnings == (warning,)


async def test_a_limit_that_leaves_no_call_for_it_makes_the_run_partial():
    model, team = of_host({"feedback": f"{COMPLETE}It is cheap."}, output_type=Price)
    with model:
        result = await run(team.replace(limits=Limits(max_model_calls=1)), PLAN)
    assert (result.outcome, result.output) == ("partial", None)
    assert result.state["limit_reached"] == "max_model_calls"
    assert "There is no output" in result.warnings[-1]


def agent(_):
    return {"messages": [AIMessage("Here.")], "structured_response": PEN}


@pytest.mark.parametrize(
    "fields",
    [
        {"run": lambda _: PEN},
        {"run": lambda _: PEN.model_dump()},
        {"run": lambda _: f"It is:\n```json\n{PEN_TEXT}\n```\n"},
        {"run": lambda _: AIMessage(PEN_TEXT)},
        {"run": lambda _: SpecialistResult(output=PEN.model_dump())},
        {"invokable": agent},
        {"invokable": lambda _: "pen 120", "output_processor": lambda _: PEN},
    ],
    ids=["model", "mapping", "text", "message", "result", "agent", "processor"],
)
async def test_a_specialist_gives_a_value(fields):
    result = await run(of_buyer(**fields), PLAN)
    assert (result.outcome, result.results[1].output) == ("completed", PEN)
    assert result.results[1].text


async def test_a_function_that_gives_another_type_fails_its_step():
    with ScriptedModel({"feedback": f"{COMPLETE}Nothing came."}) as model:
        buyer = Specialist("buyer", "Buys.", run=lambda _: {"item": 1}, output_type=Price)
        limits = Limits(step_retries=0)
        result = await run(Team(model, [buyer], limits=limits), PLAN)
    assert "it is not a valid Price" in result.results[1].error
    assert result.outcome != "completed"


async def test_a_chat_model_is_asked_once_more_for_its_value():
    replies = {"specialist": ["120 cents", PEN_TEXT], "feedback": f"{COMPLETE}Done."}
    with ScriptedModel(replies) as model:
        buyer = Specialist("buyer", "Buys.", chat_model=model, output_type=Price)
        result = await run(Team(model, [buyer]), PLAN)
    assert result.results[1].output == PEN
    first, second = [each for each in model.calls if each.node == "specialist"]
    assert "JSON schema" in first.messages[0].text
    assert "Your result cannot be used: there is no JSON value" in second.messages[-1].text


async def test_who_depends_on_a_value_sees_the_names_of_its_schema():
    class Town(BaseModel):
        model_config = ConfigDict(alias_generator=to_camel)
        town_name: str

    seen = []

    def look(context):
        seen.append(context.inputs[1])
        return "Seen."

    with ScriptedModel({"feedback": f"{COMPLETE}Done."}) as model:
        finder = Specialist(
            "finder", "Finds.", run=lambda _: Town(townName="Oslo"), output_type=Town
        )
        team = Team(model, [finder, Specialist("looker", "Looks.", run=look)])
        plan = "- [ ] 1. Find @finder\n- [ ] 2. Look @looker (after 1)\n"
        result = await run(team, {"plan": plan})
    assert result.results[1].output == Town(townName="Oslo")
    assert result.state["current_specialist_results"]["1/finder"].output == {"townName": "Oslo"}
    assert '"townName": "Oslo"' in seen[0]


async def test_the_last_event_of_a_stream_has_the_answer_of_its_type():
    model, team = of_host({"think": SIMPLE + PEN_TEXT})
    with model:
        events = [event async for event in stream(team, "A pen?", output_type=Price)]
    assert events[-1].output == PEN.model_dump()


async def test_a_chat_model_may_say_that_it_could_not_do_the_step():
    failed = "---\nstatus: failed\nretry: no\n---\nThe shop is closed."
    replies = {"specialist": failed, "feedback": f"{COMPLETE}Nothing."}
    with ScriptedModel(replies) as model:
        buyer = Specialist("buyer", "Buys.", chat_model=model, output_type=Price)
        result = await run(Team(model, [buyer]), PLAN)
    assert result.results[1].is_failed
    assert "The shop is closed." in result.results[1].error


async def test_messages_of_ones_own_are_followed_by_what_is_asked():
    seen = []

    def answer(messages):
        seen.extend(messages)
        return PEN_TEXT

    await run(of_buyer(invokable=answer, input_processor=lambda _: "Price it."), PLAN)
    (message,) = seen
    assert message.text.startswith("Price it.")
    assert "JSON schema" in message.text


def test_a_type_that_has_no_schema_is_a_mistake_of_the_team():
    with pytest.raises(TeamError, match=r"host\.output_type"):
        Team(Host("offline", output_type=object()), [Specialist("a", "A.", run=str)])


async def test_a_compiled_team_is_given_its_type_before():
    graph = build_graph(of_buyer(run=lambda _: PEN))
    with pytest.raises(ConfigurationError, match="before"):
        await run(graph, "Go.", output_type=Price)

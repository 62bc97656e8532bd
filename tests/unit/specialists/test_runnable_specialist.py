"""A specialist that is a runnable, a graph or a function of messages."""

from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from replan import (
    Budget,
    Host,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
    run,
    stream,
)
from replan.specialists.prompted import PromptedSpecialist, RunnableAnswer
from replan.state.team import SpecialistCard
from replan.testing import ScriptedModel

CARD = SpecialistCard(name="a", intended_use="Works.")
COMPLETE = "---\nverdict: complete\n---\nThe answer."
CONFIG = {"tags": ["mine"]}


def of(invokable=None, **options):
    answer = RunnableAnswer(invokable, options.pop("streamable", None))
    return PromptedSpecialist(card=CARD, answer=answer, **options)


def told(messages):
    return f"{messages[0].type}, {messages[-1].type}: {'Compare both' in messages[-1].text}"


async def told_async(messages):
    return told(messages)


def with_tags(messages, config):
    return f"{told(messages)}, {config['tags']}"


async def with_tags_async(messages, config):
    return with_tags(messages, config)


@pytest.mark.parametrize(
    "invokable",
    [
        told,
        told_async,
        with_tags,
        with_tags_async,
        RunnableLambda(told),
        RunnableLambda(told_async),
        RunnableLambda(with_tags),
        RunnableLambda(told) | RunnableLambda(AIMessage),
    ],
)
async def test_functions_and_runnables_get_the_messages_of_the_step(context, invokable):
    result = await of(invokable, system_prompt="You compare.").run(context, CONFIG)
    assert "system, human: True" in result.text
    assert ("mine" in result.text) is (
        getattr(invokable, "func", invokable) in (with_tags, with_tags_async)
    )


async def test_a_chain_of_a_prompt_a_model_and_a_parser_is_a_specialist(context):
    prompt = ChatPromptTemplate([("system", "You rhyme."), MessagesPlaceholder("messages")])
    with ScriptedModel({"*": ["They differ, I infer."]}) as model:
        chain = {"messages": RunnableLambda(list)} | prompt | model | StrOutputParser()
        result = await of(chain).run(context, {})
    assert result.text == "They differ, I infer."
    assert model.calls[0].messages[0].text == "You rhyme."


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_of(answer):
    graph = StateGraph(Talk)
    graph.add_node("talk", lambda state: {"messages": answer(state["messages"])})
    graph.add_edge(START, "talk")
    graph.add_edge("talk", END)
    return graph.compile()


async def test_a_compiled_graph_gets_a_state_and_its_last_message_is_the_result(context):
    def answer(messages):
        return [AIMessage(f"{len(messages)} messages"), AIMessage("The last.", id="m")]

    result = await of(graph_of(answer)).run(context, {})
    assert (result.text, result.result.id) == ("The last.", "m")


async def pieces(messages):
    yield "They "
    yield "differ."


async def chunks(messages):
    yield AIMessageChunk("They ", id="m")
    yield AIMessageChunk("differ.", id="m")


async def states(messages):
    yield {"messages": []}
    yield {"messages": [AIMessage("They differ.")]}


async def pieces_later(messages):
    return pieces(messages)


async def pieces_with_tags(messages, config):
    yield "They "
    yield "differ." if config["tags"] == ["mine"] else "do not."


@pytest.mark.parametrize(
    "streamable",
    [
        pieces,
        chunks,
        states,
        pieces_later,
        RunnableLambda(pieces),
        RunnableLambda(told) | (lambda _: "They differ."),
        pieces_with_tags,
    ],
)
async def test_what_streams_is_joined(context, streamable):
    assert (await of(streamable=streamable).run(context, CONFIG)).text == "They differ."


async def test_of_two_runnables_the_one_that_streams_is_preferred(context):
    specialist = of(RunnableLambda(lambda _: "whole"), streamable=RunnableLambda(pieces))
    assert (await specialist.run(context, {})).text == "They differ."
    specialist = of(lambda _: "whole", streamable=pieces)
    assert (await specialist.run(context, {})).text == "They differ."


async def test_a_function_that_streams_is_preferred_to_a_runnable_that_does_not(context):
    specialist = of(RunnableLambda(lambda _: "whole"), streamable=pieces)
    assert (await specialist.run(context, {})).text == "They differ."


async def test_a_stream_of_nothing_is_refused(context):
    async def nothing(messages):
        for piece in ():
            yield piece

    with pytest.raises(TypeError, match="it returned NoneType"):
        await of(streamable=nothing).run(context, {})


@pytest.mark.parametrize("answer", [None, 5, {}, {"messages": []}, ["text"]])
async def test_what_is_no_message_is_refused_with_what_to_give(context, answer):
    for invokable in (lambda _: answer, RunnableLambda(lambda _: answer)):
        with pytest.raises(TypeError, match="return a message, a text, or a state with `messages`"):
            await of(invokable).run(context, {})


async def test_processors_make_the_messages_and_the_result(context):
    specialist = of(
        lambda messages: messages[0].text.upper(),
        input_processor=lambda given: (HumanMessage(given.task_description),),
        output_processor=lambda message: SpecialistResult(confidence=0.5),
    )
    result = await specialist.run(context, {})
    assert (result.text, result.confidence) == ("COMPARE BOTH", 0.5)


async def test_an_output_processor_may_give_text_and_nothing_else_is_told_so(context):
    made = of(lambda _: "text", output_processor=lambda message: message.text.upper())
    assert (await made.run(context, {})).text == "TEXT"
    with pytest.raises(TypeError, match="it returned int"):
        await of(lambda _: "text", output_processor=lambda message: 5).run(context, {})


def team_of(model, **way):
    team = [Specialist(name="a", intended_use="Works.", **way)]
    return build_graph(Team(host=Host(model=model), specialists=team))


ASKED = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n"}


async def test_in_a_host_graph_a_subgraph_s_model_calls_are_counted_and_streamed():
    def answer(messages):
        return [inner.invoke(messages)]

    with (
        ScriptedModel({"*": ["They differ."]}) as inner,
        ScriptedModel({"feedback": COMPLETE}) as model,
    ):
        graph = team_of(model, invokable=graph_of(answer))
        events = [event async for event in stream(graph, ASKED)]
    (result,) = (event.result for event in events if event.type == "specialist_completed")
    assert (result.text, result.usage.calls) == ("They differ.", 1)
    assert events[-1].usage.calls == 2


@pytest.mark.parametrize(
    ("way", "error"),
    [
        (
            {"invokable": lambda messages: 5},
            "it returned int; return a message, a text, or a state",
        ),
        (
            {"streamable": lambda messages: 5},
            "it returned int; return a message, a text, or a state",
        ),
        (
            {"invokable": told, "input_processor": lambda context: None},
            "the input processor returned NoneType; return a list of messages",
        ),
    ],
)
async def test_in_a_host_graph_a_wrong_one_is_a_failed_result(way, error):
    with ScriptedModel({"feedback": COMPLETE}) as model:
        state = (await run(team_of(model, **way), ASKED)).state
    result = state["current_specialist_results"]["1/a"]
    assert (result.status, result.retry_count) == ("failed", 0)
    assert error in result.error


async def test_the_pieces_of_a_function_that_streams_are_events():
    with ScriptedModel({"feedback": COMPLETE}) as model:
        events = [event async for event in stream(team_of(model, streamable=pieces), ASKED)]
    tokens = [event.text for event in events if event.type == "specialist_token"]
    assert tokens == ["They ", "differ."]


HALF = AIMessage("They dif", response_metadata={"finish_reason": "length"})


@pytest.mark.parametrize(("again", "asked"), [("They differ.", 2), (HALF, 2), ("", 2)])
async def test_a_model_as_a_runnable_is_asked_once_more_for_a_result_without_its_end(again, asked):
    with ScriptedModel({"step 1": [HALF, again], "feedback": COMPLETE}) as model:
        state = (await run(team_of(model, invokable=model), ASKED)).state
    result = state["current_specialist_results"]["1/a"]
    is_whole = again == "They differ."
    assert (result.text, result.cut) == (
        ("They differ.", "") if is_whole else ("They dif", "reply_length")
    )
    assert len([call for call in model.calls if call.step == 1]) == asked


@pytest.mark.parametrize("way", ["invokable", "run"])
async def test_work_that_may_do_something_is_not_done_twice_but_marked(way):
    done = []

    def work(given):
        done.append(given)
        return HALF

    with ScriptedModel({"feedback": COMPLETE}) as model:
        state = (await run(team_of(model, **{way: work}), ASKED)).state
    result = state["current_specialist_results"]["1/a"]
    assert (result.text, result.cut, len(done)) == ("They dif", "reply_length", 1)


async def test_a_processor_of_a_result_without_its_end_gives_one_that_is_marked():
    with ScriptedModel({"step 1": [HALF, HALF], "feedback": COMPLETE}) as model:
        graph = team_of(model, chat_model=model, output_processor=lambda message: message.text)
        state = (await run(graph, ASKED)).state
    result = state["current_specialist_results"]["1/a"]
    assert (result.text, result.cut) == ("They dif", "reply_length")


async def test_where_no_call_is_left_half_a_result_is_better_than_none():
    with ScriptedModel({"step 1": HALF, "feedback": COMPLETE}) as model:
        graph = team_of(model, chat_model=model, limits=Budget(max_model_calls=1))
        state = (await run(graph, ASKED)).state
    result = state["current_specialist_results"]["1/a"]
    assert (result.text, result.cut) == ("They dif", "reply_length")

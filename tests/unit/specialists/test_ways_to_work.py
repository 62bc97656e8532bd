"""A specialist that is a function, a runnable or a graph: what it is given and may give."""

import asyncio
import functools
import threading
from contextvars import ContextVar

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel
from langgraph.graph import START, MessagesState, StateGraph

from replan import Budget, ConfigurationError, Host, Specialist, SpecialistResult, Team, run, stream
from replan.state.results import Artifact
from replan.testing import Reply, ScriptedModel

ASKED = {"messages": [("user", "Which is better?")], "plan": "- [ ] 1. Compare both @a\n"}
CONFIG = {"tags": ["mine"], "metadata": {"tenant": "t1"}}
FRONT = "---\nstatus: partial\nconfidence: 0.3\nreplan_needed: yes\n---\nHalf."
HALF = AIMessage("They dif", response_metadata={"finish_reason": "length"})
PARTIAL = SpecialistResult(
    result=AIMessage("Half."),
    status="partial",
    confidence=0.3,
    replan_needed=True,
    artifacts=(Artifact(path="a.md", title="A", media_type="text/markdown"),),
)
REFUSED = "return a message, a text, or a state with `messages`"


def team_of(**way):
    return Team(Host("offline"), [Specialist("a", "Works.", **way)])


async def result_of(**way):
    return (await run(team_of(**way), ASKED, config=CONFIG)).results[1]


async def pieces_of(**way):
    """The pieces that are shown while it works, and its result."""
    events = [event async for event in stream(team_of(**way), ASKED, config=CONFIG)]
    tokens = [event.text for event in events if event.type == "specialist_token"]
    return tokens, next(e.result for e in events if e.type == "specialist_completed")


def told(messages):
    return f"{messages[0].type}, {messages[-1].type}: {'Compare both' in messages[-1].text}"


async def told_later(messages):
    return told(messages)


def told_tags(messages, config):
    return f"{told(messages)}, {config['tags']}"


def graph_of(answer):
    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda state: {"messages": answer(state["messages"])})
    return graph.add_edge(START, "say").compile()


class Called:
    def __call__(self, given):
        return given.task_description


class CalledLater:
    async def __call__(self, given, config):
        return f"{given.task_description}, {config['tags']}"


async def task(given):
    return given.task_description


async def task_and_tags(given, config):
    return f"{given.task_description}, {config['tags']}"


FUNCTIONS = [
    (task, "Compare both"),
    (task_and_tags, "Compare both, ['mine']"),
    (lambda given, config: str(config["tags"]), "['mine']"),
    (lambda given, *, config="none": config, "none"),
    (lambda given, number=2: str(number), "2"),
    (lambda *given: str(len(given)), "1"),
    # A function that is not async may give what is to be awaited.
    (lambda given: task(given), "Compare both"),  # noqa: PLW0108 - that is the point
    (functools.partial(task_and_tags), "Compare both, ['mine']"),
    (Called(), "Compare both"),
    (CalledLater(), "Compare both, ['mine']"),
    (lambda given: "", ""),
    (lambda given: AIMessageChunk("text"), "text"),
    (lambda given: HumanMessage([{"type": "text", "text": "text"}]), "text"),
    (lambda given: {"messages": [HumanMessage("Hi."), AIMessage("text")]}, "text"),
    (lambda given: {"messages": ["text"]}, "text"),
    (lambda given: PARTIAL, "Half."),
]


async def test_a_function_of_any_kind_is_called_with_what_it_takes_and_gives_a_text():
    for number, (function, text) in enumerate(FUNCTIONS):
        result = await result_of(run=function)
        assert result.text == text, number
        assert type(result.result) is AIMessage, number
        assert result.status == ("partial" if text == "Half." else "success"), number


async def test_a_whole_result_is_taken_as_it_is():
    result = await result_of(run=lambda context: PARTIAL)
    assert (result.confidence, result.replan_needed) == (0.3, True)
    assert (result.artifacts, result.specialist_name) == (PARTIAL.artifacts, "a")


async def test_functions_and_runnables_get_the_messages_of_the_step_and_its_prompt():
    plain, tagged = "system, human: True", "system, human: True, ['mine']"
    for invokable, text in (
        (told, plain),
        (told_later, plain),
        (told_tags, tagged),
        (RunnableLambda(told_later), plain),
        (RunnableLambda(told_tags), tagged),
        (RunnableLambda(told) | RunnableLambda(AIMessage), plain),
        (
            graph_of(lambda messages: [AIMessage("first"), AIMessage(told(messages))]),
            "human, human: True",
        ),
    ):
        result = await result_of(invokable=invokable, system_prompt="You compare.")
        assert result.text == text, invokable


async def test_a_chain_of_a_prompt_a_model_and_a_parser_is_a_specialist():
    prompt = ChatPromptTemplate([("system", "You rhyme."), MessagesPlaceholder("messages")])
    with ScriptedModel({"*": ["They differ, I infer.", FRONT]}) as model:
        chain = {"messages": RunnableLambda(list)} | prompt | model
        assert (await result_of(invokable=chain | StrOutputParser())).text == (
            "They differ, I infer."
        )
        half = await result_of(invokable=chain)
    assert model.calls[0].messages[0].text == "You rhyme."
    # The front matter of a message says how it went.
    assert (half.text, half.status, half.confidence) == ("Half.", "partial", 0.3)
    assert half.replan_needed


async def pieces(messages):
    for piece in ("One ", "two ", "three."):
        yield piece


def sync_pieces(messages):
    yield from ("One ", "two ", "three.")


async def chunks(messages, config):
    for piece in ("One ", "two ", "three." if config["tags"] == ["mine"] else "?"):
        yield AIMessageChunk(piece, id="m")


async def promised(messages):
    return pieces(messages)


async def transformed(parts):
    async for part in parts:
        async for piece in pieces(part):
            yield piece


async def states(messages):
    yield {"messages": []}
    yield {"messages": [AIMessage("The text.")]}


BY_KEYS = RunnableParallel(other=lambda _: "x", messages=lambda _: ["The text."])


async def test_what_streams_is_shown_in_its_pieces_and_joined():
    for streamable in (
        *(pieces, sync_pieces, chunks, promised),
        *(RunnableLambda(pieces), RunnableGenerator(transformed)),
    ):
        tokens, result = await pieces_of(streamable=streamable)
        assert tokens == ["One ", "two ", "three."], streamable
        assert result.text == "One two three.", streamable
    for streamable in (states, BY_KEYS, graph_of(lambda _: [AIMessage("The text.")])):
        assert (await result_of(streamable=streamable)).text == "The text.", streamable


async def test_of_two_ways_the_one_that_streams_is_preferred():
    for streamable in (pieces, RunnableLambda(pieces)):
        for invokable in (lambda _: "whole", RunnableLambda(lambda _: "whole")):
            result = await result_of(invokable=invokable, streamable=streamable)
            assert result.text == "One two three."


async def test_what_a_model_says_inside_a_stream_is_shown_once_and_counted():
    async def forward(messages, config):
        async for chunk in inner.astream(messages, config):
            yield chunk

    for way in (forward, lambda inner: RunnableLambda(list) | inner | StrOutputParser()):
        with ScriptedModel([Reply("One two.", chunks=["One ", "two."])]) as inner:
            streamable = way if way is forward else way(inner)
            tokens, result = await pieces_of(streamable=streamable)
        assert tokens == ["One ", "two."]
        assert (result.text, result.usage.calls) == ("One two.", 1)


async def nothing(messages):
    for piece in ():
        yield piece


async def breaks(messages):
    yield "One "
    raise ConnectionError("gone")


NONSENSE = (None, 42, b"bytes", {}, {"messages": []}, {"text": ""})
WRONG = [
    *(
        ({way: lambda _, each=each: each}, f"it returned {type(each).__name__}; {REFUSED}")
        for way in ("run", "invokable", "streamable")
        for each in NONSENSE
    ),
    ({"invokable": RunnableLambda(lambda _: 5)}, f"it returned int; {REFUSED}"),
    ({"run": lambda context: (piece for piece in "ab")}, "it returned generator; return"),
    ({"run": lambda context: context.nothing}, "object has no attribute 'nothing'"),
    ({"streamable": nothing}, "it returned NoneType"),
    ({"invokable": told, "input_processor": lambda _: 42}, "the input processor returned int"),
    ({"invokable": told, "output_processor": lambda _: 5}, "it returned int"),
]


async def test_what_is_wrong_is_a_failed_result_that_is_not_tried_again():
    for number, (way, error) in enumerate(WRONG):
        result = await result_of(**way)
        assert (result.status, result.retry_count) == ("failed", 0), number
        assert error in result.error, number


async def test_whatever_is_raised_is_a_failed_result():
    for error, told_as in (
        (StopIteration("over"), "StopIteration"),
        (KeyError("name"), "KeyError"),
        (
            ExceptionGroup("two", [ValueError("one"), OSError("other")]),
            "ValueError: one; OSError: other",
        ),
    ):

        def fails(given, error=error):
            raise error

        for way in (
            {"run": fails},
            {"invokable": fails},
            {"invokable": told, "input_processor": fails},
            {"invokable": told, "output_processor": fails},
        ):
            result = await result_of(**way)
            assert result.status == "failed"
            assert told_as in result.error


async def test_a_stream_that_breaks_fails_the_step_and_its_pieces_were_shown():
    tokens, result = await pieces_of(streamable=breaks, effects="unsafe")
    assert tokens == ["One "]
    assert result.status == "failed"
    assert "gone" in result.error


async def test_an_input_processor_makes_the_messages():
    async def later(context, config):
        return [("user", context.task_description)]

    def last(messages):
        return f"{messages[-1].text}!"

    for processor, text in (
        (lambda context: (HumanMessage(context.task_description),), "Compare both!"),
        (later, "Compare both!"),
        # Without messages, those of the request.
        (lambda context: [], "Which is better?!"),
    ):
        assert (await result_of(invokable=last, input_processor=processor)).text == text


async def test_an_output_processor_makes_the_result():
    async def later(message):
        return SpecialistResult(confidence=0.2, status="partial")

    for processor in (lambda message: SpecialistResult(confidence=0.2, status="partial"), later):
        result = await result_of(invokable=lambda _: "The text.", output_processor=processor)
        assert (result.text, result.status, result.confidence) == ("The text.", "partial", 0.2)
    upper = await result_of(invokable=lambda _: "text", output_processor=lambda m: m.text.upper())
    assert upper.text == "TEXT"


async def test_a_function_that_is_not_async_blocks_nobody_and_sees_the_caller_s_context():
    variable, here = ContextVar("variable"), threading.current_thread()
    variable.set("the caller's")
    together = threading.Barrier(2, timeout=10)

    def work(given):
        # Only two that run at the same time get past it.
        together.wait()
        return f"{variable.get()}, elsewhere: {threading.current_thread() is not here}"

    results = await asyncio.gather(*(result_of(run=work) for _ in range(2)))
    assert {result.text for result in results} == {"the caller's, elsewhere: True"}


async def test_a_model_is_asked_once_more_for_a_result_without_its_end():
    whole, marked = ("They differ.", ""), ("They dif", "reply_length")
    for way in ("invokable", "chat_model"):
        for again in ("They differ.", HALF, ""):
            with ScriptedModel({"step 1": [HALF, again]}) as model:
                result = await result_of(**{way: model})
            assert (result.text, result.cut) == (whole if again == whole[0] else marked), way
            assert len(model.calls) == 2, way
    # What a processor gives is marked, too; where no call is left, half is better than none.
    for replies, options in (
        ([HALF, HALF], {"output_processor": lambda message: message.text}),
        ([HALF], {"limits": Budget(max_model_calls=1)}),
    ):
        with ScriptedModel({"step 1": replies}) as model:
            result = await result_of(chat_model=model, **options)
        assert (result.text, result.cut) == marked


@pytest.mark.parametrize("way", ["invokable", "run"])
async def test_work_that_may_do_something_is_not_done_twice_but_marked(way):
    done = []

    def work(given):
        done.append(given)
        return HALF

    result = await result_of(**{way: work})
    assert (result.text, result.cut, len(done)) == ("They dif", "reply_length", 1)


@pytest.mark.parametrize(
    ("way", "field"),
    [
        ({"invokable": 42}, "invokable"),
        ({"streamable": "text"}, "streamable"),
        ({"run": RunnableLambda(str)}, "run"),
        ({"run": str, "tools": [str]}, "tools"),
    ],
)
async def test_what_cannot_be_called_is_refused_before_anything_runs(way, field):
    with pytest.raises(ConfigurationError, match=rf"specialists\[0\]\.{field}"):
        await result_of(**way)


async def test_a_step_is_told_the_workspace_of_its_team(tmp_path):
    team = team_of(run=lambda context: repr(context.workspace))
    for one, told in ((team, None), (team.replace(workspace=tmp_path), str(tmp_path))):
        assert (await run(one, ASKED)).results[1].text == repr(told)

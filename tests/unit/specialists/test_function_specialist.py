"""A specialist that is a function: what it may take, and what it may give."""

import asyncio
import functools
import threading
import time
from contextvars import ContextVar

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

import warm
from replan import (
    ExecutionStatus,
    Host,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
    run,
)
from replan.specialists.function import FunctionSpecialist, call
from replan.state.team import SpecialistCard
from replan.testing import ScriptedModel
from states import state_of

CARD = SpecialistCard(name="a", intended_use="Works.")
CONFIG = {"tags": ["mine"]}


def of(function):
    return FunctionSpecialist(CARD, function)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("text", "text"),
        ("", ""),
        (AIMessage("text"), "text"),
        (AIMessageChunk("text"), "text"),
        (HumanMessage([{"type": "text", "text": "text"}]), "text"),
        ({"messages": [HumanMessage("Hi."), AIMessage("text")]}, "text"),
        ({"messages": ["text"]}, "text"),
    ],
)
async def test_text_a_message_or_a_state_is_a_result(context, answer, text):
    result = await of(lambda given: answer).run(context, {})
    assert result.text == text
    assert type(result.result) is AIMessage
    assert result.status is ExecutionStatus.SUCCESS


async def test_a_result_is_taken_as_it_is(context):
    given = SpecialistResult(status=ExecutionStatus.PARTIAL, confidence=0.5)
    assert await of(lambda _: given).run(context, {}) is given


@pytest.mark.parametrize("answer", [None, 5, b"text", ["text"], {}, {"messages": []}, {"text": ""}])
async def test_anything_else_is_refused_by_its_kind_and_with_what_to_give(context, answer):
    kind = type(answer).__name__
    with pytest.raises(
        TypeError, match=f"it returned {kind}; return a message, a text, or a state"
    ):
        await of(lambda _: answer).run(context, {})


class Called:
    def __call__(self, given):
        return f"{given.task_description}, in a thread: {threading.current_thread().name}"


class CalledAsync:
    async def __call__(self, given, config):
        return f"{given.task_description}, {config['tags']}"


async def an_async(given):
    return f"{given.task_description}, async"


async def with_configuration(given, config):
    return f"{given.task_description}, {config['tags']}"


def a_coroutine(given):
    return an_async(given)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (an_async, "async"),
        (with_configuration, "['mine']"),
        (lambda given, config: f"{config['tags']}", "['mine']"),
        (lambda given, *, config="none": config, "none"),
        (lambda *given: str(len(given)), "1"),
        (a_coroutine, "async"),
        (functools.partial(an_async), "async"),
        (functools.partial(with_configuration), "['mine']"),
        (Called(), "in a thread"),
        (CalledAsync(), "['mine']"),
    ],
)
async def test_a_function_of_any_kind_is_called_with_what_it_takes(context, function, told):
    assert told in (await of(function).run(context, CONFIG)).text


async def test_a_function_that_hides_its_signature_is_called_with_one_argument():
    assert await call(str, 5, CONFIG) == "5"
    assert await call(max, [1, 3, 2], CONFIG) == 3


async def test_a_default_that_a_closure_binds_is_not_taken_for_the_configuration(context):
    functions = [lambda given, number=number: str(number) for number in (1, 2)]
    assert [(await of(each).run(context, CONFIG)).text for each in functions] == ["1", "2"]


async def test_a_function_that_is_not_async_blocks_nobody_and_sees_the_caller_s_context(context):
    variable, here = ContextVar("variable"), threading.current_thread()
    variable.set("the caller's")
    together = threading.Barrier(2, timeout=10)

    def work(given):
        # Only two that run at the same time get past it.
        together.wait()
        return f"{variable.get()}, elsewhere: {threading.current_thread() is not here}"

    results = await asyncio.gather(*(of(work).run(context, {}) for _ in range(2)))
    assert {result.text for result in results} == {"the caller's, elsewhere: True"}


@pytest.mark.parametrize(
    "error", [StopIteration("over"), KeyError("name"), ExceptionGroup("two", [ValueError()])]
)
async def test_whatever_a_function_raises_comes_out_as_an_error(context, error):
    def work(given):
        raise error

    with pytest.raises(Exception, match=r"StopIteration|name|two"):
        await of(work).run(context, {})


async def result_in_a_graph(function):
    with ScriptedModel({"feedback": "---\nverdict: complete\n---\nSorry."}) as model:
        team = [Specialist(name="a", intended_use="Works.", run=function)]
        graph = build_graph(Team(host=Host(model=model), specialists=team))
        state = await state_of(
            run(graph, {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n"})
        )
    return state["current_specialist_results"]["1/a"]


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (
            lambda context: None,
            "TypeError: it returned NoneType; return a message, a text, or a state",
        ),
        (lambda context: {"answer": 1}, "TypeError: it returned dict; return a message, a text"),
        (lambda context: (piece for piece in "ab"), "TypeError: it returned generator; return"),
        (lambda context, *, more: "not all is given", "required keyword-only argument: 'more'"),
        (lambda context: context.nothing, "'ExecutionContext' object has no attribute 'nothing'"),
    ],
)
async def test_in_a_graph_a_wrong_function_is_a_failed_result_that_is_not_tried_again(
    function, error
):
    result = await result_in_a_graph(function)
    assert (result.status, result.retry_count) == (ExecutionStatus.FAILED, 0)
    assert error in result.error


async def test_a_thread_that_may_hang_does_not_keep_the_process(context):
    result = await of(lambda _: str(threading.current_thread().daemon)).run(context, {})
    assert result.text == "True"


HANGS = """
import threading
from replan import Host, Team, Specialist, build_graph, run_sync
from replan.testing import ScriptedModel

def hang(context):
    threading.Event().wait(300 if threading.current_thread().daemon else 1)

with ScriptedModel({"feedback": "---\\nverdict: complete\\n---\\nSorry."}) as model:
    team = [Specialist(name="a", intended_use="Hangs.", run=hang)]
    graph = build_graph(Team(host=Host(model=model), specialists=team))
    plan = "- [ ] 1. One @a (timeout 50ms; retries 0)"
    print(run_sync(graph, {"messages": [("user", "Go.")], "plan": plan}).outcome)
"""


def test_a_process_ends_promptly_though_a_function_of_its_still_hangs():
    started = time.monotonic()
    ended = warm.run("-c", HANGS)
    assert ended.stdout.strip() == "failed"
    assert time.monotonic() - started < 60

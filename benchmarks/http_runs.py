"""One run of a workload over HTTP: by Replan, by LangGraph alone, and by bare calls.

All ask the same server for the same calls. What LangGraph alone does is what one would write by
hand for these workloads: a node for the plan, a `Send` for each step that is ready, a node that
joins and, when nothing is left, judges. Its model is LangChain's `ChatOpenAI` as it comes, or the
one that Replan makes of a name, whose client takes less.
"""

import asyncio
import operator
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypedDict

import openai
from http_workloads import AT_ONCE, FAILED, GO_ON, Workload, report
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import SecretStr

from replan import (
    Host,
    Specialist,
    Storage,
    Team,
    Traces,
    build_graph,
    run,
    stream,
)
from replan.adapters.chat_models import LangChainModels
from replan.events.types import AnswerToken, SpecialistToken, TaskCompleted
from replan.prompts.sections import Call, call_tag
from replan.prompts.templates import load


@dataclass(frozen=True)
class Ran:
    """What a run that was completed did.

    Attributes:
        calls: Calls of the model, as far as its runtime knows: a client's own tries are not in it.
        tokens: Tokens that were heard.
    """

    calls: int
    tokens: int = 0


Begin = Callable[[], Awaitable[Ran]]
"""Makes one run.

Raises:
    RuntimeError: It was not completed.
"""

REQUEST = "Look into all parts of the orders and of the returns, and say what we should do."

_STEP = re.compile(
    r"^- \[ \] (?P<id>\d+)\. (?P<task>.*?) @worker(?: \(after (?P<after>.*)\))?$", re.MULTILINE
)
_MOST_ATTEMPTS = 3

PLANNER = "\n\n".join(map(load, ("thinking", "thinking_format", "plan_format")))
WORKER = load("specialist")
JUDGE = "\n\n".join(map(load, ("feedback", "feedback_format")))
"""Prompts as long as Replan's own, since they are Replan's own."""


ModelOf = Callable[[str, str], BaseChatModel]
"""Makes the model of a name at a server."""


def langchains_model(name: str, base_url: str) -> BaseChatModel:
    """The model as LangChain makes it."""
    # LangChain shares one such client among all event loops, and the second loop then fails.
    http, key = openai.DefaultAsyncHttpxClient(), SecretStr("not-needed")
    return ChatOpenAI(model=name, base_url=base_url, api_key=key, http_async_client=http)


def replans_model(name: str, base_url: str) -> BaseChatModel:
    """The model that Replan makes of a name."""
    return LangChainModels(base_url=base_url).chat_model(f"openai:{name}")


def replan_run(workload: Workload, base_url: str, *, heard: bool, at_once: bool = False) -> Begin:
    """A run by Replan; `heard`: somebody listens to its tokens."""
    graph = replan_graph(workload, base_url, at_once=at_once)

    async def unheard_run() -> Ran:
        state = (await run(graph, REQUEST)).state
        return completed(state["outcome"] == "completed", Ran(state["usage"].calls))

    async def heard_run() -> Ran:
        tokens, last = 0, None
        async for event in stream(graph, REQUEST):
            tokens += isinstance(event, SpecialistToken | AnswerToken)
            last = event
        if not isinstance(last, TaskCompleted):
            raise TypeError(f"The last event is {last}.")
        return completed(last.outcome == "completed", Ran(last.usage.calls, tokens))

    return heard_run if heard else unheard_run


def replan_graph(
    workload: Workload,
    base_url: str,
    *,
    at_once: bool = False,
    storage: Storage | None = None,
    traces: Traces | None = None,
) -> Any:
    """The graph of a team for a workload."""
    team = worker_team(_model_name(workload, at_once=at_once), traces)
    return build_graph(team, base_url=base_url, storage=storage)


def worker_team(model: str, traces: Traces | None = None) -> Team:
    """The team whose host and whose only specialist are a model."""
    name = f"openai:{model}"
    worker = Specialist(name="worker", intended_use="Looks into parts.", chat_model=name)
    return Team(host=Host(model=name), specialists=[worker], traces=traces)


def bare_run(
    workload: Workload,
    base_url: str,
    *,
    heard: bool,
    at_once: bool = False,
    model_of: ModelOf = langchains_model,
) -> Begin:
    """A run by LangGraph alone; `heard`: in its `messages` mode."""
    graph = _bare_graph(model_of(_model_name(workload, at_once=at_once), base_url))
    # A step, its join, and so on; more than enough.
    options: Any = {"config": {"recursion_limit": 100}}

    async def unheard_run() -> Ran:
        state = await graph.ainvoke({"request": REQUEST}, **options)
        return completed(bool(state["answer"]), Ran(state["calls"]))

    async def heard_run() -> Ran:
        tokens, state = 0, {}
        async for mode, part in graph.astream(
            {"request": REQUEST}, stream_mode=["messages", "values"], **options
        ):
            if mode == "values":
                state = part
            else:
                tokens += bool(part[0].text)
        return completed(bool(state["answer"]), Ran(state["calls"], tokens))

    return heard_run if heard else unheard_run


class Bare(TypedDict):
    """The state of a run by LangGraph alone."""

    request: str
    waits: NotRequired[dict[int, tuple[int, ...]]]
    tasks: NotRequired[dict[int, str]]
    results: NotRequired[Annotated[dict[int, str], operator.or_]]
    calls: NotRequired[Annotated[int, operator.add]]
    answer: NotRequired[str]


class Sent(TypedDict):
    """One step, with the results that it waited for."""

    request: str
    step: int
    task: str
    inputs: dict[int, str]


def _bare_graph(model: BaseChatModel) -> Any:
    async def plan(state: Bare) -> dict[str, Any]:
        reply = await model.ainvoke(messages(Call(node="think"), PLANNER, state["request"]))
        return {**_read_plan(reply.text), "calls": 1}

    async def work(sent: Sent) -> dict[str, Any]:
        call = Call(node="specialist", step=sent["step"], specialist="worker")
        parts = [sent["request"], *sent["inputs"].values(), sent["task"]]
        attempts = 1
        reply = await model.ainvoke(messages(call, WORKER, *parts))
        while reply.text.startswith(FAILED) and attempts < _MOST_ATTEMPTS:
            attempts += 1
            reply = await model.ainvoke(messages(call, WORKER, *parts))
        return {"results": {sent["step"]: reply.text}, "calls": attempts}

    async def join(state: Bare) -> dict[str, Any]:
        if any(step not in state["results"] for step in state["waits"]):
            return {}
        parts = [state["request"], *state["tasks"].values(), *state["results"].values()]
        reply = await model.ainvoke(messages(Call(node="feedback"), JUDGE, *parts))
        if reply.text.startswith(GO_ON):
            return {**_read_plan(reply.text), "calls": 1}
        return {"answer": reply.text, "calls": 1}

    graph = StateGraph(Bare)
    graph.add_node("plan", plan)
    graph.add_node("work", work)
    graph.add_node("join", join)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", _ready, ["work"])
    graph.add_edge("work", "join")
    graph.add_conditional_edges("join", _ready, ["work", END])
    return graph.compile()


def _ready(state: Bare) -> list[Send] | str:
    results = state.get("results", {})
    if state.get("answer"):
        return END
    return [
        Send(
            "work",
            Sent(
                request=state["request"],
                step=step,
                task=state["tasks"][step],
                inputs={other: results[other] for other in waits},
            ),
        )
        for step, waits in state["waits"].items()
        if step not in results and all(other in results for other in waits)
    ]


def calls_alone(workload: Workload, base_url: str) -> Begin:
    """The same calls as bare tasks: what they take beyond the critical path is the machine's."""
    model = replans_model(_model_name(workload, at_once=False), base_url)

    async def ask(call: Call, prompt: str) -> None:
        await model.ainvoke(messages(call, WORKER, prompt))

    async def try_step(step: int) -> None:
        for _ in range(workload.attempts.get(step, 1)):
            await ask(Call(node="specialist", step=step), REQUEST)

    async def start() -> Ran:
        await ask(Call(node="think"), REQUEST)
        for shape in workload.shapes:
            await _in_order(shape.waits, try_step)
            # What is judged are the reports: the server plays the judge by them.
            await ask(Call(node="feedback"), "\n\n".join(map(report, shape.waits)))
        return Ran(workload.calls)

    return start


async def _in_order(
    waits: Mapping[int, tuple[int, ...]], work: Callable[[int], Awaitable[None]]
) -> None:
    tasks: dict[int, asyncio.Task[None]] = {}

    async def step(number: int) -> None:
        for other in waits[number]:
            await tasks[other]
        await work(number)

    for number in waits:
        tasks[number] = asyncio.ensure_future(step(number))
    await asyncio.gather(*tasks.values())


def _model_name(workload: Workload, *, at_once: bool) -> str:
    return workload.model + (AT_ONCE if at_once else "")


def messages(call: Call, system: str, *parts: str) -> list[BaseMessage]:
    """A prompt that says who calls, as Replan's do."""
    return [SystemMessage(f"{system}\n\n{call_tag(call)}"), HumanMessage("\n\n".join(parts))]


def _read_plan(text: str) -> dict[str, Any]:
    found = list(_STEP.finditer(text))
    return {
        "tasks": {int(one["id"]): one["task"] for one in found},
        "waits": {
            int(one["id"]): tuple(int(other) for other in (one["after"] or "").split(",") if other)
            for one in found
        },
    }


def completed(is_completed: bool, ran: Ran) -> Ran:  # noqa: FBT001 - a verdict
    if not is_completed:
        msg = f"A run was not completed: {ran}."
        raise RuntimeError(msg)
    return ran

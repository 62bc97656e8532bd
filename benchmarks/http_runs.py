"""One run of a workload over HTTP: by Replan, or by LangGraph alone.

Both ask the same server for the same calls. What LangGraph alone does is what one would write by
hand for these workloads: a node for the plan, a `Send` for each step that is ready, a node that
joins and, when nothing is left, judges. Its model is LangChain's `ChatOpenAI` as it comes, or the
one that Replan makes of a name, whose client takes less.
"""

import operator
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

import openai
from http_workloads import FAILED, GO_ON, Workload
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import SecretStr

from replan import Host, Specialist, Team, build_graph, run, stream
from replan.events import AnswerToken, SpecialistToken, TaskCompleted
from replan.models.providers.chat_models import LangChainModels
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


def replan_run(workload: Workload, base_url: str, *, heard: bool = False) -> Begin:
    """A run by Replan; `heard`: somebody listens to its tokens."""
    graph = build_graph(worker_team(workload.model), base_url=base_url)

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


def worker_team(model: str) -> Team:
    """The team whose host and whose only specialist are a model."""
    name = f"openai:{model}"
    worker = Specialist(name="worker", intended_use="Looks into parts.", chat_model=name)
    return Team(host=Host(model=name), specialists=[worker])


def bare_run(
    workload: Workload,
    base_url: str,
    *,
    heard: bool = False,
    model_of: ModelOf = langchains_model,
) -> Begin:
    """A run by LangGraph alone; `heard`: in its `messages` mode."""
    graph = _bare_graph(model_of(workload.model, base_url))
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
        raise RuntimeError(f"A run was not completed: {ran}.")
    return ran


OUR_CLIENT = "LangGraph with Replan's client"
SIDES: Mapping[str, Callable[..., Begin]] = {
    "LangGraph": bare_run,
    "Replan": replan_run,
    OUR_CLIENT: partial(bare_run, model_of=replans_model),
}
"""The sides by the names of the tables."""

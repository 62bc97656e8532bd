"""The sides of the quality measure: Replan, one agent with all tools, and deepagents.

All have the same model, client, world and tools, and all calls are counted by the same handler of
the model. The team of Replan's specialists and that of deepagents' subagents are the same. Packages
that Replan does not need are imported by the side that needs them.
"""

import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tools import BaseTool, StructuredTool
from quality_tasks import Task
from quality_world import TOOLS, World

from replan import Host, Specialist, Team, ask_user, open_runtime
from replan.base.failures import describe
from replan.events import Event, ModelInvoked

_MOST_QUESTIONS = 5


@dataclass(frozen=True)
class Member:
    """A specialist or subagent.

    Attributes:
        name: Its name.
        duty: What it is for.
        tools: The tools of the world that it has.
    """

    name: str
    duty: str
    tools: tuple[str, ...] = ()


MEMBERS = (
    Member("analyst", "Answers questions from the company's database, exactly.", ("sql",)),
    Member("librarian", "Finds what the company's notes say.", ("search_notes", "read_note")),
    Member(
        "clerk",
        "Asks the services for fuel prices and tides, and the user what the request left open.",
        ("fuel_price", "tide", "ask"),
    ),
    Member("writer", "Writes tables and reports in any language from what others found."),
)
"""The team."""

DUTY = "You answer requests of the staff of a ferry line, with exact figures of its sources."
"""What the one agent, and the main agent of deepagents, are told."""


@dataclass
class Counted(BaseCallbackHandler):
    """Counts the calls of a model, and their tokens as its server reports them."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Count one reply."""
        message = getattr(response.generations[0][0], "message", None)
        usage = getattr(message, "usage_metadata", None) or {}
        with self._lock:
            self.calls += 1
            self.tokens_in += usage.get("input_tokens", 0)
            self.tokens_out += usage.get("output_tokens", 0)


@dataclass(frozen=True)
class Answered:
    """What a side made of a request.

    Attributes:
        text: Its answer.
        briefs: The words of each brief that it wrote for a member.
        asked_again: Replies that were asked for again; None where a runtime asks for no form.
    """

    text: str
    briefs: tuple[int, ...] = ()
    asked_again: int | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt of a side at a task.

    Attributes:
        side: Whose it is.
        task: The name of the task.
        missing: What the answer has not, or why there is none; empty if it is right.
        counted: Calls and tokens.
        seconds: Its time.
        answered: The answer; None if the side failed.
    """

    side: str
    task: str
    missing: tuple[str, ...]
    counted: Counted
    seconds: float
    answered: Answered | None

    @property
    def is_right(self) -> bool:
        """Whether the answer has all that it must have."""
        return not self.missing

    @property
    def brief_words(self) -> float | None:
        """The mean length of a brief; None without one."""
        briefs = self.answered.briefs if self.answered else ()
        return statistics.mean(briefs) if briefs else None


Side = Callable[[Task, World, BaseChatModel], Awaitable[Answered]]
"""Answers the request of a task in a world with a model."""


async def attempt(side: str, task: Task, model: BaseChatModel) -> Attempt:
    """Let a side answer the request of a task, and check its answer."""
    counted, world = Counted(), task.world()
    model = model.model_copy(update={"callbacks": [counted]})
    began = time.perf_counter()
    answered = None
    try:
        answered = await SIDES[side](task, world, model)
        missing = task.missing(answered.text, world)
    except Exception as error:  # noqa: BLE001 - whatever a runtime or a model server raises
        missing = [f"an answer ({describe(error)})"]
    seconds = time.perf_counter() - began
    return Attempt(side, task.name, tuple(missing), counted, seconds, answered)


async def replan(task: Task, world: World, model: BaseChatModel) -> Answered:
    """Answer by Replan; the user is asked by Replan's own questions."""
    asked_again = 0

    def listen(event: Event) -> None:
        nonlocal asked_again
        asked_again += isinstance(event, ModelInvoked) and event.is_reprompt

    team = _team(world, model)
    # Only where there is storage, a run waits for the user.
    async with open_runtime(team, storage=":memory:", on_event=listen) as runtime:
        result = await runtime.run(task.request)
        while result.pending_questions and len(world.questions) < _MOST_QUESTIONS:
            answers = {each.key: world.ask(each.text) for each in result.pending_questions}
            result = await (await runtime.answer(result.run_id, answers))
    steps = result.plan.steps if result.plan else ()
    briefs = tuple(len(f"{step.description} {step.brief}".split()) for step in steps)
    return Answered(result.text, briefs, asked_again)


def _team(world: World, model: BaseChatModel) -> Team:
    def ask(question: str) -> str:
        return str(ask_user(question))

    ask.__doc__ = World.ask.__doc__
    tools: Mapping[str, Any] = {**_tools(world), "ask": ask}
    members = [
        Specialist(
            name=member.name,
            intended_use=member.duty,
            chat_model=model,
            tools=[tools[name] for name in member.tools],
        )
        for member in MEMBERS
    ]
    return Team(host=Host(model=model), specialists=members)


async def one_agent(task: Task, world: World, model: BaseChatModel) -> Answered:
    """Answer by one agent that has all tools."""
    from langchain.agents import create_agent  # noqa: PLC0415 - not every side needs it

    agent: Any = create_agent(model, list(_tools(world).values()), system_prompt=DUTY)
    return _of_messages(await agent.ainvoke({"messages": [("user", task.request)]}))


async def deepagents(task: Task, world: World, model: BaseChatModel) -> Answered:
    """Answer by deepagents, whose main agent has no tool of the world; its subagents have."""
    from deepagents import create_deep_agent  # noqa: PLC0415 - no extra brings it

    tools = _tools(world)
    subagents = [
        {
            "name": member.name,
            "description": member.duty,
            "system_prompt": f"You are {member.name}. {member.duty}",
            "tools": [tools[name] for name in member.tools],
        }
        for member in MEMBERS
    ]
    agent: Any = create_deep_agent(model, [], system_prompt=DUTY, subagents=subagents)
    return _of_messages(await agent.ainvoke({"messages": [("user", task.request)]}))


def _of_messages(state: Mapping[str, Any]) -> Answered:
    """The answer of an agent, and the briefs that it wrote for its `task` tool."""
    messages: list[BaseMessage] = state["messages"]
    calls = [call for message in messages for call in getattr(message, "tool_calls", ())]
    briefs = [call["args"].get("description", "") for call in calls if call["name"] == "task"]
    return Answered(messages[-1].text, tuple(len(brief.split()) for brief in briefs))


def _tools(world: World) -> dict[str, BaseTool]:
    """The tools of a world; all of them may be called again."""
    return {
        name: StructuredTool.from_function(getattr(world, name), metadata={"effects": "pure"})
        for name in TOOLS
    }


SIDES: Mapping[str, Side] = {"Replan": replan, "one agent": one_agent, "deepagents": deepagents}
"""The sides by the names that the tables call them."""

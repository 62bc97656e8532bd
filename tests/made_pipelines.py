"""A pipeline of four levels for tests, whose handlers work by rules or ask a model."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from replan import ask_user
from replan.pipelines.phases.agent_and_handler import BaseAgent, StateHandler
from replan.pipelines.response import Response
from replan.pipelines.sub_threads.interaction_unit import InteractionUnit
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent
from replan.pipelines.sub_threads.sub_thread_handlers import (
    NestedSubThreadHandler,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
)
from replan.pipelines.task import Task
from replan.state.pipeline.threads import Thread

worked = Counter[str]()
"""How often each handler did its work."""

failing = dict[str, Exception]()
"""Which handlers fail, by level and phase."""


class WritingHandler(StateHandler):
    """Says which level and phase it is, by rules; or asks."""

    level = ""
    asks = False

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        name = f"{self.level}/{self.phase}"
        worked[name] += 1
        if name in failing:
            raise failing[name]
        if self.asks:
            return Response(f"{name}: {ask_user('Which colour?')}")
        return Response(f"{name}: {task.original_query}")


class ModelHandler(StateHandler):
    """Asks the model with the messages of its thread."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        messages = thread.messages
        return Response(await agent.ai_adapter.chat(messages, system_message=f"Do {self.phase}."))


def level(name: str, below: type[SubThreadAgent] | None = None, **options: Any) -> Any:
    """Make the agent of a level with the phases gather, (deepen,) and finish."""

    class Nested(NestedSubThreadHandler):
        sub_thread_agent = below

    class Level(SubThreadAgent):
        async def _initialize_interaction_units(self) -> None:
            own = type("Own", (WritingHandler,), {"level": name, **options})
            after = "finish" if below is None else "deepen"
            handlers: list[StateHandler] = [own(phase="initial_phase", next_phase=after)]
            if below is not None:
                handlers.append(Nested(phase="deepen", next_phase="finish"))
            handlers.append(type("Last", (WritingHandler,), {"level": name})(phase="finish"))
            self.interaction_units = {
                each.phase: await InteractionUnit.create(state_handler=each) for each in handlers
            }

    return Level


def pipeline(sub_agent: type[SubThreadAgent]) -> type[BaseAgent]:
    """Make the main agent: prepare and execute."""

    class Execution(SubThreadExecutionHandler):
        sub_thread_agent = sub_agent

    class Main(BaseAgent):
        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {
                each.phase: each for each in (SubThreadPreparationHandler(), Execution())
            }

    return Main


FourDeep = pipeline(level("one", level("two", level("three"))))
Asking = pipeline(level("one", level("two", level("three", asks=True))))


class Killed(BaseException):
    """The process ends right after a write."""


class KillingThreads:
    """A repository after whose n-th write the process ends."""

    def __init__(self, inner: Any, writes: int, error: BaseException | None = None) -> None:
        self._inner = inner
        self._left = writes
        self._error = error or Killed()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def _counted(self, name: str, *args: Any, **named: Any) -> None:
        before = args[0].revision
        await getattr(self._inner, name)(*args, **named)
        self._left -= args[0].revision != before
        if self._left < 0:
            raise self._error

    async def save_thread(self, thread: Thread, *, lasting: bool = True) -> None:
        await self._counted("save_thread", thread, lasting=lasting)

    async def update_message(
        self, thread: Thread, message_id: str, changes: Mapping[str, Any]
    ) -> None:
        await self._counted("update_message", thread, message_id, changes)

    async def update_thread_settings(self, thread: Thread, settings: Mapping[str, Any]) -> None:
        await self._counted("update_thread_settings", thread, settings)


def texts(thread: Thread) -> list[Any]:
    """Give the texts of a thread, and those of sub-threads in lists."""
    found: list[Any] = []
    for index, message in enumerate(thread.messages):
        found.append(message.text)
        found += [
            texts(sub)
            for path, sub in thread.sub_threads()
            if path.startswith(f"messages.{index}.")
        ]
    return found


def ids(thread: Thread) -> list[str]:
    """Give the ids of all messages and threads, at every depth."""
    own = [thread.id, *(message.id for message in thread.messages)]
    return own + [one for _, sub in thread.sub_threads() for one in ids(sub)]

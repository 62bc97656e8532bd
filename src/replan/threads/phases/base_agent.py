"""The agent of a main thread: it applies phases, and delegates to their handlers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from replan.errors import PhaseError
from replan.state.pipeline.threads import INITIAL, Thread, status_in
from replan.threads.ai_adapter import AIAdapter
from replan.threads.host_utils import host_utils, in_phase
from replan.threads.phases.state_handler import StateHandler
from replan.threads.phases.suggestions import apply, round_of, same_phase, thread_of, told_phase
from replan.threads.phases.usable_response import usable
from replan.threads.phases.walkable import check_phases, first_phase
from replan.threads.response import Response
from replan.threads.task import Task


@dataclass(frozen=True)
class Operation:
    """Something that a user can request, for display.

    Attributes:
        name: What it is called.
        description: What it does.
        task: Makes the task that does it.
    """

    name: str
    description: str
    task: Callable[[], Task]


class BaseAgent:
    """The agent of a main thread; the names of it and its methods come from the source document.

    A subclass overrides `_initialize_state_handlers`.

    Attributes:
        metadata: Data about the agent, such as whom it works for.
        settings: The settings of its thread, the only source of its phase.
        state_handlers: The handlers by phase.
        version: The version of the pipeline; `migrate` changes a stored thread of another one.
    """

    version: ClassVar[int] = 1

    def __init__(
        self, metadata: Mapping[str, Any] | None = None, settings: dict[str, Any] | None = None
    ) -> None:
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.settings: dict[str, Any] = {} if settings is None else settings
        self.state_handlers: dict[str, StateHandler] = {}

    @classmethod
    async def create(
        cls, metadata: Mapping[str, Any] | None = None, settings: dict[str, Any] | None = None
    ) -> Self:
        """Make an agent that is ready to work.

        Raises:
            ConfigurationError: Its phases never reach an end.
        """
        agent = cls(metadata, settings)
        await agent.initialize()
        return agent

    async def initialize(self) -> None:
        """Set the first phase if there is none, and create the handlers."""
        self.settings.setdefault("brief_status", {"phase": INITIAL})
        status = status_in(self.settings)
        await self._initialize_state_handlers()
        check_phases(type(self).__name__, self.state_handlers)
        if status.get("phase") == INITIAL:
            self.settings["brief_status"] = {**status, "phase": self.first_phase}

    async def _initialize_state_handlers(self) -> None:
        """Set `state_handlers`; overridden by subclasses."""

    @property
    def first_phase(self) -> str:
        """The phase in which a thread begins."""
        return first_phase(self.state_handlers)

    @property
    def ai_adapter(self) -> AIAdapter:
        """The adapter through which its handlers call a model."""
        return host_utils().ai_adapter

    async def load_operations(self, agent: "BaseAgent | None" = None) -> list[Operation]:
        """Return what a user can request; for display only."""
        return []

    async def migrate(self, thread: Thread, version: int) -> bool:
        """Change a stored thread of another version in place.

        Args:
            thread: The main thread.
            version: The version of the pipeline that wrote it.

        Returns:
            Whether this version can continue it.
        """
        return False

    async def execute_task(self, task: Task, thread: Thread) -> Response:
        """Do a task with the main thread."""
        if task.name == "chat_pair":
            return Response(str(task.meta.get("bot", "")))
        return await self._handle_message_processing(task, thread)

    async def _handle_message_processing(self, task: Task, thread: Thread) -> Response:
        """Apply the suggested phase, then let the handler of the phase do the task."""
        await self._apply_phase_update_suggestion(task, thread)
        own = thread_of(task, thread)
        phase = own.phase
        handler = self.state_handlers.get(phase)
        if handler is None:
            known = ", ".join(self.state_handlers)
            fix = f"Register one in _initialize_state_handlers. There are handlers for: {known}."
            raise PhaseError(thread.id, phase, f"{type(self).__name__} has no handler", fix)
        told_phase(thread, task)
        with in_phase(phase, task.sub_thread_path, round_of(own)):
            name = type(handler).__name__
            with same_phase(task, thread, name):
                response = await handler.handle(task, thread, self)
            return usable(response, own, name, handler.following)

    async def _apply_phase_update_suggestion(self, task: Task, thread: Thread) -> None:
        """Enter the suggested phase, unless the task is a retry."""
        await apply(task, thread)

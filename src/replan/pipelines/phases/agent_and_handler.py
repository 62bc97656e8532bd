"""Agents apply phases, and delegate to the handlers of phases; the two know each other."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from replan.base.errors import ConfigurationError, PhaseError
from replan.pipelines.host_utils import AIAdapter, host_utils, in_phase
from replan.pipelines.phases.suggestions import (
    check_suggestion,
    enter_suggested_phase,
    phase_unchanged,
    report_phase,
    round_of,
    store_suggestion,
    thread_of,
)
from replan.pipelines.phases.usable_response import check_response
from replan.pipelines.response import Response
from replan.pipelines.task import Task
from replan.state.pipeline.threads import COMPLETED, INITIAL, Thread, status_in


class StateHandler:
    """Handles one phase of a thread.

    The name comes from the source document of pipelines. A subclass overrides
    `handle`, and may set the attributes as class attributes.

    Attributes:
        phase: The phase that it handles.
        next_phase: The phase that follows; None is `completed`.
        other_phases: Phases that it may suggest instead of `next_phase`.
    """

    phase: str = ""
    next_phase: str | None = None
    other_phases: tuple[str, ...] = ()
    # The agent of the sub-thread that it starts, if it starts one.
    sub_thread_agent: "ClassVar[type[BaseAgent] | None]" = None

    def __init__(
        self,
        *,
        phase: str | None = None,
        next_phase: str | None = None,
        other_phases: tuple[str, ...] | None = None,
    ) -> None:
        self.phase = self.phase if phase is None else phase
        self.next_phase = self.next_phase if next_phase is None else next_phase
        self.other_phases = self.other_phases if other_phases is None else tuple(other_phases)

    @classmethod
    async def create(cls, **config: object) -> Self:
        """Make a handler; a subclass may prepare it here."""
        made: Self = cls(**config)  # type: ignore[arg-type]  # those of the subclass
        return made

    @property
    def following(self) -> tuple[str, ...]:
        """The phases that may follow, the usual one first."""
        return (self.next_phase or COMPLETED, *self.other_phases)

    async def handle(self, task: Task, thread: Thread, agent: "BaseAgent") -> Response:
        """Do the work of the phase.

        Args:
            task: What is to be done; its `sub_thread_path` says where, if not in the main thread.
            thread: The main thread, always.
            agent: The calling agent; `agent.ai_adapter` calls a model.
        """
        raise NotImplementedError

    async def _suggest_phase_update(
        self, task: Task, thread: Thread, phase: str | None = None
    ) -> None:
        """Suggest the next phase, or another one of those that may follow."""
        wanted = phase or self.following[0]
        check_suggestion(thread, wanted, self.following, type(self).__name__)
        await store_suggestion(task, thread, wanted)


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
        working_thread = thread_of(task, thread)
        phase = working_thread.phase
        handler = self.state_handlers.get(phase)
        if handler is None:
            phases = ", ".join(self.state_handlers)
            fix = f"Register one in _initialize_state_handlers. There are handlers for: {phases}."
            raise PhaseError(thread.id, phase, f"{type(self).__name__} has no handler", fix)
        report_phase(thread, task)
        with in_phase(phase, task.sub_thread_path, round_of(working_thread)):
            name = type(handler).__name__
            with phase_unchanged(task, thread, name):
                response = await handler.handle(task, thread, self)
            return check_response(response, working_thread, name, handler.following)

    async def _apply_phase_update_suggestion(self, task: Task, thread: Thread) -> None:
        """Enter the suggested phase, unless the task is a retry."""
        await enter_suggested_phase(task, thread)


def first_phase(handlers: Mapping[str, StateHandler]) -> str:
    """Return the phase in which a thread begins: `initial_phase`, else the first with a handler."""
    return INITIAL if INITIAL in handlers or not handlers else next(iter(handlers))


def check_phases(agent: str, handlers: Mapping[str, StateHandler]) -> None:
    """Check the phases of an agent and their handlers."""
    if not handlers:
        fix = "Set them in _initialize_state_handlers or _initialize_interaction_units."
        raise ConfigurationError(f"{agent}.state_handlers", {}, "the agent has no phases", fix)
    for phase, handler in handlers.items():
        place = f"{agent}.state_handlers['{phase}']"
        if phase == COMPLETED:
            fix = "Handle another phase, and let it lead to 'completed'."
            raise ConfigurationError(
                place, handler, "the phase 'completed' cannot have a handler", fix
            )
        if handler.phase != phase:
            name, fix = type(handler).__name__, f"Give it phase='{phase}', or another key."
            problem = f"{name} declares another phase"
            raise ConfigurationError(f"{place}.phase", handler.phase, problem, fix)
        for following in handler.following:
            if following != COMPLETED and following not in handlers:
                known = ", ".join((*handlers, COMPLETED))
                problem, fix = "no handler has this phase", f"Add one, or name one of: {known}."
                raise ConfigurationError(f"{place}.next_phase", following, problem, fix)
    _check_end(agent, handlers)


def _check_end(agent: str, handlers: Mapping[str, StateHandler]) -> None:
    for phase in reachable(handlers, first_phase(handlers)):
        seen = [*reachable(handlers, phase)]
        if not any(COMPLETED in handlers[later].following for later in seen):
            cycle = " -> ".join((*seen, seen[0]))
            problem = "these phases lead to each other and never to 'completed'"
            fix = "Let one of them lead to 'completed', by next_phase or other_phases."
            raise ConfigurationError(f"{agent}.state_handlers", cycle, problem, fix)


def reachable(handlers: Mapping[str, StateHandler], phase: str) -> Iterator[str]:
    """Yield a phase and all that can follow it, each once."""
    seen, open_ones = dict[str, None](), [phase]
    while open_ones:
        current = open_ones.pop(0)
        if current in seen or current == COMPLETED:
            continue
        seen[current] = None
        open_ones += handlers[current].following
        yield current

"""What does the work of one phase: it produces the text of a bot message."""

from typing import TYPE_CHECKING, ClassVar, Self

from replan.state.pipeline.threads import COMPLETED, Thread
from replan.threads.phases.suggestions import check_suggestion, suggest
from replan.threads.response import Response
from replan.threads.task import Task

if TYPE_CHECKING:
    from replan.threads.phases.base_agent import BaseAgent


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
        await suggest(task, thread, wanted)

"""What a session keeps of the work of a team without a host: the next turn goes on with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from pydantic import JsonValue

from replan.ports.thread_repository import ThreadRepository
from replan.runs.travel.portable import PortableRun
from replan.state.enhanced import EnhancedState
from replan.state.session.context import AgentContext
from replan.state.session.session import Seal

ProjectState = Mapping[str, JsonValue]


class KeptWork(ABC):
    """The work of a job or a pipeline between the turns of a session."""

    @abstractmethod
    def before(self, session: AgentContext, run: PortableRun | None) -> ProjectState:
        """Read what a session has of it, and check it before anything uses it.

        Args:
            session: The session.
            run: The run that goes on, if one does.

        Raises:
            UsageError: It cannot be used.
        """

    @abstractmethod
    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> ProjectState:
        """The project state of a session after a run that is over."""

    def copied(self, run: PortableRun, session_id: str) -> ProjectState:
        """What of an open run the project state has, too, so that programs can read it."""
        return {}

    def seal(self, session_id: str) -> Seal | None:
        """What closes what users say, before it is recorded; None if nothing in it is secret."""
        return None

    def is_unfinished(self, session: AgentContext) -> bool:
        """Whether it was cut off, so that a turn without a message continues it."""
        return False

    def given_up(self, state: ProjectState) -> ProjectState:
        """A project state after a user gave it up for a new request."""
        return state

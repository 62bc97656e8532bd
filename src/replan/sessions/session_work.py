"""What a session keeps of the work of a team without a host: the next turn goes on with it."""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from replan.ports.thread_repository import ThreadRepository
from replan.runs.travel.portable import PortableRun
from replan.sessions.carried_run import RunCarrier
from replan.sessions.session_job import JobWork
from replan.sessions.session_thread import ThreadWork
from replan.specialists.job import JobSpecialist
from replan.specialists.pipeline import PipelineSpecialist
from replan.specialists.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.session.context import AgentContext
from replan.state.session.session import Seal

ProjectState = Mapping[str, JsonValue]


class KeptWork(Protocol):
    """The work of a job or a pipeline between the turns of a session."""

    def before(self, session: AgentContext, run: PortableRun | None) -> ProjectState:
        """Read what a session has of it, and check it before anything uses it.

        Args:
            session: The session.
            run: The run that goes on, if one does.

        Raises:
            UsageError: It cannot be used.
        """
        ...

    def copied(self, run: PortableRun, session_id: str) -> ProjectState:
        """What of an open run the project state has, too, so that programs can read it."""
        ...

    def seal(self, session_id: str) -> Seal | None:
        """What closes what users say, before it is recorded; None if nothing in it is secret."""
        ...

    def is_unfinished(self, session: AgentContext) -> bool:
        """Whether it was cut off, so that a turn without a message continues it."""
        ...

    def given_up(self, state: ProjectState) -> ProjectState:
        """A project state after a user gave it up for a new request."""
        ...

    async def after(
        self, run: EnhancedState, session: AgentContext, threads: ThreadRepository
    ) -> ProjectState:
        """The project state of a session after a run that is over."""
        ...


def kept_work(services: Services, carrier: RunCarrier, *, stays: bool) -> KeptWork | None:
    """What keeps the work of a team in its sessions, if its one specialist goes on with it.

    Args:
        services: Those of the team.
        carrier: Has the key of its sessions.
        stays: Whether contexts stay in the storage of their runs, which any process reads.
    """
    if not services.is_direct:
        return None
    match services.specialists[services.names[0]]:
        case PipelineSpecialist():
            return ThreadWork()
        case JobSpecialist() as job:
            return JobWork(job.spec, carrier, stays)
        case _:
            return None

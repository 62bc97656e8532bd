"""The one contract that every kind of specialist keeps."""

from typing import Protocol

from langchain_core.runnables import RunnableConfig

from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard


class SpecialistPort(Protocol):
    """Somebody who can do a step.

    An implementation may raise: the node that calls it turns every exception into a failed result.
    It streams by passing `config` on to its models, whose tokens become events.
    """

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        ...

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Do the step of the context and give its result."""
        ...

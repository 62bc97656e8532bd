"""A specialist that is a plain function of the execution context."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from replan.specialists.answers import result_of
from replan.specialists.foreign import call
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard


@dataclass(frozen=True)
class FunctionSpecialist:
    """Calls its function once for a step."""

    card: SpecialistCard
    function: Callable[..., Any]

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Call the function; text, a message or a `SpecialistResult` is a result."""
        return result_of(await call(self.function, context, config))

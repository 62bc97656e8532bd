"""A specialist that is a plain function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from replan.base.user_code import call
from replan.prompts.replies.shape import Shape
from replan.specialists.returned_values import result_of, shaped_result
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard


@dataclass(frozen=True)
class FunctionSpecialist:
    card: SpecialistCard
    function: Callable[..., Any]
    shape: Shape | None = None

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Call the function; text, a message or a `SpecialistResult` is a result."""
        if self.shape is None:
            return result_of(await call(self.function, context, config))
        asked = context.replace(expected_format="json")
        return shaped_result(await call(self.function, asked, config), self.shape)

"""A specialist that computes figures from the tables of a folder, without any model."""

from pathlib import Path

import anyio
import anyio.to_thread
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from replan.specialists.local.analysis import Analysis, Task
from replan.specialists.local.tables import CannotAnswerError, require_duckdb
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard

_CARD = SpecialistCard(
    name="data_analyst",
    intended_use="Tables in CSV, Parquet or JSON files of the folder: exact figures, no guesses.",
    capabilities=(
        "profile a table: columns, ranges, missing values",
        "total, sum, average, median, minimum, maximum or count per group",
        "daily, weekly, monthly, quarterly or yearly figures",
        "top and bottom rows",
        "compare two groups, two files or the tables of two steps",
        "one read-only SQL query (parameter sql)",
    ),
)


class DataAnalyst:
    """Profiles, aggregates and compares CSV, Parquet and JSON files with DuckDB.

    It reads files below its folder only, writes nothing, and runs in a thread that is abandoned
    when the step is cancelled.

    Raises:
        ConfigurationError: DuckDB is not installed.
    """

    def __init__(self, directory: Path) -> None:
        require_duckdb()
        self._directory = directory

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        return _CARD

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Answer the step from the tables; a question that does not fit them fails for good."""
        task = Task(
            text=context.task_description,
            brief=context.plan_step.brief,
            parameters=context.parameters or context.plan_step.parameters,
            inputs=context.inputs,
        )
        analysis = Analysis(self._directory, task)
        try:
            answer = await anyio.to_thread.run_sync(analysis.answer, abandon_on_cancel=True)
        except CannotAnswerError as refusal:
            return SpecialistResult(
                specialist_name=_CARD.name,
                status=ExecutionStatus.FAILED,
                error=str(refusal),
                confidence=0.0,
                step_id=context.plan_step.id,
                retry=False,
            )
        except anyio.get_cancelled_exc_class():
            analysis.interrupt()
            raise
        return SpecialistResult(
            specialist_name=_CARD.name,
            result=AIMessage(content=answer.text),
            confidence=answer.confidence,
            step_id=context.plan_step.id,
        )

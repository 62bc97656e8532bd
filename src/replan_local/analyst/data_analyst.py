"""A specialist that computes figures from the tables of a folder, without any model."""

from pathlib import Path

from langchain_core.runnables import RunnableConfig

from replan_local.analyst.analysis import Analysis, Task
from replan_local.analyst.questions import QUESTIONS
from replan_local.analyst.tables import require_duckdb
from replan_local.answering import answered
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

_CARD = SpecialistCard(
    name="data_analyst",
    intended_use="Tables in CSV, Parquet or JSON files of the folder: exact figures, no guesses.",
    capabilities=tuple(kind.capability for kind in QUESTIONS),
)


class DataAnalyst:
    """Profiles, aggregates and compares CSV, Parquet and JSON files with DuckDB.

    It reads files below its folder only, writes nothing, and runs in a thread that is abandoned
    when the step is cancelled. What it can be asked stands in `questions.QUESTIONS`.

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
        return await answered(_CARD, context, analysis.answer, analysis.interrupt)

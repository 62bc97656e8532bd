"""A specialist that finds passages in the texts of a folder, without any model."""

from pathlib import Path

from langchain_core.runnables import RunnableConfig

from replan_local.answering import answered
from replan_local.library.research import Research, Search
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

_CARD = SpecialistCard(
    name="librarian",
    intended_use="Passages in the notes and documents of the folder (txt, md, rst).",
    capabilities=(
        "search notes and documents for a subject",
        "quote passages with file and line (parameters query, file)",
    ),
)


class Librarian:
    """Finds passages with SQLite's full text search and quotes them with file and line.

    It reads files below its folder only and writes nothing. The index is made anew for each step,
    in memory, so that it always shows the files as they are.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        return _CARD

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Quote the best passages; where nothing is found, the step fails for good."""
        search = Search(
            text=context.task_description,
            brief=context.plan_step.brief,
            parameters=context.parameters or context.plan_step.parameters,
        )
        research = Research(self._directory, search)
        return await answered(_CARD, context, research.answer, research.stop)

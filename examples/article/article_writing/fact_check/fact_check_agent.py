"""The agent of the fact check."""

from article_writing.fact_check.fact_check_interaction_units import FigureCheckUnit
from article_writing.fact_check.fact_check_state_handlers import (
    DraftCorrectionHandler,
    FigureCheckHandler,
)
from replan.pipelines import InteractionUnit, SubThreadAgent


class FactCheckAgent(SubThreadAgent):
    """Checks the figures of a draft, and corrects them."""

    async def _initialize_interaction_units(self) -> None:
        check = FigureCheckHandler(phase="figure_check", next_phase="draft_correction")
        correction = DraftCorrectionHandler(phase="draft_correction")
        self.interaction_units = {
            check.phase: await FigureCheckUnit.create(state_handler=check),
            correction.phase: await InteractionUnit.create(state_handler=correction),
        }

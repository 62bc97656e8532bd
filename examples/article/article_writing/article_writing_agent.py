"""The agent that writes the article."""

from article_writing.article_writing_interaction_units import DraftWritingUnit
from article_writing.article_writing_state_handlers import (
    DraftCritiqueHandler,
    DraftRevisionHandler,
    DraftWritingHandler,
    OutlineWritingHandler,
)
from replan.pipelines import InteractionUnit, SubThreadAgent


class ArticleWritingAgent(SubThreadAgent):
    """Writes an article in four phases."""

    async def _initialize_interaction_units(self) -> None:
        outline = OutlineWritingHandler(phase="outline_writing", next_phase="draft_writing")
        draft = DraftWritingHandler(phase="draft_writing", next_phase="draft_critique")
        critique = DraftCritiqueHandler(phase="draft_critique", next_phase="draft_revision")
        revision = DraftRevisionHandler(phase="draft_revision")
        self.interaction_units = {
            outline.phase: await InteractionUnit.create(state_handler=outline),
            draft.phase: await DraftWritingUnit.create(state_handler=draft),
            critique.phase: await InteractionUnit.create(state_handler=critique),
            revision.phase: await InteractionUnit.create(state_handler=revision),
        }

"""The agent that writes the article."""

from article_writing.article_writing_state_handlers import (
    DraftCritiqueHandler,
    DraftRevisionHandler,
    DraftWritingHandler,
    OutlineWritingHandler,
)
from replan import InteractionUnit, SubThreadAgent


class ArticleWritingAgent(SubThreadAgent):
    """Writes an article in four phases."""

    async def _initialize_interaction_units(self) -> None:
        handlers = (
            OutlineWritingHandler(phase="outline_writing", next_phase="draft_writing"),
            DraftWritingHandler(phase="draft_writing", next_phase="draft_critique"),
            DraftCritiqueHandler(phase="draft_critique", next_phase="draft_revision"),
            DraftRevisionHandler(phase="draft_revision"),
        )
        self.interaction_units = {
            each.phase: await InteractionUnit.create(state_handler=each) for each in handlers
        }

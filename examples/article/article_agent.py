"""The agent of the main thread."""

from article_state_handlers import ArticleExecutionHandler

from replan.pipelines import BaseAgent, SubThreadPreparationHandler


class ArticleAgent(BaseAgent):
    """Writes an article."""

    async def _initialize_state_handlers(self) -> None:
        both = (SubThreadPreparationHandler(), ArticleExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}

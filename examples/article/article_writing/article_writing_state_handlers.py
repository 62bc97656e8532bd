"""The four phases of the article."""

from notes import FIGURE, headings
from writing import written

from article_writing.fact_check.fact_check_agent import FactCheckAgent
from replan.pipelines import BaseAgent, NestedSubThreadHandler, Response, StateHandler, Task, Thread


class OutlineWritingHandler(StateHandler):
    """The headings of the notes."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Take each heading."""

        def outline(_: list[str]) -> str:
            return "\n".join(f"- {each}" for each in headings())

        return await written(self.phase, task, thread, agent, outline)


class DraftWritingHandler(StateHandler):
    """Two sentences, one of them with a wrong figure."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Claim something that the notes contradict."""

        def draft(_: list[str]) -> str:
            return (
                "Customers may return anything within 40 days of delivery. "
                "Desks and chairs may come back within 60 days."
            )

        return await written(self.phase, task, thread, agent, draft)


class DraftCritiqueHandler(StateHandler):
    """Says how many claims have a figure."""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Count the figures of the draft."""

        def critique(said: list[str]) -> str:
            return f"{len(FIGURE.findall(said[-1]))} figures are to be checked."

        return await written(self.phase, task, thread, agent, critique)


class DraftRevisionHandler(NestedSubThreadHandler):
    """Revises the draft by its own fact check."""

    sub_thread_agent = FactCheckAgent
    placeholder = "The figures are being checked."

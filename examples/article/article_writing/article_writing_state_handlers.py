"""The four phases of the article."""

from notes import FIGURE, headings
from writing_state_handlers import WritingHandler

from article_writing.fact_check.fact_check_agent import FactCheckAgent
from replan import NestedSubThreadHandler


class OutlineWritingHandler(WritingHandler):
    """The headings of the notes."""

    def by_rules(self, said: list[str]) -> str:
        """Take each heading."""
        return "\n".join(f"- {each}" for each in headings())


class DraftWritingHandler(WritingHandler):
    """Two sentences, one of them with a wrong figure."""

    def by_rules(self, said: list[str]) -> str:
        """Claim something that the notes contradict."""
        return (
            "Customers may return anything within 40 days of delivery. "
            "Desks and chairs may come back within 60 days."
        )


class DraftCritiqueHandler(WritingHandler):
    """Says how many claims have a figure."""

    def by_rules(self, said: list[str]) -> str:
        """Count the figures of the draft."""
        return f"{len(FIGURE.findall(said[-1]))} figures are to be checked."


class DraftRevisionHandler(NestedSubThreadHandler):
    """Revises the draft by a fact check of its own."""

    sub_thread_agent = FactCheckAgent
    placeholder = "The figures are being checked."

"""A pipeline that writes an article: outline, draft, critique, and a revision that checks facts.

    python examples/article

The article is about the returns policy in the notes of the examples. The fact check is a sub-thread
inside the revision. Without REPLAN_MODEL the handlers work by rules over the notes; the draft has a
wrong figure, which the fact check finds. With REPLAN_MODEL they ask the model, each in its phase.
"""

import os
import re
from pathlib import Path

from replan import (
    BaseAgent,
    Host,
    InteractionUnit,
    NestedSubThreadHandler,
    Response,
    Specialist,
    StateHandler,
    SubThreadAgent,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
    Task,
    Team,
    Thread,
    require_sub_thread,
    run_sync,
)

MODEL = os.environ.get("REPLAN_MODEL")
NOTES = Path(__file__).parents[1] / "data" / "notes" / "returns-policy.md"
FIGURE = re.compile(r"\d+")


def passages() -> list[str]:
    """The sentences of the notes."""
    lines = [each for each in NOTES.read_text("utf-8").splitlines() if not each.startswith("#")]
    return re.split(r"(?<=[.])\s+", " ".join(" ".join(lines).split()))


def source_of(claim: str) -> str:
    """The sentence of the notes that has the most words of a claim."""
    words = set(re.findall(r"[a-z]+", claim.lower()))
    return max(passages(), key=lambda each: len(words & set(re.findall(r"[a-z]+", each.lower()))))


class WritingHandler(StateHandler):
    """Works by rules, or asks the model with the messages of its sub-thread."""

    wish = ""

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Write the text of the phase."""
        own = require_sub_thread(thread, task.sub_thread_path)
        above = task.meta.get("parent_thread_path")
        said = own.messages or (require_sub_thread(thread, str(above)).messages if above else ())
        if MODEL is None:
            return Response(self.by_rules([each.text for each in said if each.sender == "bot"]))
        notes = NOTES.read_text("utf-8")
        asked = said or thread.messages[:1]
        return Response(
            await agent.ai_adapter.chat(asked, system_message=f"{self.wish}\n\n{notes}")
        )

    def by_rules(self, said: list[str]) -> str:
        """Write it without a model, from what was said before."""
        raise NotImplementedError


class OutlineWritingHandler(WritingHandler):
    """The headings of the notes."""

    wish = "Write the outline of a short article on these notes, as a list."

    def by_rules(self, said: list[str]) -> str:
        headings = re.findall(r"(?m)^## (.+)$", NOTES.read_text("utf-8"))
        return "\n".join(f"- {each}" for each in headings)


class DraftWritingHandler(WritingHandler):
    """Two sentences, one of them with a wrong figure."""

    wish = "Write the article of this outline in three sentences."

    def by_rules(self, said: list[str]) -> str:
        return (
            "Customers may return anything within 40 days of delivery. "
            "Desks and chairs may come back within 60 days."
        )


class DraftCritiqueHandler(WritingHandler):
    """Says how many claims have a figure."""

    wish = "Criticise the draft in one sentence."

    def by_rules(self, said: list[str]) -> str:
        return f"{len(FIGURE.findall(said[-1]))} figures are to be checked."


class FigureCheckHandler(WritingHandler):
    """Compares each figure of the draft with the notes."""

    wish = "List each figure of the draft that the notes contradict, with the right one."

    def by_rules(self, said: list[str]) -> str:
        claims = [each for each in re.split(r"(?<=[.])\s+", said[1]) if FIGURE.search(each)]
        pairs = [(FIGURE.findall(each)[0], FIGURE.findall(source_of(each))) for each in claims]
        wrong = [f"{said} is {right[0]}" for said, right in pairs if right and said not in right]
        return "wrong: " + "; ".join(wrong) if wrong else "all figures are right"


class DraftCorrectionHandler(WritingHandler):
    """Puts the right figures into the draft."""

    wish = "Write the draft again with the right figures."

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Take the draft of the thread above, too."""
        if MODEL is not None:
            return await super().handle(task, thread, agent)
        above = require_sub_thread(thread, str(task.meta["parent_thread_path"]))
        draft = [each.text for each in above.messages if each.sender == "bot"][1]
        found = require_sub_thread(thread, task.sub_thread_path).messages[0].text
        for wrong, right in re.findall(r"(\d+) is (\d+)", found):
            draft = draft.replace(wrong, right)
        return Response(draft)


async def units(*handlers: StateHandler) -> dict[str, InteractionUnit]:
    """One unit for each handler."""
    return {each.phase: await InteractionUnit.create(state_handler=each) for each in handlers}


class FactCheckAgent(SubThreadAgent):
    """Checks the figures of a draft, and corrects them."""

    async def _initialize_interaction_units(self) -> None:
        self.interaction_units = await units(
            FigureCheckHandler(phase="figure_check", next_phase="draft_correction"),
            DraftCorrectionHandler(phase="draft_correction"),
        )


class DraftRevisionHandler(NestedSubThreadHandler):
    """Revises the draft by a fact check of its own."""

    sub_thread_agent = FactCheckAgent
    placeholder = "The figures are being checked."


class ArticleWritingAgent(SubThreadAgent):
    """Writes an article in four phases."""

    async def _initialize_interaction_units(self) -> None:
        self.interaction_units = await units(
            OutlineWritingHandler(phase="outline_writing", next_phase="draft_writing"),
            DraftWritingHandler(phase="draft_writing", next_phase="draft_critique"),
            DraftCritiqueHandler(phase="draft_critique", next_phase="draft_revision"),
            DraftRevisionHandler(phase="draft_revision"),
        )


class ArticleExecutionHandler(SubThreadExecutionHandler):
    """Lets the article be written in a sub-thread, and shows each of its messages."""

    sub_thread_agent = ArticleWritingAgent

    async def handle(self, task: Task, thread: Thread, agent: BaseAgent) -> Response:
        """Print what was said."""
        response = await super().handle(task, thread, agent)
        show(thread)
        return response


class ArticleAgent(BaseAgent):
    """Writes an article."""

    async def _initialize_state_handlers(self) -> None:
        both = (SubThreadPreparationHandler(), ArticleExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}


def show(thread: Thread, depth: int = 0) -> None:
    """Print what the bot said below a thread."""
    for _, sub_thread in thread.sub_threads():
        for message in sub_thread.messages:
            if message.sender == "bot":
                text = " / ".join(message.text.splitlines())
                print(f"{'  ' * depth}{message.meta['phase']}: {text}")
        show(sub_thread, depth + 1)


def main() -> None:
    """Let the pipeline do the one step of a plan."""
    author = Specialist("author", "Writes articles.", pipeline=ArticleAgent, unit_model=MODEL)
    team = Team(Host(model=MODEL or "offline"), [author])
    result = run_sync(team, {"plan": "- [ ] 1. Write about returns @author\n"})
    print("---")
    print(result.results[1].text or result.results[1].error)


if __name__ == "__main__":
    main()

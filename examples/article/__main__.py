"""A pipeline that writes an article: outline, draft, critique, and a revision that checks facts.

    python examples/article
    replan chat --pipeline article_agent:ArticleAgent --dir examples/article

The article is about the returns policy in the notes of the examples. The fact check is a sub-thread
inside the revision. Without REPLAN_MODEL the handlers work by rules over the notes; the draft has a
wrong figure, which the fact check finds. With REPLAN_MODEL they ask the model, each in its phase.
"""

import asyncio
import os

from article_agent import ArticleAgent

from replan import Host, Specialist, Team, Thread, open_runtime, open_storage

MODEL = os.environ.get("REPLAN_MODEL")


def show(thread: Thread, depth: int = 0) -> None:
    """Print what the bot said below a thread."""
    for _, sub_thread in thread.sub_threads():
        for message in sub_thread.messages:
            if message.sender == "bot":
                text = " / ".join(message.text.splitlines())
                print(f"{'  ' * depth}{message.meta['phase']}: {text}")
        show(sub_thread, depth + 1)


async def main() -> None:
    """Let the pipeline do the one step of a plan, and show its threads."""
    author = Specialist("author", "Writes articles.", pipeline=ArticleAgent, unit_model=MODEL)
    team = Team(Host(model=MODEL or "offline"), [author])
    async with open_storage(":memory:") as storage, open_runtime(team, storage=storage) as runtime:
        result = await runtime.run({"plan": "- [ ] 1. Write about returns @author\n"})
        thread = await storage.threads.get_thread(f"{result.run_id}/1.0/author")
    if thread is not None:
        show(thread)
    print("---")
    print(result.results[1].text or result.results[1].error)


if __name__ == "__main__":
    asyncio.run(main())

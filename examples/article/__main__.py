"""A pipeline that writes an article: outline, draft, critique, and a revision that checks facts.

    python examples/article
    python examples/article --model openai:NAME --base-url http://127.0.0.1:8000/v1
    replan chat --pipeline article_agent:ArticleAgent --dir examples/article

The article is about the returns policy in the notes of the examples. The fact check is a sub-thread
inside the revision. Without a model the handlers work by rules over the notes; the draft has a
wrong figure, which the fact check finds. With `--model`, or REPLAN_MODEL=openai:NAME, they ask the
model, each in its phase.
"""

import asyncio
import os
from argparse import ArgumentParser

from article_agent import ArticleAgent

from replan import Host, Specialist, Team, build_graph, open_runtime, open_storage
from replan.pipelines import Thread

parser = ArgumentParser(description="Write an article about the notes of the examples.")
parser.add_argument("--model", default=os.environ.get("REPLAN_MODEL"))
parser.add_argument("--base-url")
asked = parser.parse_args()


def show(thread: Thread, depth: int = 0) -> None:
    """Print the bot's messages below a thread."""
    for _, sub_thread in thread.sub_threads():
        for message in sub_thread.messages:
            if message.sender == "bot":
                text = " / ".join(message.text.splitlines())
                print(f"{'  ' * depth}{message.meta['phase']}: {text}")
        show(sub_thread, depth + 1)


async def main() -> None:
    """Let the pipeline do the only step of a plan, and show its threads."""
    author = Specialist("author", "Writes articles.", pipeline=ArticleAgent, unit_model=asked.model)
    team = Team(Host(model=asked.model or "offline"), [author])
    async with open_storage(":memory:") as storage:
        graph = build_graph(team, storage=storage, base_url=asked.base_url)
        async with open_runtime(graph, storage=storage) as runtime:
            result = await runtime.run({"plan": "- [ ] 1. Write about returns @author\n"})
        thread = await storage.threads.get_thread(f"{result.run_id}/1.0/author")
    if thread is not None:
        show(thread)
    print("---")
    print(result.results[1].text or result.results[1].error)


if __name__ == "__main__":
    asyncio.run(main())

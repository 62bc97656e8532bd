"""What a long conversation costs: the prompt of a late turn against that of an early one, by mode.

The same conversation gives the same tokens. A turn is a question of 50 tokens and an answer of 100;
summaries come back as long as they may be. Then: which share of the CPU time goes to memory,
knowledge, facts and tool servers in runs that have nothing of the kind configured.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from profiling import Profile
from reporting import Row, options, publish

from replan import MemoryOptions, Specialist, Team, build_graph, run
from replan.state.memory import Mode
from replan.testing import ModelCall, ScriptedModel, always

EARLY = 20
"""The turn that others are compared with."""

QUESTION, ANSWER, SUMMARY = 50, 100, 512
"""Tokens, at four characters each."""

WINDOW = "/replan/memory/conversation.py"
REST = (
    *("/replan/memory/summary.py", "/replan/nodes/summarise.py", "/replan/state/options.py"),
    *(
        "/replan/state/step_options.py",
        "/replan/steps/own_memory.py",
        "/replan/steps/enrichment.py",
    ),
    *("/replan/knowledge/", "/replan/facts/", "/host_knowledge.py", "/replies/citations.py"),
    *("/adapters/knowledge/", "/adapters/mcp/", "/granted_tools.py"),
)
"""Where the code of memory, knowledge, facts and tool servers stands."""

MODES: tuple[Mode, ...] = ("window", "summary", "full")


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--trigger", type=int, default=30, help="summary_trigger_messages")
    return parser


def main(args: Namespace) -> list[Row]:
    """Talk for as many turns in each mode."""
    turns = args.turns * (5 if args.long else 1)
    talks = [asyncio.run(talked(mode, turns, args.trigger)) for mode in MODES]
    return [*talks, *asyncio.run(with_nothing_configured(turns))]


async def talked(mode: Mode, turns: int, trigger: int) -> Row:
    """Have one conversation, and count what was asked."""
    replies = {
        "think": always(f"---\ncomplexity: simple\n---\n{text_of(ANSWER)}"),
        "memory_summary": always(text_of(SUMMARY)),
    }
    thread = {"configurable": {"thread_id": mode}}
    memory = MemoryOptions(mode=mode, summary_trigger_messages=trigger)
    with ScriptedModel(replies) as model:
        team = Team(model, [Specialist("clerk", "Looks up.", run=nothing)], memory=memory)
        graph = build_graph(team, checkpointer=InMemorySaver())
        for turn in range(turns):
            await run(graph, f"{turn}: {text_of(QUESTION)}", config={**thread})
    asked = [call for call in model.calls if call.node == "think"]
    return {"table": "Prompts in tokens", **row_of(mode, asked, len(model.calls) - turns)}


def row_of(mode: Mode, asked: Sequence[ModelCall], summaries: int) -> Row:
    """The sizes of the prompts of a conversation, each turn one."""
    sizes = [count_tokens_approximately(call.messages) for call in asked]
    messages = 2 * len(asked)
    return {
        "mode": mode,
        f"turn {EARLY}": sizes[EARLY - 1],
        f"turn {len(sizes)}": sizes[-1],
        "largest": max(sizes),
        "last to early": sizes[-1] / sizes[EARLY - 1],
        "summaries": summaries,
        "messages for each": messages // summaries if summaries else None,
    }


async def with_nothing_configured(turns: int) -> list[Row]:
    """Count where the CPU time of turns goes, a tenth of which are plans of twenty steps."""
    steps = "".join(f"- [ ] {number}. Look {number} up @clerk\n" for number in range(1, 21))
    replies = {
        "think": always(
            lambda messages: (
                f"---\ncomplexity: complex\n---\n# Look\n\n{steps}"
                if messages[-1].text.endswith("0")
                else f"---\ncomplexity: simple\n---\n{text_of(ANSWER)}"
            )
        ),
        "specialist": always(text_of(ANSWER)),
        "feedback": always(f"---\nverdict: complete\n---\n{text_of(ANSWER)}"),
    }
    thread = {"configurable": {"thread_id": "off"}}
    with ScriptedModel(replies) as model:
        team = Team(model, [Specialist("clerk", "Looks up.", chat_model=model)])
        graph = build_graph(team, checkpointer=InMemorySaver())
        with Profile() as profile:
            for turn in range(turns):
                await run(graph, f"{text_of(QUESTION)} {turn}", config={**thread})
    files = Counter[str]()
    for stack, count in profile.seen.items():
        paths = [code.co_filename for code in stack]
        files["window"] += count * any(WINDOW in path for path in paths)
        files["rest"] += count * any(part in path for path in paths for part in REST)
    total = profile.seen.total()
    table = "CPU with nothing configured"
    return [
        {"table": table, "": "the window of each prompt", "%": 100 * files["window"] / total},
        {"table": table, "": "all else of this", "%": 100 * files["rest"] / total},
    ]


def text_of(tokens: int) -> str:
    """A text of so many tokens."""
    return ("word " * tokens)[: 4 * tokens].strip()


def nothing(_: object) -> str:
    """Nobody is asked for anything."""
    return ""


if __name__ == "__main__":
    publish("conversation", arguments().parse_args(), main)

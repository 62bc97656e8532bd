"""What a long conversation costs: the prompt of a late turn against that of an early one, by mode.

Nothing is timed here: the same conversation gives the same tokens. A turn is a question of 50
tokens and an answer of 100; summaries come back as long as they may be.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from reporting import Row, options, publish

from replan import MemoryOptions, Specialist, Team, build_graph, run
from replan.state.memory import Mode
from replan.testing import ModelCall, ScriptedModel, always

EARLY = 20
"""The turn that others are compared with."""

QUESTION, ANSWER, SUMMARY = 50, 100, 512
"""Tokens, at four characters each."""

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
    return [asyncio.run(talked(mode, turns, args.trigger)) for mode in MODES]


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


def text_of(tokens: int) -> str:
    """A text of so many tokens."""
    return ("word " * tokens)[: 4 * tokens].strip()


def nothing(_: object) -> str:
    """Nobody is asked for anything."""
    return ""


if __name__ == "__main__":
    publish("conversation", arguments().parse_args(), main)

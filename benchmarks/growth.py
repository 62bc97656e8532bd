"""How checkpoints and prompts grow: with the steps of a plan, and with the rounds of a run.

Nothing is timed here: bytes and tokens are counted, and the same run gives the same tokens. Each
step's result has 400 tokens. There are three kinds of runs: a plan in one round; the same with
`round_scope="step"`, one step a round; and revisions, where each round does one step and each
judgement but the last adds one to the plan.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from plans import Shape, chain, random_dag, step_line
from reporting import Row, options, publish
from stored import Stored, fresh_storage

from replan import Host, Limits, Specialist, Team, build_graph, run
from replan.prompts.sections import call_of
from replan.state.limits import RoundScope
from replan.testing import ModelCall, ScriptedModel, always

REQUEST = "Find out what there is to know about the subject, part by part, and sum it up."
THOUGHT = "---\ncomplexity: complex\n---\n"
GO_ON = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: One more part.\n---\n"
COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."

RESULT_CHARACTERS = 1_600
"""A result of 400 tokens, at four characters each."""

PLAN = "current_plan"
"""The channel that holds the plan."""


@dataclass(frozen=True)
class Grown:
    """One run, and what was counted of it.

    Attributes:
        shape: All steps that were done.
        rounds: Its rounds.
        calls: Its model calls, in the order of arrival.
        left: What stands in its store.
    """

    shape: Shape
    rounds: int
    calls: Sequence[ModelCall]
    left: Stored

    @property
    def steps(self) -> int:
        """How many steps were done."""
        return len(self.shape.waits)


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--seed", type=int, default=1, help="draws the plans over steps")
    parser.add_argument("--steps", type=int, nargs="+", help="default 5, 10, 20, 50, 80, 100")
    parser.add_argument("--rounds", type=int, nargs="+", help="default 10, 100")
    parser.add_argument("--store", default="sqlite", help="memory, sqlite or postgresql://...")
    return parser


def main(args: Namespace) -> list[Row]:
    """Count for each number of steps in one round, then for each number of rounds."""
    args.steps = args.steps or [5, 10, 20, 50, 80, 100, *([200] if args.long else [])]
    args.rounds = args.rounds or [10, 100, *([1_000] if args.long else [])]
    whole = [run_of(random_dag(steps, args.seed), store=args.store) for steps in args.steps]
    single, revised = (
        [run_over(rounds, kind, seed=args.seed, store=args.store) for rounds in args.rounds]
        for kind in ("one step a round", "one revision a round")
    )
    return [
        *({"table": "Bytes: a plan in one round", **bytes_row(each)} for each in whole),
        *({"table": "Bytes: one step a round", **bytes_row(each)} for each in single),
        *({"table": "Bytes: one revision a round", **bytes_row(each)} for each in revised),
        *({"table": "Tokens: a plan in one round", **tokens_row(each)} for each in whole),
        *({"table": "Tokens: one step a round", **tokens_row(each)} for each in single),
        *({"table": "Tokens: one revision a round", **judged_row(each)} for each in revised),
    ]


def run_over(rounds: int, kind: str, *, seed: int = 1, store: str = "memory") -> Grown:
    """Do a run of so many rounds: one that does a step in each, or one that revises in each."""
    if kind == "one step a round":
        return run_of(random_dag(rounds, seed), scope="step", store=store)
    return run_of(chain(rounds), revisions=rounds - 1, store=store)


def run_of(
    shape: Shape, *, revisions: int = 0, scope: RoundScope = "plan", store: str = "memory"
) -> Grown:
    """Do a run whose first plan has all steps but the last `revisions`, which are added singly.

    Raises:
        RuntimeError: It did not come to its end as it should.
    """
    return asyncio.run(_run(shape, revisions, scope, store))


async def _run(shape: Shape, revisions: int, scope: RoundScope, store: str) -> Grown:
    lines = [step_line(step, waits) for step, waits in shape.waits.items()]
    first = len(lines) - revisions
    script = {
        "think": THOUGHT + "\n".join(lines[:first]),
        "specialist": always(lambda messages: result_text(_step_of(messages))),
        # The least that a revision may say: the new step, and nothing of those that are done.
        "feedback": [*(GO_ON + line for line in lines[first:]), COMPLETE],
    }
    limits = Limits(
        max_rounds=len(lines) + 1, max_steps=len(lines), max_model_calls=3 * len(lines) + 10
    )
    with ScriptedModel(script) as model:
        team = [Specialist(name="worker", intended_use="Looks into parts.", chat_model=model)]
        host = Host(model=model)
        config = Team(host=host, specialists=team, limits=limits, round_scope=scope)
        async with fresh_storage(store) as (storage, count):
            thread = {"configurable": {"thread_id": "benchmark"}}
            state = (await run(build_graph(config, storage=storage), REQUEST, config=thread)).state
            left = count()
    if state["outcome"] != "completed" or len(state["current_specialist_results"]) != len(lines):
        msg = f"The run ended as {state['outcome']}, with {state['current_specialist_results']}."
        raise RuntimeError(msg)
    return Grown(shape, state["current_round"], model.calls, left)


def bytes_row(grown: Grown) -> Row:
    """What the run wrote, and which part of it was the plan."""
    left, plan = grown.left, grown.left.bytes_by_channel[PLAN]
    return {
        "steps": grown.steps,
        "rounds": grown.rounds,
        "checkpoints": left.checkpoints,
        "bytes": left.bytes,
        "per step": round(left.bytes / grown.steps),
        "of it the plan": round(plan / grown.steps),
        "of it the log": round(left.log_bytes / grown.steps),
        "all else": round((left.bytes - left.log_bytes - plan) / grown.steps),
        "over the results' own bytes": left.bytes / (grown.steps * RESULT_CHARACTERS),
    }


def tokens_row(grown: Grown) -> Row:
    """What was said to models, next to the least that could be said."""
    said = sum(count_tokens_approximately(call.messages) for call in grown.calls)
    least = least_tokens(grown)
    return {
        "steps": grown.steps,
        "rounds": grown.rounds,
        "calls": len(grown.calls),
        "tokens": said,
        "per step": round(said / grown.steps),
        "least": least,
        "over the least": said / least,
    }


def judged_row(grown: Grown) -> Row:
    """The same, and what a judgement says again of what the one before has said."""
    prompts = [call.messages for call in grown.calls if call.node == "feedback"]
    judged = sum(map(count_tokens_approximately, prompts))
    cached = sum(_shared(before, after) for before, after in pairwise(prompts)) // 4
    return {
        **tokens_row(grown),
        "of it judgements": judged,
        "of them after a shared beginning": judged - cached,
    }


def least_tokens(grown: Grown) -> int:
    """The tokens of the least prompts.

    Every call says its own system prompt and the request. A step's adds the result of each step
    that it waits for; a judgement's the results that no judgement has seen, and the last one's,
    which writes the answer, all results.
    """
    seen: set[int] = set()
    total = 0
    judgements = [call for call in grown.calls if call.node == "feedback"]
    for call in grown.calls:
        shown: Sequence[int] = ()
        if call.step is not None:
            shown = grown.shape.waits[call.step]
            seen.add(call.step)
        elif call.node == "feedback":
            shown = sorted(grown.shape.waits if call is judgements[-1] else seen)
            seen.clear()
        text = "\n\n".join([REQUEST, *map(result_text, shown)])
        total += count_tokens_approximately([call.messages[0], HumanMessage(text)])
    return total


def result_text(step: int) -> str:
    """The result of a step: 400 tokens that no other step's result has."""
    word = f"fact{step:03} "
    return (word * RESULT_CHARACTERS)[:RESULT_CHARACTERS].strip().ljust(RESULT_CHARACTERS, ".")


def _step_of(messages: Sequence[BaseMessage]) -> int:
    call = call_of(messages)
    return 0 if call is None or call.step is None else call.step


def _shared(before: Sequence[BaseMessage], after: Sequence[BaseMessage]) -> int:
    """The length of the beginning that two prompts share, which a server may have cached."""
    both = zip(_whole(before), _whole(after), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))


def _whole(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


if __name__ == "__main__":
    publish("growth", arguments().parse_args(), main)

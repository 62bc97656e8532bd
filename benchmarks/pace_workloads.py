"""The workloads at the pace of real models: what is asked, what is replied, and how fast.

K2 to K6 are requests to a small shop that a strong model has answered: the host's replies, the
results of steps, and how often a step called tools are as recorded then, in `pace_recorded.json`.
The replies of the other workloads are drawn from a seed. A token is four characters, as in the
recording.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Literal

from harness import serve
from http_workloads import WORDS
from langchain_core.messages import AIMessage, ToolCall
from plans import Shape, chain, flat, random_dag, step_line

from replan.testing import ChatRequest, Reply

FIRST_SECONDS = 0.6
SECONDS_PER_TOKEN_OUT = 0.015
SECONDS_PER_TOKEN_IN = 0.0001
"""The pace of a call."""

AT_ONCE = "-at-once"
"""Behind a model's name: it takes no time."""

CHARACTERS_PER_TOKEN = 4
FEWEST_TOKENS, MOST_TOKENS = 100, 300
"""Tokens of a reply that was not recorded; a plan has as many as its steps and briefs need."""

BRIEF_WORDS = (62, 52, 64, 50, 51, 96, 83, 48, 36, 68)
"""Words of the recorded briefs in English; the briefs of other plans have as many, in turn."""

_SEED = 9
_PIECE = 4 * CHARACTERS_PER_TOKEN
"""Characters of one piece of a stream: fewer pieces, less that a busy machine adds to each."""

Side = Literal["floor", "replan", "when needed"]
"""The floor; Replan as it comes; Replan with `Host(judge="when_needed")`."""

SIDES: tuple[Side, ...] = ("floor", "replan", "when needed")

DIFFERENCES: tuple[str, ...] = (
    "an answer that repeats the result of a step is the line `answer_step` and no body",
    "a brief is cut to two sentences",
    "when needed: the plan names that step, and nobody judges it",
)
"""What differs in the replies that Replan gets; see `said_to`."""

_BRIEF = re.compile(r"(?<=\n)(?P<indent>[ ]+)(?P<text>\S.*)(?=\n|$)")
_SENTENCES = re.compile(r".*?(?:[.!?](?=\s|$)|[。！？]|$)")  # noqa: RUF001 - Chinese marks

TEAM = {
    "data_analyst": "Answers questions about orders, returns, suppliers and staff cost from the "
    "shop's database, with exact figures.",
    "librarian": "Finds what the shop's notes say: policies, agreements, discounts, incidents.",
    "writer": "Writes memos, tables and reports from what others found.",
}
TOOLS = {"data_analyst": "sql", "librarian": "search_notes"}
"""The tool of a specialist."""


@dataclass(frozen=True)
class Turn:
    """One reply within a step: its text, or the calls of tools.

    Attributes:
        text: The result of the step, if this is its last reply.
        tools: How many tools are called.
        tokens_out: The tokens of these calls.
        tokens_read: The tokens that the next request has more, since it holds what they brought.
    """

    text: str = ""
    tools: int = 0
    tokens_out: int = 0
    tokens_read: int = 0

    @property
    def tokens(self) -> int:
        """How many tokens the model writes."""
        return tokens_of(self.text) if self.text else self.tokens_out


@dataclass(frozen=True)
class Workload:
    """One request, and all that is replied in its run.

    Attributes:
        name: What the tables call it.
        request: What is asked.
        plan: The host's first reply.
        judgements: Its further replies; the last one has the answer.
        steps: The replies of each step.
        repeats: The step whose result the answer repeats, if any.
        team: The specialists, and what each is for.
    """

    name: str
    request: str
    plan: str
    judgements: Sequence[str]
    steps: Mapping[int, Sequence[Turn]]
    repeats: int | None = None
    team: Mapping[str, str] = field(default_factory=lambda: TEAM)

    def calls(self, side: Side) -> int:
        """The calls of a run."""
        is_foreseen = side == "when needed" and self.is_foreseeable
        return 1 + len(self.judgements) - is_foreseen + sum(map(len, self.steps.values()))

    @property
    def is_foreseeable(self) -> bool:
        """Whether its first plan can name the step that answers, and is never revised."""
        return self.repeats is not None and len(self.judgements) == 1


def said_to(side: Side, workload: Workload, reply: str) -> str:
    """A reply of the host as it is said to a side: the one place where the sides may differ.

    Replan lets a model name the step whose result is the answer: a body that repeats a result is
    this reference. What differs has to stand in `DIFFERENCES`, which the benchmark prints.
    """
    if side == "floor":
        return reply
    head, end, body = reply.partition("\n---\n")
    is_answer = reply is workload.judgements[-1]
    if is_answer:
        return reply if workload.repeats is None else f"{head}{_named(workload)}{end}"
    named = _named(workload) if side == "when needed" and workload.is_foreseeable else ""
    return f"{head}{named}{end}{_BRIEF.sub(_cut, body)}"


def _named(workload: Workload) -> str:
    return f"\nanswer_step: {workload.repeats}"


def _cut(brief: re.Match[str]) -> str:
    """The first two sentences of a brief, which is one line."""
    sentences = [each.strip() for each in _SENTENCES.findall(brief["text"]) if each.strip()]
    return brief["indent"] + " ".join(sentences[:2])


def tokens_of(text: str) -> int:
    """The tokens of a text."""
    return len(text) // CHARACTERS_PER_TOKEN


def _recorded() -> list[Workload]:
    path = Path(__file__).with_name("pace_recorded.json")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    return [
        Workload(
            name,
            each["request"],
            each["plan"],
            each["judgements"],
            {int(step): [Turn(**turn) for turn in turns] for step, turns in each["steps"].items()},
            # The answer to K4 had to be written: no result has both halves of it.
            repeats=None if name == "K4" else max(map(int, each["steps"])),
        )
        for name, each in recorded.items()
    ]


PLANNED = """\
---
complexity: complex
score: 0.7
reasoning: Each part has to be looked into by itself, and then all of them together.
next_action: create_plan
---
# What the orders and the returns say

"""
COMPLETE = "---\nverdict: complete\nfeedback: All parts are there, and their figures agree.\n---\n"

_SENTENCE = 17
"""Words of a sentence: the recorded briefs have three or four of them."""


def _drawn(name: str, shape: Shape, *, repeats: int | None = None) -> Workload:
    """A workload whose replies are drawn; its answer may be that of a step, word for word."""
    drawn = random.Random(_SEED)  # noqa: S311 - the same draw on every run, no secret
    steps = {step: [Turn(_report(step, drawn))] for step in shape.waits}
    answer = _report(0, drawn) if repeats is None else steps[repeats][0].text
    lengths = cycle(BRIEF_WORDS)
    lines = [
        f"{step_line(step, after)}\n\n  {_sentences(next(lengths), drawn)}\n"
        for step, after in shape.waits.items()
    ]
    return Workload(
        name,
        "Look into all parts of the orders and of the returns, and say what we should do.",
        PLANNED + "\n".join(lines),
        [COMPLETE + answer],
        steps,
        repeats,
        {"worker": "Looks into parts of the orders and of the returns."},
    )


def _report(step: int, drawn: random.Random) -> str:
    tokens = drawn.randint(FEWEST_TOKENS, MOST_TOKENS)
    text = f"Report on part {step}." if step else "All parts were looked into."
    while tokens_of(text) < tokens:
        text += f" {drawn.choice(WORDS)}"
    return text


def _sentences(words: int, drawn: random.Random) -> str:
    drawn_words = drawn.choices(WORDS, k=words)
    sentences = [drawn_words[at : at + _SENTENCE] for at in range(0, words, _SENTENCE)]
    return " ".join(f"{' '.join(each).capitalize()}." for each in sentences)


RECORDED = tuple(_recorded())
DRAWN = (
    _drawn("fan-out of 8", flat(8)),
    # The last link of a chain writes what the chain is for.
    _drawn("chain of 6", chain(6), repeats=6),
    _drawn("DAG of 20", random_dag(20, _SEED)),
)
WORKLOADS = {each.name: each for each in (*RECORDED, *DRAWN)}
"""The workloads by name."""


def model_name(workload: Workload, side: Side) -> str:
    """The name of the model that plays a workload to a side."""
    return f"{workload.name} {side}".replace(" ", "-")


MODELS = {
    model_name(each, side) + end: (each, side, pace)
    for each in WORKLOADS.values()
    for side in SIDES
    for end, pace in (("", 1.0), (AT_ONCE, 0.0))
}
"""What each model plays, to whom, and what its seconds are multiplied with."""


def play(request: ChatRequest) -> Reply:
    """Reply to a request of either side, at the pace of its model.

    Raises:
        ValueError: The prompt does not say who calls, or no reply is meant for it.
    """
    workload, side, _ = MODELS[request.model]
    match request.call:
        case None:
            raise ValueError("Who calls does not stand in the prompt.")
        case call if call.node == "specialist" and call.step is not None:
            turn = workload.steps[call.step][_turns_before(request)]
            return _at_pace(request, turn.text, _calls(turn, call.specialist or ""), turn.tokens)
        case call if call.node == "think":
            text = said_to(side, workload, workload.plan)
        case call if call.node == "feedback":
            judgement = workload.judgements[_judgements_before(workload, request)]
            text = said_to(side, workload, judgement)
        case call:
            msg = f"No workload has a call of {call.node}."
            raise ValueError(msg)
    return _at_pace(request, text, [], tokens_of(text))


def _turns_before(request: ChatRequest) -> int:
    """How often the step has called tools already."""
    return sum(
        isinstance(message, AIMessage) and bool(message.tool_calls) for message in request.messages
    )


def _judgements_before(workload: Workload, request: ChatRequest) -> int:
    """How many judgements came before: all but the last one if every step has its result."""
    text = request.messages[-1].text
    is_last = all(f'<result step="{step}"' in text for step in workload.steps)
    return len(workload.judgements) - 1 if is_last else 0


def _calls(turn: Turn, specialist: str) -> list[ToolCall]:
    tokens = turn.tokens_read // turn.tools if turn.tools else 0
    return [
        ToolCall(
            name=TOOLS[specialist], args={"words": f"part {at}", "tokens": tokens}, id=f"c{at}"
        )
        for at in range(turn.tools)
    ]


def found(words: str, tokens: int) -> str:
    """What a tool finds: a text of so many tokens."""
    return (f"{words}: " + " ".join(WORDS) * (tokens // 40 + 1))[: tokens * CHARACTERS_PER_TOKEN]


def _at_pace(request: ChatRequest, text: str, calls: Sequence[ToolCall], tokens_out: int) -> Reply:
    tokens_in = sum(tokens_of(message.text) for message in request.messages)
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)] or [""]
    _, _, pace = MODELS[request.model]
    seconds = pace * (FIRST_SECONDS + tokens_in * SECONDS_PER_TOKEN_IN)
    writing = pace * tokens_out * SECONDS_PER_TOKEN_OUT
    # The first piece of a stream comes with the latency, each further one after its delay.
    delay = writing / len(pieces)
    return Reply(
        text,
        tool_calls=calls,
        usage=(tokens_in, tokens_out),
        latency=seconds + (delay if request.stream else writing),
        chunk_delay=delay,
        chunks=pieces,
    )


if __name__ == "__main__":
    serve(play, tuple(MODELS))

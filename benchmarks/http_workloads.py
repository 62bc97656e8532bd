"""The workloads over HTTP: which steps a run has, how long each call takes, and what is replied.

Started by itself, it serves the model that plays them, so that the CPU of the server is not that of
who measures.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice

from harness import serve
from plans import Shape, chain, flat, random_dag, step_line

from replan.prompts.sections import Call
from replan.testing import ChatRequest, Reply

LATENCY = 0.2
"""Seconds of a call, where the workload does not say."""

FEWEST_TOKENS, MOST_TOKENS = 100, 150
"""Tokens of a reply; each is a piece of its own where the reply is streamed."""

DAG_SEED = 9

PLANNED = """\
---
complexity: complex
reasoning: Each part has to be looked into by itself.
next_action: create_plan
---
"""
FAILED = "---\nstatus: failed\nconfidence: 0.2\n---\n"
GO_ON = """\
---
verdict: continue
suggested_action: update_plan
update: One more part has to be looked into.
feedback: The parts that were looked into point to another one.
---
"""
COMPLETE = "---\nverdict: complete\nfeedback: All is there.\n---\n"

_TEXT = (
    "the number of orders in each region grew since last year while returns stayed as they were "
    "so what was planned for spring can begin early if those who store the goods agree in time"
)
WORDS = _TEXT.split()
"""What replies are made of."""


@dataclass(frozen=True)
class Workload:
    """A plan that a model writes, and how the calls of its run go.

    Attributes:
        name: What the tables call it.
        model: The model that plays it.
        shape: The steps of the plan.
        added: The steps that a revision adds to it.
        seconds: The latencies of steps, where they are not `LATENCY`.
        attempts: How often a step is tried, where it is not once: all but the last say themselves
            that they failed.
    """

    name: str
    model: str
    shape: Shape
    added: Shape = field(default_factory=lambda: Shape({}))
    seconds: Mapping[int, float] = field(default_factory=dict[int, float])
    attempts: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def steps(self) -> list[int]:
        """All its steps."""
        return [*self.shape.waits, *self.added.waits]

    @property
    def shapes(self) -> list[Shape]:
        """The rounds; a model judges each, and the last judgement is the answer."""
        return [self.shape, self.added] if self.added.waits else [self.shape]

    @property
    def calls(self) -> int:
        """The calls of a run: the plan, each attempt of a step, each judgement."""
        return 1 + sum(self.attempts.get(step, 1) for step in self.steps) + len(self.shapes)

    @property
    def critical_path(self) -> float:
        """The least seconds that the calls of a run can take."""
        took = {step: self.seconds_of(step) * self.attempts.get(step, 1) for step in self.steps}
        rounds = sum(shape.critical_path(took) for shape in self.shapes)
        return LATENCY * (1 + len(self.shapes)) + rounds

    def seconds_of(self, step: int | None) -> float:
        """The latency of a call for a step, or of one that is for none."""
        return LATENCY if step is None else self.seconds.get(step, LATENCY)


def _uneven(shape: Shape, seed: int) -> dict[int, float]:
    drawn = random.Random(seed)  # noqa: S311 - the same draw on every run, no secret
    return {step: drawn.uniform(0.05, 1.5) for step in shape.waits}


_dag = random_dag(20, DAG_SEED)

WORKLOADS = {
    each.model: each
    for each in (
        Workload("fan-out of 8", "fan-out", flat(8)),
        Workload("chain of 6", "chain", chain(6)),
        Workload("DAG of 20", "dag", _dag, seconds=_uneven(_dag, DAG_SEED)),
        Workload("fails twice", "failing", flat(1), attempts={1: 3}),
        Workload("one revision", "revision", flat(1), added=Shape({2: ()})),
    )
}


SIMPLE = "simple"
"""The model that answers every request without a plan."""

TURN = Workload("turn of a session", "turn", Shape({1: (), 2: (), 3: (1, 2)}))
"""What a session asks for that needs a plan."""

_ANSWERED = """\
---
complexity: simple
reasoning: It can be said at once.
next_action: direct_answer
---
"""


class Model:
    """Answers the calls of all workloads, of either side; the model's name says of which."""

    def __init__(self) -> None:
        self._tried: Counter[tuple[str, int]] = Counter()

    def __call__(self, request: ChatRequest) -> Reply:
        """Answer one request.

        Raises:
            ValueError: Its prompt does not say who calls.
        """
        if request.call is None:
            raise ValueError("Who calls does not stand in the prompt.")
        if request.model == SIMPLE:
            text = _ANSWERED + _prose("They grew:", random.Random(0))  # noqa: S311 - as below
            return Reply(text, usage=(_read(request), len(text.split())), latency=LATENCY)
        workload = {**WORKLOADS, TURN.model: TURN}[request.model]
        text = self._text(workload, request.call, request.messages[-1].text)
        latency = workload.seconds_of(request.call.step)
        return Reply(text, usage=(_read(request), len(text.split())), latency=latency)

    def _text(self, workload: Workload, call: Call, prompt: str) -> str:
        match call.node:
            case "specialist" if call.step is not None:
                tried = self._tried[workload.model, call.step] + 1
                attempts = workload.attempts.get(call.step, 1)
                # Runs of a workload whose steps fail follow one another, so each takes all of them.
                self._tried[workload.model, call.step] = tried % attempts
                return report(call.step) if tried == attempts else FAILED + report(call.step)
            case "think":
                return PLANNED + _filled(_document(workload.shape.waits))
            case "feedback":
                if workload.added.waits and not _reported(workload.added, prompt):
                    return GO_ON + _filled(
                        _document({**workload.shape.waits, **workload.added.waits})
                    )
                return COMPLETE + _prose("All parts were looked into.", random.Random(0))  # noqa: S311
            case _:
                raise ValueError(f"No workload has a call of {call.node}.")


def _read(request: ChatRequest) -> int:
    """The tokens of a prompt, roughly."""
    return sum(len(message.text) for message in request.messages) // 4


def report(step: int) -> str:
    """What a step brings."""
    return _prose(_mark(step), random.Random(step))  # noqa: S311 - the same on every run


def _mark(step: int) -> str:
    return f"Report on part {step}:"


def _reported(shape: Shape, prompt: str) -> bool:
    return all(_mark(step) in prompt for step in shape.waits)


def _prose(beginning: str, drawn: random.Random) -> str:
    tokens = drawn.randint(FEWEST_TOKENS, MOST_TOKENS)
    return " ".join([beginning, *drawn.choices(WORDS, k=tokens - len(beginning.split()))])


def _document(waits: Mapping[int, tuple[int, ...]]) -> str:
    return "\n".join(step_line(step, after) for step, after in waits.items())


def _text_of(tokens: int) -> str:
    return " ".join(islice(cycle(WORDS), tokens))


def _filled(steps: str) -> str:
    """A plan document, with so much prose that it is no shorter than other replies."""
    missing = max(0, FEWEST_TOKENS - len(steps.split()))
    return f"# What the orders say\n\n{_text_of(missing)}\n\n{steps}\n"


if __name__ == "__main__":
    serve(Model(), (*WORKLOADS, SIMPLE, TURN.model))

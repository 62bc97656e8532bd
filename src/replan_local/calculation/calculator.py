"""A specialist that computes exactly from numbers in its step and in earlier results."""

import re

from langchain_core.runnables import RunnableConfig

from replan_local.arithmetic import Computation, compute
from replan_local.answering import SURE, Answer, answered
from replan_local.calculation.figures import EarlierFigures
from replan_local.parameters import given_text, refuse_misspelt
from replan_local.refusals import CannotAnswerError
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

PARAMETERS = ("expression",)
"""The parameters that a step may give."""

_CARD = SpecialistCard(
    name="calculator",
    intended_use="Exact arithmetic, such as percent or growth, on numbers that are given or found.",
    capabilities=(
        "percent, percentage, share, ratio, difference, growth of figures in results",
        "plus, minus, times, divided by (parameter expression)",
    ),
)
_ASKING = re.compile(
    r"^(?:please\s+)?(?:calculate|compute|work\s+out|what\s+is|how\s+much\s+is)\s+(?:the\s+)?",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_FROM_TABLES, _ADDED_UP = 0.9, 0.8


class Calculator:
    """Computes with exact fractions; it evaluates no code and reads no file."""

    @property
    def card(self) -> SpecialistCard:
        """Name, intended use and capabilities."""
        return _CARD

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Compute what the step asks; what is no arithmetic fails for good."""
        return await answered(_CARD, context, lambda: _answer(context), lambda: None)


def _answer(context: ExecutionContext) -> Answer:
    parameters = context.parameters or context.plan_step.parameters
    refuse_misspelt(parameters, PARAMETERS)
    figures = EarlierFigures(context.inputs)
    for question in _questions(context, given_text(parameters, "expression")):
        computed = compute(question, figures)
        if computed is not None:
            return _told(question, computed, figures)
    message = (
        f"This is no arithmetic that can be computed: '{context.task_description}'. "
        "Ask for example for '12.5 % of 80', 'growth from 120 to 150' or 'sum of 1, 2 and 3'."
    )
    raise CannotAnswerError(message)


def _questions(context: ExecutionContext, expression: str) -> list[str]:
    """Where the question may stand: in the parameter, the line, a line of the brief."""
    if expression:
        return [expression]
    lines = [context.task_description, *context.plan_step.brief.splitlines()]
    # "The net revenue: total revenue - total refund" asks behind the colon.
    tails = [line.rpartition(":")[2] for line in lines]
    return [text for line in (*tails, *lines) if (text := _BRACKETS.sub(" ", line).strip())]


def _told(question: str, computed: Computation, figures: EarlierFigures) -> Answer:
    if not computed.result:
        raise CannotAnswerError(str(computed))
    title = _ASKING.sub("", question).strip(" .:?")
    parts = [f"**{title[0].upper()}{title[1:]}: {computed.result}**", str(computed)]
    if figures.notes:
        parts.append("\n".join(f"- {note}" for note in figures.notes))
    confidence = _ADDED_UP if figures.added_up else _FROM_TABLES if figures.notes else SURE
    return Answer(text="\n\n".join(parts), confidence=confidence)

"""What the analyst says that it can be asked is what it answers."""

from pathlib import Path

import pytest

from replan_local import DataAnalyst
from replan_local.analyst.questions import QUESTIONS
from replan.state.results import ExecutionStatus

SAMPLES = Path(__file__).parents[3] / "examples" / "data"
EXAMPLES = [example for kind in QUESTIONS for example in kind.examples]


@pytest.mark.parametrize("question", EXAMPLES)
async def test_every_documented_question_is_answered_without_a_guess(ask, question):
    result = await ask(question, directory=SAMPLES)
    assert result.status is ExecutionStatus.SUCCESS, result.error
    assert result.confidence > 0.9, result.text


@pytest.mark.parametrize("kind", [kind for kind in QUESTIONS if kind.parameters])
async def test_documented_parameters_ask_the_same(ask, kind):
    result = await ask("x", directory=SAMPLES, **kind.parameters)
    assert result.status is ExecutionStatus.SUCCESS, result.error


def test_every_kind_stands_on_the_card_and_can_be_tried():
    assert DataAnalyst(SAMPLES).card.capabilities == tuple(kind.capability for kind in QUESTIONS)
    assert all(kind.examples or kind.parameters for kind in QUESTIONS)

"""What came of a run, as a typed value."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

from replan.plan.markdown.document import PlanDocument
from replan.prompts.replies.shape import Shape
from replan.runs.result import RunResult, result_of
from replan.state.questions import Question
from replan.state.results import SpecialistResult
from replan.state.usage import Usage

PLAN = PlanDocument.parse("# Lunch\n\n- [x] 1. Cook @a\n- [ ] 2. Eat @b (after 1)\n").plan


def done(step, name, text):
    return SpecialistResult(step_id=step, specialist_name=name, result=AIMessage(text))


def ended(**state):
    results = {
        each.key: each for each in (done(1, "a", "soup"), done(2, "b", "x"), done(2, "c", "y"))
    }
    known = {
        "run_id": "0123456789",
        "outcome": "completed",
        "final_answer": AIMessage("It was good."),
        "current_plan": PLAN,
        "current_specialist_results": results,
        "usage": Usage(calls=2, input_tokens=30, output_tokens=12),
        "warnings": ["Step 1 names nobody."],
    }
    return result_of({**known, **state}, 1.25)


def test_the_result_of_a_step_is_found_by_its_number():
    results = ended().results
    assert results[1].text == "soup"
    assert (1 in results, 2 in results, 3 in results, "2/b" in results) == (True, True, False, True)
    assert [*results] == ["1/a", "2/b", "2/c"]
    assert [each.text for each in results.of(2)] == ["x", "y"]
    assert results["2/c"].text == "y"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (2, r"Step 2: several specialists did it; write results\['2/b'\], results\['2/c'\]\."),
        (3, r"Step 3: it has no result\."),
        ("3/a", "3/a"),
    ],
)
def test_a_step_without_one_result_is_refused_by_name(step, told):
    with pytest.raises(KeyError, match=told):
        _ = ended().results[step]


def test_a_run_that_waits_says_for_what():
    question = Question(key="2/b/1", step_id=2, specialist="b", text="With salt?")
    asked = Interrupt(value={"questions": [question.payload], "problem": ""}, id="i")
    result = ended(outcome=None, final_answer=None, __interrupt__=[asked])
    assert (result.outcome, result.text, result.answer) == ("waiting", "", None)
    assert [(ask.key, ask.text, ask.kind) for ask in result.pending_questions] == [
        ("2/b/1", "With salt?", "question")
    ]
    assert "- waits for `2/b/1`: With salt?" in result._repr_markdown_()
    assert repr(result) == "<RunResult waiting: '2/b/1', 1 of 2 steps done, run 01234567>"


def test_a_run_without_a_state_was_interrupted():
    result = result_of({})
    assert (result.outcome, result.text, result.plan) == ("interrupted", "", None)
    assert (result.usage, result.warnings, len(result.results)) == (Usage(), (), 0)


def test_a_notebook_shows_the_answer_and_the_plan():
    shown = ended()._repr_markdown_()
    assert shown.startswith(
        "**completed** (1 of 2 steps done, 2 model calls, 42 tokens, 1.2 s)\n\nIt was good.\n"
    )
    assert "- warning: Step 1 names nobody." in shown
    assert shown.endswith(PLAN.content)


def test_a_result_in_one_line_is_short():
    result = ended(final_answer=AIMessage("long " * 1_000))
    assert len(repr(result)) < 150
    assert repr(ended()) == (
        "<RunResult completed: 'It was good.', 1 of 2 steps done, run 01234567>"
    )


def test_a_result_cannot_be_changed():
    with pytest.raises(AttributeError):
        ended().outcome = "failed"
    assert isinstance(ended(), RunResult)


def test_a_result_that_cannot_be_read_any_more_hides_no_other_one():
    class Price(BaseModel):
        cents: int

    results = {
        each.key: each.replace(output=output)
        for each, output in ((done(1, "a", "x"), {"cents": 1}), (done(2, "b", "y"), {"euro": 1}))
    }
    shapes = {"": Shape(Price), "a": Shape(Price), "b": Shape(Price)}
    result = result_of({"current_specialist_results": results, "output": {"euro": 1}}, 0, shapes)
    assert [*result.results] == ["1/a", "2/b"]
    assert result.results[1].output == Price(cents=1)
    for read, place in (
        (lambda: result.results[2], r"results\['2/b'\]"),
        (lambda: result.output, "output"),
    ):
        with pytest.raises(ValueError, match=f"{place} cannot be read: .*cents: Field required"):
            read()
    assert result.state["current_specialist_results"]["2/b"].output == {"euro": 1}

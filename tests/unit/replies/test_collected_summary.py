"""A summary of results reads back as what was summed up."""

import pytest
from langchain_core.messages import AIMessage

from replan import DeserializationError, SpecialistResult
from replan.replies.collected import parse_collected_results
from replan.steps.collected import generate_result_summary


def test_the_collectors_own_summary_reads_back():
    results = {
        "1/a": SpecialistResult(step_id=1, specialist_name="a", result=AIMessage("Found: it.")),
        "2/b": SpecialistResult(
            step_id=2, specialist_name="b", status="failed", error="gone", confidence=0
        ),
    }
    read = parse_collected_results(generate_result_summary(results))
    assert read.successful_results == ("1/a",)
    assert read.failed_results == ("2/b",)
    assert read.results["1/a"].text == "Found: it."
    assert read.results["2/b"].error == "gone"


def test_a_model_may_write_more_around_the_lines():
    read = parse_collected_results("Here you are:\n* `3/c`: partial: half of it\n\nThat is all.")
    assert read.failed_results == ("3/c",)


def test_a_text_without_such_lines_is_refused():
    with pytest.raises(DeserializationError, match="no line has the form"):
        parse_collected_results("All went well.")

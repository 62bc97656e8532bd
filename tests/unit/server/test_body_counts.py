"""Lists in requests: too long ones are refused by count, before their entries are read."""

import json

import pytest

from replan.server.doors.session_wire import ImportBody
from replan.server.problems import RefusedError
from replan.server.request_body import read_json

PART = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"files": [{}] * 10_001}, "files"),
        ({"messages": [{"content": "a"}, {"content": [PART] * 10_001}]}, "messages[1].content"),
        ({"forwardedProps": dict.fromkeys(map(str, range(10_001)), "a")}, "forwardedProps"),
        (dict.fromkeys(map(str, range(10_001)), "a"), ""),
    ],
)
def test_a_field_with_too_many_entries_is_refused_with_its_count_and_its_bound(body, field):
    with pytest.raises(RefusedError) as error:
        read_json(json.dumps(body).encode())
    problem = error.value.problem
    assert problem.status == 422
    (mistake,) = problem.mistakes
    assert mistake.field == field
    assert "10,001 entries; at most 10,000" in mistake.reason
    assert mistake.fix.startswith("Send ")
    assert len(problem.model_dump_json()) < 2_000


def test_a_session_that_is_imported_may_have_as_long_a_history_as_a_session():
    body = {"files": [{}] * 10_000, "context": {"dialogue_history": [PART] * 50_000}}
    assert read_json(json.dumps(body).encode(), ImportBody.most_entries) == body


@pytest.mark.parametrize("wrong", [dict.fromkeys(map(str, range(10_001)), 0), 2**70])
def test_of_many_mistakes_some_are_named(wrong):
    with pytest.raises(RefusedError) as error:
        read_json(json.dumps({"messages": [wrong] * 101}).encode())
    assert len(error.value.problem.mistakes) == 100

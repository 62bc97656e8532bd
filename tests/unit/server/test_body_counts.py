"""Lists in requests: too long ones are refused by count, before their entries are read."""

import json

import pytest

from replan.server.app import own_routes
from replan.server.bodies import StartBody
from replan.server.doors.extra_doors import ag_ui
from replan.server.problems import RefusedError
from replan.server.request_body import read_json

PART = {"type": "text", "text": "a"}


def body_of(path):
    routes = [*own_routes(), *ag_ui().routes]
    route = next(each for each in routes if each.methods == {"POST"} and each.path == path)
    return route.body_field.field_info.annotation


@pytest.mark.parametrize(
    ("path", "body", "field", "told"),
    [
        ("/runs", {"files": [{}] * 190_000}, "files", "190,000 entries; at most 20"),
        ("/runs", {"files": [{}] * 21}, "files", "21 entries; at most 20"),
        ("/runs", {"answers": {str(n): n for n in range(1_001)}}, "answers", "at most 1,000"),
        ("/runs", {"labels": {str(n): "a" for n in range(190_000)}}, "labels", "at most"),
        ("/runs/{run_id}/answers", {"answers": dict.fromkeys(map(str, range(1_001)), 1)},
         "answers", "1,001 entries; at most 1,000"),
        ("/sessions/{session_id}/turns", {"input": dict.fromkeys(map(str, range(1_001)), 1)},
         "input", "1,001 entries; at most 1,000"),
        ("/sessions/{session_id}/turns", {"input": "a", "files": [{}] * 190_000},
         "files", "190,000 entries; at most 20"),
        ("/v1/chat/completions", {"messages": [{}] * 190_000},
         "messages", "190,000 entries; at most 2,000"),
        ("/v1/chat/completions", {"messages": [{"content": "a"}, {"content": [PART] * 1_001}]},
         "messages[1].content", "1,001 entries; at most 1,000"),
        ("/v1/chat/completions", {"metadata": dict.fromkeys(map(str, range(10_001)), "a")},
         "metadata", "10,001 entries; at most 10,000"),
        ("/ag-ui/{team}", {"messages": [{}] * 10_001},
         "messages", "10,001 entries; at most 10,000"),
        ("/ag-ui/{team}", {"messages": [{"role": "user", "content": [PART] * 1_001}]},
         "messages[0].content", "1,001 entries; at most 1,000"),
        ("/ag-ui/{team}", {"forwardedProps": dict.fromkeys(map(str, range(10_001)), "a")},
         "forwardedProps", "10,001 entries; at most 10,000"),
    ],
)  # fmt: skip
def test_a_field_with_too_many_entries_is_refused_with_its_count_and_its_bound(
    path, body, field, told
):
    with pytest.raises(RefusedError) as error:
        read_json(json.dumps(body).encode(), body_of(path))
    problem = error.value.problem
    assert problem.status == 422
    (mistake,) = problem.mistakes
    assert mistake.field == field
    assert told in mistake.reason
    assert mistake.fix.startswith("Send ")
    assert len(problem.model_dump_json()) < 2_000


def test_what_is_within_the_bounds_or_no_list_of_a_field_is_not_counted():
    body = {"files": [{}] * 20, "task": "a" * 30_000, "unknown": [0] * 50_000}
    body["answers"] = {"1": [0] * 50_000}
    assert read_json(json.dumps(body).encode(), StartBody) == body


def test_of_many_long_fields_some_are_named():
    messages = [{"role": "user", "content": [0] * 1_001}] * 180
    with pytest.raises(RefusedError) as error:
        read_json(json.dumps({"messages": messages}).encode(), body_of("/v1/chat/completions"))
    assert len(error.value.problem.mistakes) == 100

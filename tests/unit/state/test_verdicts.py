"""What a person is asked of work in doubt, and how the answers are read."""

import pytest

from replan.state.person.answers import ask_what_became_of, leads_to, problem_in, read_verdict


@pytest.mark.parametrize(
    ("details", "done"),
    [
        ({"attempt": 1, "task": "Pay"}, "what you write becomes its result"),
        ({"attempt": 1, "task": "Pay", "idempotency_key": "k"}, "its result stays"),
        ({"tool": "pay", "arguments": {}}, "taken as the result of the call"),
        (None, "what you write becomes its result"),
    ],
)
def test_what_each_answer_leads_to_fits_what_is_asked(details, done):
    asked = []

    def ask(text, *, kind, details):
        asked.append(text)
        return "fail: lost"

    ask_what_became_of("It", 1, details, ask)
    leads = leads_to(details)
    assert done in leads["done"]
    assert all(each in asked[0] for each in leads.values())
    assert problem_in(asked[0]).endswith("nobody knows whether it took effect.")
    assert {*leads} == {"done", "fail", "run again"}
    assert [read_verdict(each).action for each in leads] == [*leads]

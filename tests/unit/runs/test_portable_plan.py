"""A plan that travels has no text twice that is on record, and comes back as it was."""

import json

import pytest
from hypothesis import given, strategies as st

from replan.errors import ContextError
from replan.runs.travel.portable_plan import lengthened, shortened
from replan.state.session.context_fields import ValueReader

texts = st.text(st.sampled_from("ab \n>…é"), max_size=120)


@st.composite
def plans(draw):
    """A plan whose steps quote the beginnings of results, and the results on record."""
    recorded = {
        f"k{n}": {"result": {"content": text}} for n, text in enumerate(draw(st.lists(texts)))
    }
    results = [
        draw(st.sampled_from([text, text[: draw(st.integers(0, 90))] + "…", draw(texts)]))
        for text in (each["result"]["content"] for each in recorded.values())
    ]
    quoted = ["\n".join(f"  > {line}".rstrip() for line in each.split("\n")) for each in results]
    content = "\n\n".join(f"- [x] {n}. Do\n\n{each}" for n, each in enumerate(quoted, 1))
    return {"content": content, "steps": [{"result": each} for each in results]}, recorded


@given(plans())
def test_a_plan_comes_back_as_it_was(case):
    plan, recorded = case
    written = json.loads(json.dumps(shortened(plan, recorded)))
    reading = ValueReader()
    assert lengthened(written, recorded, (), reading) == plan
    reading.end()


def test_what_is_on_record_is_written_once():
    text = "A line of a result that is long enough.\n\nAnd another one."
    recorded = {"k": {"result": {"content": text * 20}}}
    result = f"{(text * 20)[:300]}…"
    quoted = "\n".join(f"  > {line}".rstrip() for line in result.split("\n"))
    plan = {"content": f"- [x] 1. Do it\n\n{quoted}\n", "steps": [{"id": 1, "result": result}]}
    assert len(json.dumps(shortened(plan, recorded))) < 250


@pytest.mark.parametrize(
    "plan",
    [
        {"steps": [{"result": {"on_record": "k", "characters": 9, "end": ""}}]},
        {"steps": [{"result": {"on_record": "none", "characters": 1, "end": ""}}]},
        {"steps": [{"result": {"on_record": "k", "characters": -1, "end": ""}}]},
        {"steps": [{"result": {"on_record": "k", "characters": 1, "end": "x"}}]},
        {"steps": [], "content": [{"step": 0, "lead": ""}]},
        {"steps": [{"result": "a"}], "content": [7]},
    ],
)
def test_what_is_not_on_record_is_refused(plan):
    reading = ValueReader()
    lengthened(plan, {"k": {"result": {"content": "ab"}}}, (), reading)
    with pytest.raises(ContextError):
        reading.end()


def test_a_small_plan_does_not_become_a_large_one():
    recorded = {"k": {"result": {"content": "a" * 1_000_000}}}
    step = {"result": {"on_record": "k", "characters": 1_000_000, "end": ""}}
    for plan in (
        {"steps": [step] * 99},
        {"steps": [step], "content": [{"step": 0, "lead": ""}] * 99},
    ):
        reading = ValueReader()
        lengthened(plan, recorded, (), reading)
        assert [each.problem for each in reading.mistakes.values()] == [
            "it is larger than 32,000,000 bytes"
        ]

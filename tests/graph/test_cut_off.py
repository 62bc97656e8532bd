"""A limit that stops a host that wants to go on is an end that says so."""

import pytest

from replan import Host, Limits, Specialist, Team, build_graph, stream
from replan.testing import ScriptedModel, always

MORE = """\
---
verdict: continue
suggested_action: update_plan
update: the figures are wrong
feedback: not done
---
- [x] 1. One @a
- [ ] 2. Check the figures @a
"""
WORDS = "---\nverdict: continue\nupdate: the figures are wrong\n---\n"
GIVEN = {"plan": "- [ ] 1. One @a\n"}


async def course(reply, **options):
    """The events of a run whose host always replies so, and what the host was asked last."""
    model = ScriptedModel({"feedback": always(reply), "final_answer": always("What there is.")})
    team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
    config = Team(host=Host(model=model), specialists=team, **options)
    events = [event async for event in stream(build_graph(config), GIVEN)]
    return events, model


@pytest.mark.parametrize(
    ("reply", "undone"), [(MORE, "2. Check the figures"), (WORDS, "the figures are wrong")]
)
async def test_a_host_that_max_rounds_cuts_off_ends_partial_and_tells_what_it_wanted(reply, undone):
    events, model = await course(reply, limits=Limits(max_rounds=1))
    assert [event.limit for event in events if event.type == "limit_reached"] == ["max_rounds"]
    assert events[-1].outcome == "partial"
    line = f"- {undone}: proposed by the host and not done, the limit max_rounds was reached"
    assert events[-1].answer.text == f"What there is.\n\n**Not done:**\n\n{line}"
    assert line in model.calls[-1].messages[-1].text


async def test_a_host_that_is_satisfied_in_the_last_round_completes():
    complete = "---\nverdict: complete\n---\nThe answer."
    events, _ = await course(complete, limits=Limits(max_rounds=1))
    assert (events[-1].outcome, events[-1].answer.text) == ("completed", "The answer.")
    assert not [event for event in events if event.type == "limit_reached"]


async def test_a_host_is_told_that_the_plan_must_not_be_revised():
    _, model = await course(MORE, allow_dynamic_update=False)
    asked = [call.messages[0].text for call in model.calls if call.node == "feedback"]
    assert all("must not be revised" in text for text in asked)
    _, model = await course(MORE, limits=Limits(max_rounds=1))
    assert "must not be revised" not in model.calls[0].messages[0].text

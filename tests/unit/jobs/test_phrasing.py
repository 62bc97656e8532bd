"""Questions in a model's words: opt-in, and never at the cost of what has to be said."""

import pytest

from replan.assembly.jobs import job_processor
from replan.errors import ModelCallError
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.testing import ScriptedModel

pytestmark = pytest.mark.anyio
SPEC = JobSpec(
    "tea",
    slots=[
        Slot("pin", question="Your PIN?", secret=True),
        Slot("kind", question="Which tea?", choices=["green", "black"]),
    ],
    commands=[JobCommand("brew", needs=["pin", "kind"], action="brew_it")],
    actions=[ActionSpec("brew_it", run=lambda pin, kind: f"{kind} tea")],
)

UNDERSTOOD = "Understood: pin: ***.\n"


async def told_with(replies, said):
    """The questions of a job to what is said, and the calls of the model."""
    with ScriptedModel({"phrase": replies}) as model:
        processor = job_processor(SPEC, phrasing_model=model)
        result = await processor.process(processor.new_job())
        told = [result.response_message]
        for each in said:
            result = await processor.process(result.job, [each])
            told.append(result.response_message)
        return told, model.calls


@pytest.mark.parametrize(
    "reply",
    ["Green, I suppose?", "", "green black " * 200, ModelCallError("phrase", "it is gone")],
)
async def test_where_a_model_loses_something_the_words_of_the_spec_are_asked(reply):
    told, _ = await told_with(["Your PIN, please?", reply], ["4711"])
    assert told == ["Your PIN, please?", f"{UNDERSTOOD}Which tea? Choose one of: green, black."]

"""A processor of a spec takes parts in place of the usual ones."""

import pytest

from replan.assembly.jobs import job_processor
from replan.errors import ConfigurationError
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

pytestmark = pytest.mark.anyio
SPEC = JobSpec(
    "tea",
    slots=[Slot("kind", question="Which kind?")],
    commands=[JobCommand("brew", needs=["kind"], action="brew")],
    actions=[ActionSpec("brew", run=dict, effects="keyed")],
)


def test_a_model_beside_an_extractor_is_refused():
    with pytest.raises(ConfigurationError, match="an extractor is given, too"):
        job_processor(SPEC, model="offline", extractor=RuleExtractor())

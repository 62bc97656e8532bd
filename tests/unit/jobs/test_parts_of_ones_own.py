"""A processor of a spec takes parts in place of the usual ones."""

from typing import Any

import pytest

from replan.assembly.jobs import job_processor
from replan.errors import ConfigurationError
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.phases.corrector import PhaseCorrector
from replan.jobs.phases.handlers import handlers_of
from replan.jobs.phases.planning import ItemPlanner
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


async def test_all_parts_of_ones_own_are_used():
    used = set[str]()

    class Reader(RuleExtractor):
        async def extract(self, *given: Any, **named: Any) -> Any:
            used.add("extractor")
            return await super().extract(*given, **named)

    class Planning(ItemPlanner):
        async def plan(self, *given: Any, **named: Any) -> Any:
            used.add("planner")
            return await super().plan(*given, **named)

    class Correcting(PhaseCorrector):
        def corrected(self, *given: Any, **named: Any) -> Any:
            used.add("corrector")
            return super().corrected(*given, **named)

    def handlers(engine: Any) -> Any:
        used.add("handlers")
        return handlers_of(engine)

    processor = job_processor(
        SPEC, extractor=Reader(), planner=Planning(), corrector=Correcting(), handlers=handlers
    )
    asked = await processor.process(processor.new_job())
    done = await processor.process(asked.job, ["green"])
    assert done.is_completed
    assert used == {"extractor", "planner", "corrector", "handlers"}


def test_a_model_beside_an_extractor_is_refused():
    with pytest.raises(ConfigurationError, match="an extractor is given, too"):
        job_processor(SPEC, model="offline", extractor=RuleExtractor())

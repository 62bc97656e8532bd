"""A job of product listings, and what processes it without a model."""

from datetime import UTC, datetime

import pytest

from replan.errors import LimitReachedError, StorageError, UnpricedModelError
from replan.jobs.actions import Outcome
from replan.jobs.extraction.by_rules import RuleExtractor
from replan.jobs.processor import JobProcessor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday


def listing_spec(**changes):
    fields = {
        "slots": [
            Slot("product_center_id", question="Which product?", pattern=r"PC-\d+"),
            Slot("product_listing_id", question="Which listing?", pattern=r"PL-\d+"),
            Slot("title", question="Which title?", depends_on=["product_listing_id"]),
        ],
        "commands": [
            JobCommand("publish", needs=["product_center_id"], action="do", words=["publish"]),
            JobCommand("edit", needs=["product_listing_id", "title"], action="do"),
            JobCommand("activate", needs=["product_listing_id"], action="do"),
            JobCommand("deactivate", needs=["product_listing_id"], action="do"),
        ],
        "actions": [ActionSpec("do", run=print, effects="keyed")],
    }
    return JobSpec("product_listing", **{**fields, **changes})


class Recorder:
    """An executor that plays what it is given, then succeeds."""

    def __init__(self, *outcomes):
        self.outcomes, self.calls = [*outcomes], []

    async def execute(self, call):
        self.calls.append(call)
        return self.outcomes.pop(0) if self.outcomes else Outcome(success=True, result="done")


@pytest.fixture(
    params=[
        LimitReachedError("max_model_calls", 3),
        StorageError("runs.db", "The disk is full.", "Make room."),
        UnpricedModelError("prices", "m"),
    ],
    ids=["limit", "storage", "price"],
)
def end(request):
    """An error that ends the whole work, not only what met it."""
    return request.param


@pytest.fixture
def spec():
    return listing_spec()


@pytest.fixture
def executor():
    return Recorder()


@pytest.fixture
def recorder():
    return Recorder


@pytest.fixture
def make():
    def made(spec, executor=None, extractor=None, **parts):
        ids = iter(range(1_000))
        return JobProcessor(
            spec,
            extractor=extractor or RuleExtractor(),
            executor=executor or Recorder(),
            clock=lambda: NOW,
            new_id=lambda: f"job-{next(ids)}",
            **parts,
        )

    return made


@pytest.fixture
def talk(make):
    """Say one thing after the other to a new job, through JSON between the turns."""

    async def talked(spec, *said, executor=None, job=None, **parts):
        processor = make(spec, executor, **parts)
        result = None
        current = job or processor.new_job()
        for each in said:
            result = await processor.process(current, [each] if each is not None else [])
            current = result.job.to_dict()
        return result

    return talked

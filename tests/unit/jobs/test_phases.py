"""The phase follows from what a job holds; what goes back is reset, and nothing else."""

import pytest

from replan.jobs.job import Job, JobPhase
from replan.jobs.phases.corrector import DEFAULT_RULES, PhaseCorrector, PhaseRule

INTENT, COLLECT, PLAN, EXECUTE, DONE, FAILED = JobPhase


def job(**fields):
    usual = {"command": "edit", "required_info": ("product_listing_id", "title")}
    return Job(id="1", type="product_listing", **{**usual, **fields})


ALL = {"product_listing_id": "PL-1", "title": "New"}


def test_a_correction_and_a_reset_are_logged(caplog):
    caplog.set_level("INFO", "replan.jobs")
    PhaseCorrector().corrected(job(phase=EXECUTE))
    correction, back = caplog.records[-2:]
    said = vars(correction)
    assert (said["from"], said["to"], said["reason"][:11]) == (EXECUTE, COLLECT, "information")
    assert (back.target_phase, back.job_id) == (COLLECT, "1")


def test_rules_are_sorted_once_and_never_change():
    never = PhaseRule(target_phase=DONE, condition=lambda _: True, priority=1, reason="always")
    corrector = PhaseCorrector([never, *DEFAULT_RULES])
    assert [rule.priority for rule in corrector.rules] == [100, 90, 85, 80, 1]
    with pytest.raises(AttributeError):
        never.priority = 200


def test_all_prerequisites_that_are_missing_are_told():
    check = PhaseCorrector().validate_phase_prerequisites
    empty = job(command="")
    assert check(empty, INTENT) == check(empty, DONE) == check(empty, FAILED) == (True, [])
    assert len(check(empty, PLAN)[1]) == len(check(empty, EXECUTE)[1]) == 2
    assert check(job(collected_info=ALL), EXECUTE)[1] == ["the execution plan is missing"]
    assert check(job(collected_info=ALL), PLAN) == (True, [])

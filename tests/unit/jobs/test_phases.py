"""The phase follows from what a job holds; what goes back is reset, and nothing else."""

import pytest

from replan.jobs.job import Job, JobPhase, JobPlan
from replan.jobs.phases.corrector import DEFAULT_RULES, PhaseCorrector, PhaseRule, reset
from replan.jobs.spec.slot import ValidationIssue

INTENT, COLLECT, PLAN, EXECUTE, DONE, FAILED = JobPhase
ISSUE = ValidationIssue(field="product_listing_id", message="it is unknown.", code="unknown")


def job(**fields):
    usual = {"command": "edit", "required_info": ("product_listing_id", "title")}
    return Job(id="1", type="product_listing", **{**usual, **fields})


ALL = {"product_listing_id": "PL-1", "title": "New"}
WHOLE = JobPlan(id="p", command="edit", items=(ALL,))


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (job(command="", phase=COLLECT, collected_info=ALL), INTENT),
        (job(phase=EXECUTE, collected_info={"title": "New"}), COLLECT),
        (job(phase=PLAN, collected_info=ALL, validation_errors=(ISSUE,)), COLLECT),
        (job(phase=COLLECT, collected_info=ALL, validation_errors=(ISSUE,)), COLLECT),
        (job(phase=COLLECT, collected_info=ALL), PLAN),
        (job(phase=EXECUTE, collected_info=ALL, plan=WHOLE.replace(id="")), PLAN),
        (job(phase=EXECUTE, collected_info=ALL, plan=WHOLE), EXECUTE),
        # Every item must be complete, not only the first.
        (job(phase=EXECUTE, plan=WHOLE.replace(items=(ALL, {"title": "x"}))), COLLECT),
        (job(phase=DONE, command=""), DONE),
        (job(phase=FAILED, validation_errors=(ISSUE,)), FAILED),
    ],
)
def test_the_first_rule_that_holds_decides(held, expected):
    corrector = PhaseCorrector(reversed(DEFAULT_RULES))
    phase, is_changed = corrector.correct_phase(held)
    assert (phase, is_changed) == (expected, expected is not held.phase)
    corrected = corrector.corrected(held)
    assert corrector.correct_phase(corrected) == (corrected.phase, False)
    if is_changed:
        assert corrector.get_rollback_reason(held, phase)
        assert corrected.history[0].what == "corrected"


def test_a_correction_and_a_reset_are_logged(caplog):
    caplog.set_level("INFO", "replan.jobs")
    PhaseCorrector().corrected(job(phase=EXECUTE))
    correction, back = caplog.records[-2:]
    said = vars(correction)
    assert (said["from"], said["to"], said["reason"][:11]) == (EXECUTE, COLLECT, "information")
    assert (back.target_phase, back.job_id) == (COLLECT, "1")


@pytest.mark.anyio
async def test_a_rule_may_end_a_job_and_a_phase_without_a_handler_is_told(make, spec):
    ends = PhaseRule(target_phase=DONE, condition=lambda _: True, priority=101, reason="always")
    ended = make(spec, corrector=PhaseCorrector([ends, *DEFAULT_RULES]))
    assert (await ended.process(ended.new_job("edit"), ["hello"])).is_completed
    alone = make(spec, handlers=lambda engine: ())
    told = await alone.process(alone.new_job("edit"), ["hello"])
    assert (told.job.error_code, told.job.error) == (
        "broken",
        "Nothing handles the phase INFORMATION_COLLECTION.",
    )


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


def test_a_reset_takes_what_is_stale_and_keeps_the_rest():
    held = job(collected_info=ALL, plan=WHOLE, validation_errors=(ISSUE,), missing_info=("title",))
    back = reset(held, COLLECT)
    assert (back.command, back.plan, back.validation_errors) == ("edit", None, ())
    assert (back.collected_info, back.remarks) == ({"title": "New"}, (ISSUE,))
    assert back.missing_info == ("product_listing_id",)
    replan = reset(held, PLAN)
    assert (replan.plan.id, replan.collected_info) == ("", ALL)
    empty = reset(held, INTENT)
    assert (empty.command, empty.collected_info, empty.plan) == ("", {}, None)
    assert (empty.required_info, empty.missing_info) == ((), ())

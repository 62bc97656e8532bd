"""Turns of jobs: what is asked, what is corrected, what is done, and where it ends."""

from pathlib import Path

from cases import cases_of
from golden import check_golden
from replan.jobs.actions import Outcome
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobSpec

CASES = cases_of(__file__)


def fits(value, others):
    return f"there is no {others['a']}-{value}." if value == others["a"] else None


def spec_named(name):
    fields = dict(CASES["specs"][name])
    actions = [ActionSpec("do", run=print, effects=fields.pop("effects", "unsafe"))]
    # A file names its checks; these are those of a test.
    slots = [
        {**slot, "check": fits} if slot["name"] == "b" else slot for slot in fields.pop("slots")
    ]
    return JobSpec(**fields, slots=slots, actions=actions)


def told(said, result, calls):
    job = result.job
    yield f"> {said or ''}"
    yield from (f"  {line}" for line in result.response_message.splitlines())
    stands = {
        "asks": ", ".join(job.asked.names) if result.need_user_input else "",
        "has": dict(job.collected_info),
        "lacks": ", ".join(job.missing_info),
        "remarks": [issue.code for issue in job.validation_errors],
        "corrections": job.corrections,
        "turns": job.turns,
        "error": job.error_code,
        "results": [each.result for each in job.intermediate_results if each.success],
    }
    yield f"  = {job.id} {job.phase.value} {job.status}, {job.command or 'no command'}"
    yield from (f"    {name}: {each}" for name, each in stands.items() if each)
    for call in calls:
        yield f"  ! {call.parameters} {call.effects} {call.key[:8]}"


async def talk_of(make, recorder, *, spec, said, outcomes=(), job=None, language=None):
    """Say one thing after the other to a job, through JSON between the turns."""
    executor = recorder(*(Outcome(**each) for each in outcomes))
    processor = make(spec_named(spec), executor)
    current = processor.new_job(language=language) if language else processor.new_job()
    current = {**current.to_dict(), **(job or {})}
    lines = []
    for each in said:
        before = len(executor.calls)
        result = await processor.process(current, [] if each is None else [each])
        lines += told(each, result, executor.calls[before:])
        current = result.job.to_dict()
    return "\n".join(lines)


async def test_jobs_answer_and_do_what_their_golden_file_has(make, recorder):
    talks = CASES["conversations"].items()
    shown = {name: await talk_of(make, recorder, **talk) for name, talk in talks}
    check_golden(Path(__file__).parent / "golden" / "conversations.txt", shown)

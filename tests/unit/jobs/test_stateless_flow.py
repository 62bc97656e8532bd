"""The job in the metadata of a client, and jobs that are kept by their ids."""

import json

import pytest
from langgraph.errors import GraphBubbleUp

from replan.errors import InputError, JobError, LimitReachedError, StorageError
from replan.jobs.flow import run_flow
from replan.jobs.job import JobPhase
from replan.jobs.job_book import JobManager

pytestmark = pytest.mark.anyio


async def test_a_job_travels_in_the_metadata_and_nothing_is_kept(spec, executor, make):
    metadata = None
    for said in ("edit something", "PL-1", "A title"):
        output = await run_flow(make(spec, executor), metadata, [{"role": "user", "content": said}])
        metadata = json.loads(json.dumps(output.metadata.to_dict()))
    assert output.message.role == "assistant"
    assert metadata["command"] == "edit"
    assert metadata["plan"]["items"] == [{"product_listing_id": "PL-1", "title": "A title"}]
    assert metadata["context"]["job"]["status"] == "completed"
    assert set(metadata["context"]) == {"job"}
    assert len(executor.calls) == 1


@pytest.mark.parametrize(
    "error",
    [
        LimitReachedError("max_model_calls", 3),
        StorageError("runs.db", "The disk is full.", "Make room."),
        InputError("The request is empty."),
        GraphBubbleUp(),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_what_ends_the_whole_work_is_no_failure_of_the_job(spec, make, error):
    class Ended:
        async def extract(self, wanted):
            raise error

    jobs = JobManager(make(spec))
    before = await jobs.create_job("", "edit PL-1")
    by_id = {"context": {"job_id": before.id}}
    with pytest.raises(type(error)) as raised:
        await run_flow(make(spec, extractor=Ended()), by_id, ["title: x"], jobs)
    assert raised.value is error
    assert await jobs.get_job(before.id) == before


async def test_a_kept_job_of_another_spec_is_refused_and_stays_as_it_was(spec, make):
    jobs = JobManager(make(spec))
    before = await jobs.create_job("", "edit PL-1")
    other = make(spec.replace(name="another"))
    with pytest.raises(JobError, match="type"):
        await run_flow(other, {"context": {"job_id": before.id}}, ["title: x"], jobs)
    assert await jobs.get_job(before.id) == before


async def test_a_manager_keeps_jobs_by_their_ids(spec, make):
    processor = make(spec)
    jobs = JobManager(processor)
    job = await jobs.create_job("", "edit PL-1")
    assert await jobs.get_job(job.id) == job
    assert [issue.field for issue in jobs.validate_job_info(job)] == ["title"]
    with pytest.raises(JobError, match="missing"):
        await jobs.transition_phase(job.id, JobPhase.EXECUTION)
    moved = await jobs.transition_phase(job.id, JobPhase.INTENT_RECOGNITION)
    assert moved.phase is JobPhase.INTENT_RECOGNITION
    output = await run_flow(processor, {"context": {"job_id": job.id}}, ["title: x"], jobs)
    assert output.metadata.context.job_id == job.id
    assert (await jobs.get_job(job.id)).status == "completed"
    with pytest.raises(JobError, match="no such job"):
        await run_flow(processor, {"context": {"job_id": "none"}}, ["x"], jobs)


async def test_a_client_of_a_manager_learns_the_id_and_an_id_that_nobody_knows_is_refused(
    spec, make
):
    class Broken:
        async def extract(self, wanted):
            raise RuntimeError("no reply")

    jobs = JobManager(make(spec))
    first = await run_flow(make(spec), None, ["edit PL-1"], jobs)
    by_id = {"context": {"job_id": first.metadata.context.job_id}}
    failed = await run_flow(make(spec, extractor=Broken()), by_id, ["hm"], jobs)
    assert (failed.metadata.context.job["id"], failed.error) != ("", "")
    assert (await jobs.get_job(by_id["context"]["job_id"])).status == "failed"
    done = await run_flow(make(spec), by_id, ["title: x"], jobs)
    assert done.metadata.context.job["status"] == "completed"
    with pytest.raises(JobError, match="no jobs are kept here"):
        await run_flow(make(spec), by_id, ["title: x"])

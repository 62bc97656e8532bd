"""Actions: parameters, functions, data, APIs, and the record of what was done."""

import asyncio
import json
import re
import socket
import threading
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from cases import cases_of
from golden import check_golden
from http_answers import Answering, serving
from replan.assembly.jobs import job_processor
from replan.errors import JobSpecError
from replan.jobs.action_executor import ActionExecutor
from replan.jobs.job_api import ApiExecutor
from replan.jobs.recorded import RecordedExecutor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.log.transcript import Transcript
from replan.storage.memory_log import memory_log

pytestmark = pytest.mark.anyio
CASES = cases_of(__file__)


class Api(Answering):
    """An API that plays answers and keeps what it was asked."""

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        status, headers, content = self.server.answers.pop(0)
        if status is None:
            self.server.released.wait(10)
        else:
            self.give(status, content, **headers)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer  # noqa: N815 - the names of the base class


@pytest.fixture(scope="module")
def server():
    one = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    one.answers, one.asked, one.released = [], [], threading.Event()
    with serving(one) as url:
        one.url = f"{url}/v1"
        yield one
        one.released.set()


def api_spec(url, effects=None, timeout=5.0, **parameters):
    usual = {"endpoint": "/listings/{id}", "method": "POST", "params": {"title": "{title}"}}
    return JobSpec(
        "listing",
        slots=[Slot("id", question="Which?"), Slot("title", question="Title?", secret=True)],
        commands=[
            JobCommand(
                "rename",
                needs=["id", "title"],
                action="call_api",
                effects=effects,
                confirm=None if effects else False,
                parameters={**usual, **parameters},
            )
        ],
        base_urls=[url],
        api_key_env="LISTING_KEY",
        api_timeout=timeout,
    )


def api():
    return ActionExecutor(ApiExecutor({"LISTING_KEY": "very-secret-value"}))


async def rename(make, spec, values=None, executor=None, job=None):
    processor = make(spec, executor or api())
    values = values or {"id": "a/b c", "title": "Red {id}"}
    result = await processor.process(job or processor.new_job(values=values, job_id="j"))
    if result.job.asked.names == ("confirmation",):
        result = await processor.process(result.job, ["yes"])
    return result


async def called(
    make, server, *, answers=(), said=(), values=None, parameters=None, refusals=None, **how
):
    """What an API was asked, and what became of the job."""
    server.asked.clear()
    server.answers[:] = [
        (status, {"Location": place[0]} if place else {}, body.encode())
        for status, body, *place in answers
    ]
    spec = api_spec(**{"url": server.url, **how, **(parameters or {})})
    spec = spec.replace(commands=[spec.commands[0].replace(refusals=refusals or {})])
    result = await rename(make, spec, values)
    for each in said:
        result = await make(spec, api()).process(result.job.to_dict(), [each])
    yield from_asked(server)
    yield f"{result.job.status} {result.job.error_code}".rstrip()
    yield result.response_message
    for each in result.job.intermediate_results:
        doubt = " (in doubt)" if each.in_doubt else ""
        yield f"{each.step}: {each.result if each.success else each.error_msg}{doubt}"


def from_asked(server):
    return "\n".join(f"{method} {path} {body}" for method, path, _, body in server.asked)


async def test_an_api_is_asked_and_its_answers_are_taken_as_the_golden_file_has_them(server, make):
    shown = {}
    for name, case in CASES["api_calls"].items():
        told = "\n".join([each async for each in called(make, server, **case)])
        shown[name] = re.sub(r"(cannot be reached): [^;]*", r"\1", told.replace(server.url, "URL"))
    check_golden(Path(__file__).parent / "golden" / "api_calls.txt", shown)


async def test_whoever_gives_nothing_but_wrong_values_is_left_in_the_end(server, make):
    usual = api_spec(server.url)
    spec = usual.replace(commands=[usual.commands[0].replace(refusals={404: "id"})])
    server.answers[:] = [(404, {}, b"there is none")] * 10
    result = await rename(make, spec, {"id": "0", "title": "x"})
    while not result.job.is_over:
        result = await make(spec, api()).process(result.job, [f"{result.job.turns}"])
        assert result.job.turns <= spec.max_turns
    assert result.job.error_code == "corrections"
    with pytest.raises(JobSpecError, match="no slot 'ids'"):
        usual.replace(commands=[usual.commands[0].replace(refusals={404: "ids"})])


async def test_what_is_on_record_is_not_done_again_and_what_is_in_doubt_is_told(server, make):
    log = memory_log()

    def recorded():
        return RecordedExecutor(api(), Transcript(log, "run", "key", "fail"))

    server.asked.clear()
    server.answers[:] = [(200, {}, b"1")]
    first = await rename(make, api_spec(server.url), executor=recorded())
    # Killed before its caller had the job: it is done once more from its beginning.
    again = await rename(make, api_spec(server.url), executor=recorded())
    assert first.job.intermediate_results[0].result == again.job.intermediate_results[0].result == 1
    assert len(server.asked) == 1
    notes = json.dumps(await log.notes("run", ""))
    assert "Red {id}" not in notes

    class Cut:
        async def execute(self, call):
            raise asyncio.CancelledError

    unsafe = api_spec(server.url, effects="unsafe")
    values = {"id": "2", "title": "x"}
    cut = RecordedExecutor(Cut(), Transcript(log, "run", "key", "fail"))
    with pytest.raises(asyncio.CancelledError):
        await rename(make, unsafe, values, executor=cut)
    doubt = await rename(make, unsafe, values, executor=recorded())
    assert "was cut off in attempt 1" in doubt.job.error
    assert len(server.asked) == 1


async def test_a_connection_that_never_opens_in_time_did_nothing(make):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.settimeout(0)
            each.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        # Of it, a tenth is left once the connection is given up.
        spec = api_spec(url, effects="unsafe", timeout=3.0)
        job = (await rename(make, spec, {"id": "1", "title": "x"})).job
        for each in waiting:
            each.close()
    assert "cannot be reached: ConnectTimeout" in job.error
    assert job.error.endswith("; POST /listings/{id} did nothing.")


async def test_a_refused_call_is_on_record_and_has_not_acted(server, make):
    unsafe, log = api_spec(server.url, effects="unsafe"), memory_log()
    server.asked.clear()
    server.answers[:] = [(409, {}, b"taken")]
    for _ in range(2):
        record = Transcript(log, "run", "key", "fail")
        job = (await rename(make, unsafe, executor=RecordedExecutor(api(), record))).job
        assert "409: taken" in job.error
        assert not record.has_acted
    assert len(server.asked) == 1


CHECKED = {"data": "{data}", "schema": "book"}


async def test_data_is_checked_and_found_by_the_slots_of_the_job_itself():
    spec = JobSpec(
        "desk",
        slots=[
            Slot("data", type="object", question="Which data?"),
            Slot("text", question="Which text?"),
            Slot("day", type="date", question="When?"),
            Slot("seats", type="integer", maximum=9, question="How many seats?"),
        ],
        commands=[
            JobCommand("book", needs=["day", "seats"], action="act"),
            JobCommand("judge", needs=["data"], action="validate_data", parameters=CHECKED),
            JobCommand(
                "search",
                needs=["text"],
                action="extract_info",
                parameters={"messages": ["{text}"], "target_fields": ["day", "seats", "text"]},
            ),
        ],
        actions=[ActionSpec("act", run=print)],
    )
    processor = job_processor(spec, clock=lambda: datetime(2026, 3, 2, tzinfo=UTC))

    async def result_of(command, **values):
        result = await processor.process(processor.new_job(command, values))
        assert result.is_completed, result.response_message
        return result.job.intermediate_results[-1].result

    assert await result_of("judge", data={"day": "2026-03-03", "seats": 2, "more": 1}) == {
        "valid": True,
        "errors": [],
        "missing": [],
    }
    told = await result_of("judge", data={"seats": 12})
    assert (told["valid"], told["missing"]) == (False, ["day", "seats"])
    assert [(each["field"], each["code"]) for each in told["errors"]] == [("seats", "too_large")]
    found = await result_of("search", text="day: tomorrow, seats: 3")
    assert {name: str(value) for name, value in found.items()} == {
        "day": "2026-03-03",
        "seats": "3",
    }

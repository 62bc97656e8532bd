"""A job as a whole agent: the job is in the session, so that anybody can take the next turn."""

import json
import re
from datetime import UTC, datetime

import pytest

from replan import Specialist, Team, open_storage
from replan.assembly.jobs import job_agent, job_processor
from replan.errors import UsageError
from replan.jobs.phases.planning import with_plan
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.sessions import ClientAgentAdapter, build_agent
from replan.state.session.context import AgentContext, AgentResult
from replan.testing import ScriptedModel
from replan.testing.users import (
    COOPERATIVE,
    KINDS,
    SimulatedUser,
    converse_with_agent,
)

pytestmark = pytest.mark.anyio
KEY = "a key of 32 bytes, kept secretly."
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)

PIN = re.compile(r"(?<!\w)4711(?!\w)")  # and not a part of an id


def spec_of(done):
    return JobSpec(
        "visit",
        slots=[
            Slot("day", type="date", question="When?"),
            Slot("pin", question="Which PIN?", secret=True),
        ],
        commands=[JobCommand("visit", needs=["day", "pin"], action="go")],
        actions=[ActionSpec("go", run=lambda day, pin: done.append((day, pin)))],
    )


class Guide:
    """An agent for what is asked beside the job."""

    async def process(self, user_input, context, **options):
        return AgentResult(success=True, response=f"About {user_input}: nice.")


async def test_each_turn_is_taken_by_another_agent():
    done, session = [], {"session_id": "s"}
    for said in ("hello", "what about the food?", "tomorrow", "4711", "yes"):
        agent = job_agent(spec_of(done), others=Guide(), context_key=KEY, clock=lambda: NOW)
        result = await agent.process(said, session)
        assert result.success
        assert not PIN.search(json.dumps([result.context_updates, result.metadata]))
        context = AgentContext.from_dict(session).apply(result.context_updates)
        session = json.loads(json.dumps(context.to_dict()))
        if said.startswith("what"):
            assert result.response.startswith("About what about the food?: nice.\n\n")
            assert result.response.endswith("I also need: pin.")
        if said == "4711":
            assert result.metadata["outcome"] == "waiting"
            assert result.metadata["job"]["collected"]["pin"] == "***"
            assert session["current_stage"] == "question"
    assert done == [("2026-03-03", "4711")]
    assert (result.metadata["outcome"], session["current_stage"]) == ("completed", "done")
    assert session["project_state"]["job"]["status"] == "completed"
    new = await agent.process("again", session)
    assert (
        new.context_updates["project_state"]["job"]["set"]["id"]
        != (session["project_state"]["job"]["id"])
    )


async def test_secret_values_are_sealed_for_their_session_and_key_and_nothing_is_lost_in_silence():
    done = []

    def echo(day, pin):
        done.append(pin)
        return f"Seen: {pin}"

    spec = JobSpec(
        "visit",
        slots=spec_of([]).slots,
        commands=[JobCommand("visit", needs=["day", "pin"], action="go")],
        actions=[ActionSpec("go", run=echo)],
    )

    def agent(key=KEY):
        return job_agent(spec, context_key=key, clock=lambda: NOW)

    start = AgentContext(session_id="s")
    asked = start.apply((await agent().process("tomorrow, pin: 4711", start)).context_updates)
    written = asked.project_state["job"]
    assert written["collected_info"] == {"day": "2026-03-03", "pin": "***"}
    assert not PIN.search(json.dumps(asked.to_dict()))
    assert agent().view(asked)["collected"]["pin"] == "***"
    end = await agent().process("yes", asked)
    assert end.response.endswith("Seen: 4711")
    over = asked.apply(end.context_updates)
    assert not PIN.search(json.dumps(over.to_dict()))

    def changed(job, **sealed):
        return asked.replace(project_state={**asked.project_state, "job": job, **sealed})

    others = (
        (agent("another key of 16 bytes"), asked),
        (job_agent(spec, clock=lambda: NOW), asked),
        (agent(), asked.replace(session_id="t")),
        (agent(), changed({**written, "id": "another"})),
        (agent(), changed(written, job_secrets="?")),
    )
    for other, context in others:
        refused = await other.process("yes", context)
        assert not refused.success
        assert "project_state.job_secrets" in refused.error
        assert "context_key" in refused.error
        assert refused.context_updates == {}
    for pin in ("***", "12"):
        plain = {**written, "collected_info": {"day": "2026-03-03", "pin": pin}}
        result = await agent().process("yes", asked.replace(project_state={"job": plain}))
        assert (result.success, "project_state.job_secrets" in result.error) == (False, True)
    assert done == ["4711"]
    with pytest.raises(UsageError, match="short"):
        agent("short")


async def test_a_session_that_is_kept_shows_no_secret_and_no_wrong_one():
    slots = [*spec_of([]).slots[:1], Slot("pin", question="Which?", secret=True, pattern=r"\d{4}")]
    agent = job_agent(spec_of([]).replace(slots=slots), context_key=KEY, clock=lambda: NOW)
    async with open_storage(":memory:") as storage:
        client = ClientAgentAdapter(storage, agent)
        for said in ("pin: 4711", "tomorrow", "pin: 48x2", "pin: 4812"):
            assert (await client.process("s", said)).success
        (listed,) = await client.sessions()
        assert listed.title == "pin: ***"
        kept = json.dumps((await client.export("s")).to_dict())
    assert not [each for each in ("4711", "48x2", "4812") if each in kept]


async def test_answers_by_name_and_what_is_wrong():
    agent = job_agent(spec_of([]), clock=lambda: NOW)
    given = await agent.process({"day": "2026-04-01", "pin": 12}, {"session_id": "s"})
    assert given.response.startswith("Please confirm")
    shown = await agent.process(None, {"session_id": "s"})
    assert shown.metadata["questions"][0]["text"].startswith("When?")
    for job in (3, {"id": "1"}, {"id": "1", "type": "other"}):
        bad = await agent.process("x", {"session_id": "s", "project_state": {"job": job}})
        assert not bad.success
        assert bad.error
    assert not (await agent.process("", {"session_id": "s"})).success
    async for each in agent.stream("x", {"session_id": "s"}):
        assert isinstance(each, AgentResult)


async def test_a_session_goes_between_the_agent_of_a_job_and_a_team_of_it():
    done, context = [], AgentContext(session_id="s")
    alone = job_agent(spec_of(done), context_key=KEY, clock=lambda: NOW)
    team = build_agent(
        Team([Specialist("visit", "Visits.", job=spec_of(done))]),
        context_key=KEY,
        clock=lambda: NOW,
    )
    for agent, said in ((alone, "tomorrow"), (team, "pin: 4711")):
        result = await agent.process(said, context)
        context = context.apply(result.context_updates)
    assert result.response.startswith("Please confirm")
    # The job waits in a run, which an agent that makes no runs would not see.
    refused = await alone.process("yes", context)
    assert (refused.success, refused.context_updates, done) == (False, {}, [])
    assert "build_agent" in refused.error
    context = context.apply((await team.process("yes", context)).context_updates)
    assert done == [("2026-03-03", "4711")]
    assert (await alone.process("thanks", context)).success
    new = await alone.process("tomorrow", context, new_request=True)
    assert new.metadata["outcome"] == "waiting"


async def test_a_job_file_is_enough(tmp_path):
    path = tmp_path / "tea.yaml"
    make = "{name: make, needs: [kind], action: ask_user, parameters: {question: 'Hot?'}}"
    slots = "[{name: kind, question: Which?}]"
    path.write_text(f"name: tea\nslots: {slots}\ncommands: [{make}]\n")
    with ScriptedModel({"extract": ["kind: green"]}) as model:
        processor = job_processor(path, model=model)
        result = await processor.process(processor.new_job(), ["I would like some of the green"])
    assert result.job.collected_info == {"kind": "green"}
    with pytest.raises(UsageError, match="no such file"):
        job_agent(tmp_path / "none.yaml")
    with pytest.raises(UsageError):
        job_processor(path, model="no-such-model")


async def test_each_kind_of_user_talks_with_the_agent_until_the_job_is_over():
    ends = {}
    for seed, kind in enumerate((*KINDS, *["hostile"] * 10)):
        done = []
        spec = spec_of(done)
        user = SimulatedUser(kind, spec, "visit", {"day": "2026-05-01", "pin": "12"}, "en", seed)
        context = await converse_with_agent(job_agent(spec, clock=lambda: NOW), user)
        job = context.project_state["job"]
        ends[kind] = job.get("error_code", "done")
        assert len(done) == (ends[kind] == "done")
    assert all(ends[kind] == "done" for kind in COOPERATIVE)
    assert ends["silent"] == ends["looping"] == "no_progress"


def counting_spec():
    done = []

    def note(day):
        done.append(day)
        return "noted"

    command = JobCommand("visit", needs=["day"], action="go")
    slots = [each for each in spec_of([]).slots if each.name == "day"]
    actions = [ActionSpec("go", run=note)]
    return JobSpec("visit", slots=slots, commands=[command], actions=actions), done


def forged(context, **fields):
    job = {**context.project_state["job"], **fields}
    return context.replace(project_state={**context.project_state, "job": job})


async def test_the_plan_of_a_job_that_nobody_signed_is_made_and_confirmed_anew():
    spec, done = counting_spec()

    def agent():
        return job_agent(spec, clock=lambda: NOW)

    start = AgentContext(session_id="s")
    asked = start.apply((await agent().process("tomorrow", start)).context_updates)
    plan = asked.project_state["job"]["plan"]
    job = (await agent().processor.process(asked.project_state["job"])).job
    many = with_plan(spec, job, tuple(plan["items"]) * 50).plan
    known = forged(asked, plan=many.model_dump(mode="json"), confirmed=many.id)
    again = await agent().process(None, known)
    assert (done, again.metadata["outcome"]) == ([], "waiting")
    yes = await agent().process("yes", known)
    assert (done, yes.metadata["outcome"]) == (["2026-03-03"], "completed")


@pytest.mark.parametrize(
    "fields",
    [
        {"corrections": 0, "turns": 0, "asked": {"count": -9}},
        {"confirmed": "x"},
        {"plan": None},
        {"collected_info": {"day": "2026-03-04"}},
    ],
)
async def test_a_job_is_signed_for_its_session_where_there_is_a_key(fields):
    spec, done = counting_spec()
    agent = job_agent(spec, context_key=KEY, clock=lambda: NOW)
    start = AgentContext(session_id="s")
    asked = start.apply((await agent.process("tomorrow", start)).context_updates)
    unsigned = dict(asked.project_state)
    del unsigned["job_signature"]
    for context in (
        forged(asked, **fields),
        asked.replace(session_id="t"),
        asked.replace(project_state=unsigned),
    ):
        refused = await agent.process("yes", context)
        assert (refused.success, refused.context_updates) == (False, {})
        assert "project_state.job_signature" in refused.error
    stored = AgentContext.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert (await agent.process("yes", stored)).metadata["outcome"] == "completed"
    assert done == ["2026-03-03"]

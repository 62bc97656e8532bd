"""A job as a whole agent: its run or it is in the session, so anybody can take the next turn."""

import json
import re
from datetime import UTC, datetime

import pytest

from carried import opened_run
from replan.assembly.jobs import job_agent, job_processor
from replan.errors import UsageError
from replan.jobs.job import JobPhase
from replan.jobs.phases.planning import with_plan
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.state.session.context import AgentContext
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


async def test_each_turn_is_taken_by_another_agent():
    done, session = [], {"session_id": "s"}
    for said in ("hello", "what about the food?", "tomorrow", "4711", "yes"):
        agent = job_agent(spec_of(done), context_key=KEY, clock=lambda: NOW)
        result = await agent.process(said, session)
        assert result.success
        assert not PIN.search(json.dumps([result.context_updates, result.metadata]))
        context = AgentContext.from_dict(session).apply(result.context_updates)
        session = json.loads(json.dumps(context.to_dict()))
        if said.startswith("what"):
            assert result.response.endswith("When?\nI also need: pin.")
        job = session["project_state"]["job"]
        if said != "yes":
            has = {"day": "2026-03-03"} if said in ("tomorrow", "4711") else {}
            has |= {"pin": "***"} if said == "4711" else {}
            assert (job["status"], job["collected_info"]) == ("in_progress", has)
        if said == "4711":
            assert result.metadata["outcome"] == "waiting"
            (asked,) = result.metadata["questions"]
            assert asked["details"]["collected"]["pin"] == "***"
            assert session["current_stage"] == "question"
    assert done == [("2026-03-03", "4711")]
    assert (result.metadata["outcome"], session["current_stage"]) == ("completed", "done")
    assert session["project_state"]["job"]["status"] == "completed"
    new = await agent.process("again", session)
    (asked,) = new.metadata["questions"]
    assert asked["details"]["id"] != session["project_state"]["job"]["id"]


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

    context = AgentContext(session_id="s")
    for said in ("tomorrow, pin: 4711", "yes"):
        result = await agent().process(said, context)
        context = context.apply(result.context_updates)
        assert not PIN.search(json.dumps([context.to_dict(), result.metadata]))
    assert result.response.endswith("Seen: ***")
    written = context.project_state["job"]
    assert written["collected_info"] == {"day": "2026-03-03", "pin": "***"}

    def changed(job, **sealed):
        return context.replace(project_state={**context.project_state, "job": job, **sealed})

    others = (
        (agent("another key of 16 bytes"), context),
        (job_agent(spec, clock=lambda: NOW), context),
        (agent(), context.replace(session_id="t")),
        (agent(), changed({**written, "id": "another"})),
        (agent(), changed(written, job_secrets="?")),
        (agent(), context.replace(project_state={"job": written})),
    )
    for other, known in others:
        refused = await other.process("again", known)
        assert not refused.success
        assert "project_state.job_secrets" in refused.error
        assert "context_key" in refused.error
        assert refused.context_updates == {}
    assert done == ["4711"]
    with pytest.raises(UsageError, match="short"):
        agent("short")


async def test_what_is_no_job_is_refused():
    agent = job_agent(counting_spec()[0], clock=lambda: NOW)
    for job in (3, {"id": "1"}, {"id": "1", "type": "other"}):
        bad = await agent.process("x", {"session_id": "s", "project_state": {"job": job}})
        assert (bad.success, bool(bad.error)) == (False, True)
    assert not (await agent.process("", {"session_id": "s"})).success


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
    for seed, kind in enumerate((*KINDS, "hostile")):
        done = []
        spec = spec_of(done)
        user = SimulatedUser(kind, spec, "visit", {"day": "2026-05-01", "pin": "12"}, "en", seed)
        context = await converse_with_agent(job_agent(spec, clock=lambda: NOW), user)
        job = context.project_state["job"]
        is_over = job["status"] in ("completed", "failed")
        ends[kind] = job.get("error_code", "done") if is_over else "waits"
        assert len(done) == (ends[kind] == "done")
    assert all(ends[kind] == "done" for kind in COOPERATIVE)
    assert (ends["silent"], ends["looping"]) == ("waits", "no_progress")


def counting_spec():
    done = []

    def note(day):
        done.append(day)
        return "noted"

    command = JobCommand("visit", needs=["day"], action="go")
    slots = [each for each in spec_of([]).slots if each.name == "day"]
    actions = [ActionSpec("go", run=note)]
    return JobSpec("visit", slots=slots, commands=[command], actions=actions), done


async def waiting_for_yes(agent):
    start = AgentContext(session_id="s")
    return start.apply((await agent.process("tomorrow", start)).context_updates)


async def test_the_plan_of_a_job_that_nobody_signed_is_made_and_confirmed_anew():
    spec, done = counting_spec()
    agent = job_agent(spec, clock=lambda: NOW)
    data = (await waiting_for_yes(agent)).to_dict()
    processor = job_processor(spec, clock=lambda: NOW)
    with opened_run(data) as run:
        note = next(note for _, note in run["rows"]["notes"] if "job" in note)
        job = processor.read(note["job"])
        many = with_plan(spec, job, job.plan.items * 50)
        note["job"] = many.replace(confirmed=many.plan.id).to_dict()
    del data["project_state"]["job"]
    again = await agent.process("what?", data)
    assert (done, again.metadata["outcome"]) == ([], "waiting")
    yes = await agent.process("yes", data)
    assert (done, yes.metadata["outcome"]) == (["2026-03-03"], "completed")


async def test_the_copy_of_a_waiting_job_says_where_it_is_and_is_never_changed_in_silence():
    spec, done = counting_spec()
    agents = (
        job_agent(spec, clock=lambda: NOW),
        job_agent(spec, context_key=KEY, clock=lambda: NOW),
    )
    for agent in agents:
        asked = await waiting_for_yes(agent)
        state = asked.project_state
        job = job_processor(spec).read(state["job"])
        assert (job.phase, job.plan.items) == (JobPhase.EXECUTION, ({"day": "2026-03-03"},))
        changed = {**state["job"], "collected_info": {"day": "2026-03-04"}}
        forged = asked.replace(project_state={**state, "job": changed})
        refused = await agent.process("yes", forged)
        assert (refused.success, refused.context_updates, done) == (False, {}, [])
        assert "project_state.job" in refused.error
        assert "new_request" in refused.error
        anew = await agent.process("on 2026-03-05", forged, new_request=True)
        assert anew.metadata["questions"][0]["details"]["collected"] == {"day": "2026-03-05"}
        # Whoever leaves the copy out has it again after the next turn.
        bare = asked.replace(project_state={"run": state["run"]})
        again = bare.apply((await agent.process("what?", bare)).context_updates)
        assert again.project_state["job"]["collected_info"] == {"day": "2026-03-03"}
    assert done == []


async def test_a_context_stays_small_through_twenty_turns_of_a_job():
    names = [f"field_{number}" for number in range(25)]
    slots = [Slot(name, question=f"What is {name}?") for name in names]
    command = JobCommand("visit", needs=names, action="go")
    spec = JobSpec("visit", slots=slots, commands=[command], actions=[ActionSpec("go", run=dict)])
    agent, context = job_agent(spec, clock=lambda: NOW), AgentContext(session_id="s")
    for number in range(20):
        turn = await agent.process(f"value number {number} of this" if number else "hello", context)
        context = context.apply(turn.context_updates)
    state = json.loads(json.dumps(context.to_dict()))["project_state"]
    assert len(state["job"]["collected_info"]) == 19
    # What people said and were told grows by itself; the run and the job take no more than it.
    assert len(json.dumps(state)) < len(json.dumps(context.to_dict()["dialogue_history"]))
    assert len(json.dumps(state)) < 6_500


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
    asked = await waiting_for_yes(agent)
    forged = asked.to_dict()
    with opened_run(forged) as run:
        next(note for _, note in run["rows"]["notes"] if "job" in note)["job"] |= fields
    for context in (forged, asked.replace(session_id="t")):
        refused = await agent.process("yes", context)
        assert (refused.success, refused.context_updates) == (False, {})
        assert "project_state.run.signature" in refused.error
    over = asked.apply((await agent.process("yes", asked.to_dict())).context_updates)
    assert done == ["2026-03-03"]
    kept = over.project_state
    for state in ({**kept, "job": {**kept["job"], **fields}}, {"job": kept["job"]}):
        refused = await agent.process("again", over.replace(project_state=state))
        assert (refused.success, refused.context_updates) == (False, {})
        assert "project_state.job_signature" in refused.error
    stored = AgentContext.from_dict(json.loads(json.dumps(over.to_dict())))
    assert (await agent.process("again", stored)).metadata["outcome"] == "waiting"

"""A job as a specialist of a plan: its questions wait like any, and nothing is done twice."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command as Resume

from replan import (
    Host,
    Specialist,
    Team,
    build_graph,
    open_runtime,
    open_storage,
    run,
    stream,
    waiting_for,
)
from replan.assembly.graphs import viewer
from replan.cli.shared.worst_case import team_of
from replan.errors import TeamError
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.runs.reports import read_report
from replan.sessions import AgentContext, build_agent
from replan.team.team_file import read_team_file
from replan.testing import ScriptedModel
from replan.testing.users import SimulatedUser, converse_with_run
from replan.views.run.history import history_lines
from replan.views.run.run_record import run_record
from scripts import THREAD, given

COMPLETE = "---\nverdict: complete\n---\nBooked."
PLAN = """\
- [ ] 1. Book the journey @booker
- [ ] 2. Tell about it @teller (after 1)
"""
TEA = """\
name: tea
slots: [{name: kind, question: Which?}]
commands:
- {name: make, needs: [kind], action: ask_user, parameters: {question: "With {kind}?"}}
"""


def spec_of(done, effects="unsafe"):
    def book(origin, target, pin):
        done.append((origin, target, pin))
        return f"booked {origin} to {target}"

    return JobSpec(
        "travel",
        slots=[
            Slot("origin", question="Where from?"),
            Slot("target", question="Where to?", depends_on=["origin"]),
            Slot("pin", question="Which PIN?", secret=True),
        ],
        commands=[JobCommand("book", needs=["origin", "target", "pin"], action="book_it")],
        actions=[ActionSpec("book_it", run=book, effects=effects)],
    )


def graph_of(spec, model, extraction_model=None):
    team = [
        Specialist("booker", "Books.", job=spec, extraction_model=extraction_model),
        Specialist("teller", "Tells.", run=lambda context: f"heard: {context.inputs[1]}"),
    ]
    config = Team(host=Host(model=model), specialists=team)
    return build_graph(config, checkpointer=InMemorySaver())


async def answered(graph, state, answers):
    asked = []
    for answer in answers:
        [question] = waiting_for(state)
        asked.append(question)
        given = {question.key: answer}
        state = (await run(graph, Resume(resume=given), config=THREAD)).state
    return state, asked


async def test_a_job_asks_what_it_needs_and_acts_once():
    done = []
    said = "I would say we are going to the north of Oslo"
    extracted = ["---\n---", "target: Oslo\nphase: COMPLETED"]
    with ScriptedModel({"feedback": COMPLETE, "extract": extracted}) as model:
        graph = graph_of(spec_of(done), model, model)
        plan = {"messages": [("user", "Go.")], "plan": PLAN}
        state = (await run(graph, plan, config=THREAD)).state
        state, asked = await answered(graph, state, ["Rome", said, "4711", "yes"])
    assert state["outcome"] == "completed"
    assert done == [("Rome", "Oslo", "4711")]
    assert [each.text.split("\n")[:2] for each in asked] == [
        ["Where from?", "I also need: target, pin."],
        ["Understood: origin: Rome.", "Where to?"],
        ["Understood: target: Oslo.", "Which PIN?"],
        ["Please confirm: book, with", "- origin: Rome"],
    ]
    details = asked[-1].details
    assert details["stage"] == "acting"
    assert details["collected"] == {"origin": "Rome", "target": "Oslo", "pin": "***"}
    results = state["current_specialist_results"]
    assert results["2/teller"].text == "heard: Done: book.\nResult: booked Rome to Oslo"
    job = results["1/booker"].output
    assert (job["status"], job["collected_info"]["pin"]) == ("completed", "***")
    assert job["intermediate_results"][0]["success"]
    # The brief and one answer were read by the model, each once, however often the step was begun.
    assert results["1/booker"].retry_count == 0


async def test_an_action_is_told_without_secrets():
    plan = PLAN.partition("- [ ] 2")[0] + "\n  ```yaml\n  origin: Rome\n  target: Oslo\n  "
    plan += 'pin: "4711"\n  ```\n'
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(spec_of([], effects="keyed"), model)
        told = [event async for event in stream(graph, given(plan), config=THREAD)]
    [called] = [each for each in told if each.type == "tool_invoked"]
    assert (called.tool, called.effects) == ("book_it", "keyed")
    assert called.arguments == {"origin": "Rome", "target": "Oslo", "pin": "***"}
    [ended] = [each for each in told if each.type == "tool_completed"]
    assert (ended.status, ended.result) == ("success", '"booked Rome to Oslo"')


async def test_answers_that_were_handed_in_are_used_behind_one_that_was_asked_for():
    done = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(spec_of(done), model)
        known = {"1/booker/1": "Rome", "1/booker/3": "4711"}
        plan = {"messages": [("user", "Go.")], "plan": PLAN, "answers": known}
        state = (await run(graph, plan, config=THREAD)).state
        state, asked = await answered(graph, state, ["Oslo", "yes"])
    assert ["Where to?" in asked[0].text, "Shall I do it?" in asked[1].text] == [True, True]
    assert done == [("Rome", "Oslo", "4711")]


async def test_parameters_fill_slots_and_a_cancelled_job_is_a_failed_step():
    done = []
    plan = PLAN.partition("- [ ] 2")[0] + '\n  ```yaml\n  origin: Rome\n  pin: "1"\n  ```\n'
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(spec_of(done), model)
        state = (await run(graph, given(plan), config=THREAD)).state
        state, asked = await answered(graph, state, ["cancel"])
    assert asked[0].text == "Where to?"
    result = state["current_specialist_results"]["1/booker"]
    assert (result.is_failed, result.error) == (True, "This was cancelled. Nothing was done.")
    assert not done


def test_a_team_file_names_a_job_file(tmp_path):
    job = TEA
    (tmp_path / "tea.yaml").write_text(job)
    team = tmp_path / "team.yaml"
    member = "- {name: tea, intended_use: Tea., job: tea.yaml}"
    team.write_text(f"host: {{model: offline}}\nspecialists:\n{member}\n")
    [member] = read_team_file(team, {}).config.specialists
    assert member.job.name == "tea"
    (tmp_path / "tea.yaml").write_text(job.replace("needs: [kind]", "needs: [sort]"))
    with pytest.raises(Exception, match="there is no slot 'sort'"):
        read_team_file(team, {})
    with pytest.raises(TeamError, match="already has"):
        Team(
            host=Host(model="offline"),
            specialists=[Specialist("x", "X.", job=spec_of([]), run=print)],
        )


def test_the_calls_of_a_job_are_bounded_before_a_run():
    spec = spec_of([])
    team = Team(
        "offline",
        [
            Specialist("rules", "Rules.", job=spec),
            Specialist("model", "Reads.", job=spec, extraction_model="offline"),
        ],
    )
    assert team_of(team).per_try == {"rules": 0, "model": 2 * spec.max_turns}


@pytest.mark.parametrize("effects", ["unsafe", "keyed"])
async def test_an_action_that_was_cut_off_is_asked_about_or_done_with_its_key(tmp_path, effects):
    begun, done = asyncio.Event(), []

    async def book(origin, idempotency_key):
        done.append(idempotency_key)
        begun.set()
        if len(done) == 1:
            await asyncio.Event().wait()
        return "booked"

    spec = JobSpec(
        "travel",
        slots=[Slot("origin", question="Where from?")],
        commands=[JobCommand("book", needs=["origin"], action="book_it")],
        actions=[ActionSpec("book_it", run=book, effects=effects)],
        confirm=False,
    )
    team = Team("offline", [Specialist("booker", "Books.", job=spec)])
    plan = "- [ ] 1. Book it @booker\n\n  ```yaml\n  origin: Rome\n  ```\n"
    where = str(tmp_path / "runs.db")
    async with open_storage(where) as storage:
        graph = build_graph(team, storage=storage)
        given = {"messages": [("user", "Go.")], "plan": plan}
        task = asyncio.create_task(run(graph, given, config=THREAD))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
    async with open_storage(where) as storage:
        graph = build_graph(team, storage=storage)
        state = (await run(graph, None, config=THREAD)).state
        if effects == "unsafe":
            [question] = waiting_for(state)
            assert (question.kind, len(done)) == ("unknown_outcome", 1)
            given = {question.key: question_answer(question)}
            state = (await run(graph, Resume(resume=given), config=THREAD)).state
    assert state["outcome"] == "completed"
    assert len(set(done)) == 1
    assert len(done) == (1 if effects == "unsafe" else 2)


def question_answer(question):
    return {"action": "done", "text": "It was booked.", "fingerprint": question.fingerprint}


async def test_a_secret_that_a_user_gave_is_told_to_nobody():
    # So long that no id or time of an event has it by chance.
    wrong, right = "48x108154711", "471108154711"
    seen = []

    def pay(pin):
        seen.append(pin)
        return {"with": f"PIN {pin}", "number": int(pin)}

    spec = JobSpec(
        "payment",
        slots=[Slot("pin", question="Which PIN?", secret=True, pattern=r"\d{12}")],
        commands=[JobCommand("pay", needs=["pin"], action="pay")],
        actions=[ActionSpec("pay", run=pay)],
    )
    events = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(spec, model)
        given = {"messages": [("user", "Go.")], "plan": PLAN.replace("Book the journey", "Pay")}
        for answer in (wrong, right, "yes", None):
            events += [event async for event in stream(graph, given, config=THREAD)]
            state = (await graph.aget_state(THREAD)).values
            if answer is not None:
                [key] = [key for key, each in state["questions"].items() if each.is_open]
                given = Resume(resume={key: answer})
        calls = str([call.messages for call in model.calls])
    assert (seen, state["outcome"]) == ([right], "completed")
    told = [event for event in events if event.type == "answer_received"]
    assert [each.text for each in told] == ["***", "***", "***"]
    results = state["current_specialist_results"]
    assert 'Result: {"with": "PIN ***", "number": ***}' in results["1/booker"].text
    shown = f"{events}{calls}{[each.model_dump() for each in results.values()]}"
    assert not [each for each in (wrong, right) if each in shown]


async def test_what_shows_a_run_shows_no_secret_answer(tmp_path):
    done, pin = [], "471108154711"
    team = Team("offline", [Specialist("booker", "Books.", job=spec_of(done))])
    plan = PLAN.splitlines()[0] + "\n\n  ```yaml\n  origin: Rome\n  target: Oslo\n  ```\n"
    async with open_storage(tmp_path / "runs.db") as storage:
        async with open_runtime(team, storage=storage) as runtime:
            result = await (await runtime.start(plan, run_id="r")).result()
            for answer in (pin, "yes"):
                given = {result.pending_questions[0].key: answer}
                result = await (await runtime.answer("r", given, by="ann")).result()
        record = await storage.runs.get("r")
        shown = await read_report(viewer(storage), storage, record, record.updated_at)
    assert (result.outcome, done) == ("completed", [("Rome", "Oslo", pin)])
    assert any("ann answered 1/booker/1: ***" in line for line in history_lines(shown))
    assert pin not in f"{run_record(shown)}{shown}"


async def test_users_answer_a_run_until_its_job_is_over(tmp_path):
    wants = {"origin": "Rome", "target": "Oslo", "pin": "47-11"}
    for seed, kind in enumerate(("contradicting", "leaving", "silent", "hostile")):
        done = []
        team = Team("offline", [Specialist("booker", "Books.", job=spec_of(done))])
        async with open_runtime(team, storage=tmp_path / f"{kind}.db") as runtime:
            user = SimulatedUser(kind, spec_of(done), "book", wants, seed=seed)
            result = await converse_with_run(runtime, user, PLAN.splitlines()[0])
        if kind in ("contradicting", "leaving"):
            assert (result.outcome, done) == ("completed", [tuple(user.wants.values())]), kind
        else:
            assert result.outcome == ("waiting" if kind == "silent" else "failed") or done, kind
            assert len(done) <= 1


async def test_the_history_of_a_session_has_no_secret_answer():
    done, pin = [], "471108154711"
    team = Team("offline", [Specialist("booker", "Books.", job=spec_of(done))])
    plan = PLAN.splitlines()[0] + "\n\n  ```yaml\n  origin: Rome\n  target: Oslo\n  ```\n"
    context = AgentContext(session_id="s")
    async with build_agent(team) as agent:
        for said in (plan, pin, "yes"):
            context = context.apply((await agent.process(said, context)).context_updates)
    assert done == [("Rome", "Oslo", pin)]
    said = [each.content for each in context.dialogue_history if each.role == "user"]
    assert said == [plan, "***", "***"]
    assert pin not in str(context.to_dict())


def test_what_a_step_may_call_is_bound_by_the_turns_of_its_job():
    spec = spec_of([])
    reader = Specialist("b", "B.", job=spec, extraction_model="offline")
    assert team_of(Team("offline", [reader])).per_try == {"b": 2 * spec.max_turns}

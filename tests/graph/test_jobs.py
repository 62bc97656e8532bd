"""A job as a specialist of a plan: its questions wait like any, and nothing is done twice."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command as Resume

from replan import Host, Specialist, Team, build_graph, run, waiting_for
from replan.errors import TeamError
from replan.jobs.action_spec import ActionSpec
from replan.jobs.slot import Slot
from replan.jobs.spec import Command, JobSpec
from replan.team.team_file import read_team_file
from replan.testing import ScriptedModel

COMPLETE = "---\nverdict: complete\n---\nBooked."
CONFIG = {"configurable": {"thread_id": "t"}}
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
        commands=[Command("book", needs=["origin", "target", "pin"], action="book_it")],
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
        state = (await run(graph, Resume(resume=given), config=CONFIG)).state
    return state, asked


async def test_a_job_asks_what_it_needs_and_acts_once():
    done = []
    said = "I would say we are going to the north of Oslo"
    extracted = ["---\n---", "target: Oslo\nphase: COMPLETED"]
    with ScriptedModel({"feedback": COMPLETE, "extract": extracted}) as model:
        graph = graph_of(spec_of(done), model, model)
        plan = {"messages": [("user", "Go.")], "plan": PLAN}
        state = (await run(graph, plan, config=CONFIG)).state
        state, asked = await answered(graph, state, ["Rome", said, "4711", "yes"])
    assert state["outcome"] == "completed"
    assert done == [("Rome", "Oslo", "4711")]
    assert [each.text.partition("\n")[0] for each in asked] == [
        "Where from?",
        "Where to?",
        "Which PIN?",
        "Please confirm: book, with",
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


async def test_parameters_fill_slots_and_a_cancelled_job_is_a_failed_step():
    done = []
    plan = PLAN.partition("- [ ] 2")[0] + '\n  ```yaml\n  origin: Rome\n  pin: "1"\n  ```\n'
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(spec_of(done), model)
        given = {"messages": [("user", "Go.")], "plan": plan}
        state = (await run(graph, given, config=CONFIG)).state
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
    with pytest.raises(Exception, match="There is no slot 'sort'"):
        read_team_file(team, {})
    with pytest.raises(TeamError, match="already has"):
        Team(
            host=Host(model="offline"),
            specialists=[Specialist("x", "X.", job=spec_of([]), run=print)],
        )

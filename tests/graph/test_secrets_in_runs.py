"""A run tells no known secret in errors, events and logs, and warns of one that it keeps."""

import json
import logging

import pytest

from replan import (
    Host,
    Limits,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
    build_graph,
    open_storage,
    run,
    stream,
)
from replan.testing import ScriptedModel, always
from replan.views.live.reporters import json_line
from scripts import THREAD
from states import state_of

WORDS = "correct horse battery"
PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Log in @db\n"


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", WORDS)


def team(work, *, done="Done.", plan=PLAN):
    script = {
        "think": always(plan),
        "feedback": always(f"---\nverdict: complete\n---\n{done}"),
        "*": always(done),
    }
    host = Host(model=ScriptedModel(script))
    db = Specialist(name="db", intended_use="Logs in.", run=work)
    return Team(host=host, specialists=[db], limits=Limits(step_retries=1))


def fails(context):
    raise RuntimeError(f"cannot log in with {WORDS} at db")


def says_that_it_failed(context):
    return SpecialistResult(status="failed", error=f"no login with {WORDS}", retry=False)


@pytest.mark.parametrize("work", [fails, says_that_it_failed])
async def test_a_failed_step_tells_no_secret_in_state_events_document_or_log(work, caplog):
    graph = build_graph(team(work))
    with caplog.at_level(logging.DEBUG, "replan"):
        events = [event async for event in stream(graph, "Log in.")]
        state = (await run(graph, "Log in.")).state
    told = "".join(map(json_line, events))
    assert WORDS not in told + str(state) + caplog.text
    assert "***" in told
    assert "***" in state["current_plan"].content


async def test_a_failed_step_leaves_no_secret_in_storage(tmp_path):
    async with open_storage(tmp_path / "runs.db") as storage:
        await run(build_graph(team(fails), storage=storage), "Log in.", config=THREAD)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"cannot log in with ***" in kept
    assert WORDS.encode() not in kept


async def test_what_a_model_says_of_a_secret_is_masked_in_events():
    think = f"---\ncomplexity: complex\nreasoning: It is {WORDS}.\n---\n- [ ] 1. Log in @db\n"
    graph = build_graph(team(lambda context: "in", plan=think))
    events = [event async for event in stream(graph, f"Log in with {WORDS}.")]
    told = [json.loads(json_line(event)) for event in events]
    assert told[0]["request"] == "Log in with ***."
    (thought,) = (each for each in told if each["type"] == "thinking_completed")
    assert thought["reasoning"] == "It is ***."


async def test_a_question_is_told_without_a_secret_and_asked_as_it_is():
    graph = build_graph(team(lambda context: ask_user(f"Is it {WORDS}?")))
    events = [event async for event in stream(graph, "Log in.")]
    (asked,) = (event for event in events if event.type == "input_requested")
    assert asked.question.text == "Is it ***?"
    assert asked.question.key == "1/db/1"


async def test_a_result_that_holds_a_secret_is_kept_as_it_is_with_a_warning():
    graph = build_graph(team(lambda context: f"The password is {WORDS}."))
    events = [event async for event in stream(graph, "Log in.")]
    state = (await run(graph, "Log in.")).state
    assert state["current_specialist_results"]["1/db"].text == f"The password is {WORDS}."
    warning = (
        "The result of step 1 holds a secret value of this process, and is kept and shown as it is."
    )
    assert state["warnings"] == [warning]
    assert events[-1].warnings == (warning,)


async def test_an_answer_that_holds_a_secret_is_given_as_it_is_with_a_warning():
    graph = build_graph(team(lambda context: "in", done=f"It is {WORDS}."))
    state = (await run(graph, "Log in.")).state
    assert state["final_answer"].text == f"It is {WORDS}."
    (warning,) = state["warnings"]
    assert warning.startswith("The answer holds a secret value")


async def test_a_simple_answer_that_holds_a_secret_gives_a_warning():
    script = {"think": f"---\ncomplexity: simple\n---\nIt is {WORDS}."}
    host = Host(model=ScriptedModel(script))
    db = Specialist(name="db", intended_use="Logs in.", run=fails)
    state = await state_of(run(build_graph(Team(host=host, specialists=[db])), "What is it?"))
    assert state["final_answer"].text == f"It is {WORDS}."
    assert state["warnings"][0].startswith("The answer holds a secret value")


async def test_a_plan_that_holds_a_secret_is_kept_as_it_is_with_a_warning():
    plan = f"---\ncomplexity: complex\n---\n- [ ] 1. Log in with {WORDS} @db\n"
    state = (await run(build_graph(team(lambda context: "in", plan=plan)), "Log in.")).state
    assert WORDS in state["current_plan"].content
    assert state["warnings"][0].startswith("The plan holds a secret value")

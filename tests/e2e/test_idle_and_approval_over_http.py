"""Work that falls silent is ended; work that a person must approve waits. From files, over HTTP."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import ModelCallError, build_graph, run, stream
from replan.team.team_file import read_team_file
from replan.testing import Hang, HttpFault, OpenAIServer, Reply, Reset, always
from scripts import COMPLETE, COMPLEX, SIMPLE, THREAD

IDLE = "StepTimeoutError: no sign of work for 2 s"
PLAN_OF_ONE = "- [ ] 1. Look @a\n"
PLAN = "- [ ] 1. Look @a\n- [ ] 2. Send it @b (after 1)\n"
TEAM = """\
name: office
host: {{model: openai:m}}
limits: {{{limits}}}
specialists:
- name: a
  intended_use: Looks.
  chat_model: openai:m
- name: b
  intended_use: Sends.
  chat_model: openai:m
  approve: {approve}
"""


@pytest.fixture
def graph_of(tmp_path):
    def build(server, *, limits="", approve="false"):
        file = tmp_path / "team.yaml"
        file.write_text(TEAM.format(limits=limits, approve=approve))
        team = read_team_file(file, {}).with_model(None, server.base_url)
        return build_graph(team.config, models=team.models, checkpointer=InMemorySaver())

    return build


def given(plan=PLAN):
    return {"messages": [("user", "Go.")], "plan": plan}


async def test_a_step_without_a_sign_of_work_is_ended_long_before_its_time(graph_of):
    script = {"step 1": Reply(fault=Hang()), "feedback": COMPLETE}
    async with OpenAIServer(script, models=("m",)) as server:
        graph = graph_of(server, limits="idle_timeout: 2, step_retries: 0")
        state = (await run(graph, given("- [ ] 1. Look @a\n"), config=THREAD)).state
    step = state["current_plan"].step(1)
    assert (step.status, step.feedback) == ("failed", IDLE)


async def test_pieces_without_a_token_are_no_sign_of_work(graph_of):
    empty = Reply("late", chunks=["", *[""] * 300, "late"], chunk_delay=0.1)
    script = {"step 1": empty, "feedback": COMPLETE}
    async with OpenAIServer(script, models=("m",)) as server:
        graph = graph_of(server, limits="idle_timeout: 2, step_retries: 0")
        state = (await run(graph, given("- [ ] 1. Look @a\n"), config=THREAD)).state
    step = state["current_plan"].step(1)
    assert (step.status, step.feedback) == ("failed", IDLE)


@pytest.mark.parametrize("option", ["", " (idle timeout 2s)"])
async def test_a_reply_that_keeps_coming_is_not_idle_however_long_it_takes(graph_of, option):
    # Three seconds of one word after another.
    slow = Reply(" ".join(["word"] * 12), chunk_delay=0.25)
    script = {"step 1": slow, "feedback": COMPLETE}
    async with OpenAIServer(script, models=("m",)) as server:
        graph = graph_of(server, limits="" if option else "idle_timeout: 2")
        state = (await run(graph, given(f"- [ ] 1. Look @a{option}\n"), config=THREAD)).state
    assert state["current_plan"].step(1).status == "completed"


async def test_a_steps_own_bound_counts_if_it_is_the_shorter_one(graph_of):
    script = {"step 1": Reply(fault=Hang()), "feedback": COMPLETE}
    async with OpenAIServer(script, models=("m",)) as server:
        graph = graph_of(server, limits="idle_timeout: 100")
        plan = "- [ ] 1. Look @a (retries 0; idle timeout 2s)\n"
        state = (await run(graph, given(plan), config=THREAD)).state
    assert state["current_plan"].step(1).feedback == IDLE


@pytest.mark.parametrize("bounds", ["", ", max_seconds: 100"])
async def test_a_pause_that_a_server_asks_for_is_not_idle(graph_of, bounds):
    def busy(reply):
        return [Reply(fault=HttpFault(503, retry_after=1.5)), reply]

    script = {"think": busy(COMPLEX + PLAN_OF_ONE), "step 1": busy("Seen."), "feedback": COMPLETE}
    async with OpenAIServer(script, models=("m",)) as server:
        graph = graph_of(server, limits=f"idle_timeout: 0.5, step_retries: 0{bounds}")
        state = (await run(graph, "Go.", config=THREAD)).state
    assert state["current_plan"].step(1).status == "completed"


async def test_the_pause_behind_a_shown_reply_that_broke_off_is_not_idle(graph_of):
    answer = f"{SIMPLE}A long answer of many words."
    script = {"think": [*[Reply(answer, fault=Reset(after=6))] * 2, answer]}
    async with OpenAIServer(script, models=("m",)) as server:
        graph = graph_of(server, limits="idle_timeout: 0.3, max_seconds: 100")
        events = [event async for event in stream(graph, "Go.", config=THREAD)]
    kinds = [event.type for event in events]
    assert kinds.index("answer_token") < kinds.index("answer_reset")
    assert events[-1].text == "A long answer of many words."


async def test_a_call_of_the_host_may_not_be_silent_either(graph_of):
    async with OpenAIServer({"think": always(Reply(fault=Hang()))}, models=("m",)) as server:
        graph = graph_of(server, limits="idle_timeout: 0.3")
        with pytest.raises(ModelCallError, match=r"no sign of work for 0\.3 s"):
            await run(graph, "Go.", config=THREAD)

"""A long conversation of a team from a file, in SQLite, with models over HTTP."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import (
    Host,
    MemoryOptions,
    Specialist,
    Team,
    TeamFileError,
    build_graph,
    open_runtime,
    run,
)
from replan.assembly import models_from_environment
from replan.assembly.graphs import team_graph
from replan.nodes import summarise
from replan.nodes.summarise import ROOM_TO_THINK
from replan.testing import Hang, HttpFault, Malformed, OpenAIServer, Reply

TEAM = """\
host: {model: main}
specialists:
  - {name: clerk, intended_use: Looks up., chat_model: main, memory: {history_limit: 1}}
models:
  main: {model: big-one, base_url: URL}
  small: {model: small-one, base_url: URL}
memory:
  mode: summary
  history_limit: 2
  summary_trigger_messages: 4
  summary_max_tokens: 200
  summary_model_id: small
"""
TALK = "The user asks for prime numbers; 7 is one."


class Models:
    """A server whose small model refuses the first summary."""

    def __init__(self):
        self.refused = 0

    def __call__(self, request):
        if request.call.node != "memory_summary":
            return "---\ncomplexity: simple\n---\nSeven."
        self.refused += 1
        return HttpFault(400) if self.refused == 1 else TALK


async def test_a_conversation_goes_on_with_a_summary_whoever_opens_the_file(tmp_path):
    told = []
    with OpenAIServer(Models()) as server:
        path = tmp_path / "team.yaml"
        path.write_text(TEAM.replace("URL", server.base_url))
        for turn in range(4):
            async with open_runtime(path, storage=tmp_path / "runs.db") as runtime:
                run = await runtime.start(f"question {turn}", thread_id="t")
                result = await run.result()
                assert result.outcome == "answered"
                told += [e async for e in runtime.events(run.run_id) if e.type == "memory_summary"]
        asked = [each for each in server.requests if each.call.node == "memory_summary"]
        newest = server.requests[-1]
    # The second answer makes it due, the third one tries again.
    assert [bool(each.error) for each in told] == [True, False]
    assert told[0].covered == 0
    assert told[1].model == "small"
    assert {each.model for each in asked} == {"small-one"}
    assert {each.body["max_completion_tokens"] for each in asked} == {200 + ROOM_TO_THINK}
    assert result.state["memory_summary"].text == TALK
    assert result.state["memory_summary"].covered == 4
    roles = [message.type for message in newest.messages]
    assert roles == ["system", "human", "ai", "human"]
    assert newest.messages[-1].text.count(f"<memory>\n{TALK}\n</memory>") == 1


async def test_wrong_options_in_a_team_file_are_told_with_their_places(tmp_path):
    path = tmp_path / "team.yaml"
    path.write_text("""\
host:
  model: offline
  memory: {history_limit: many}
specialists:
  - name: clerk
    intended_use: Looks up.
    chat_model: offline
    memory:
      mode: ful
memory: {mode: summary, trigger: 3, summary_model_id: "openia:x"}
""")
    with pytest.raises(TeamFileError) as error:
        team_graph(path)
    told = {each.field: (each.line, each.column) for each in error.value.mistakes}
    assert told == {
        "host.memory.history_limit": (3, 27),
        "specialists[0].memory.mode": (9, 13),
        "memory.trigger": (10, 25),
    }
    assert "Write 'full', 'window' or 'summary'." in str(error.value)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (HttpFault(500), "500"),
        (HttpFault(429, retry_after=0.01), "429"),
        (Malformed(), "Error"),
        (Hang(), "no answer within 0.2 s"),
    ],
    ids=["failing", "busy", "no reply", "hanging"],
)
async def test_a_summary_gets_one_attempt_and_its_run_a_short_warning(fault, why, monkeypatch):
    if fault == Hang():
        monkeypatch.setattr(summarise, "LONGEST_SUMMARY", 0.2)
    memory = MemoryOptions(mode="summary", history_limit=1, summary_trigger_messages=2)
    work = Specialist(name="clerk", intended_use="Looks up.", run=lambda context: "done")

    def reply(request):
        if request.call.node == "memory_summary":
            return Reply(fault=fault)
        return "---\ncomplexity: simple\n---\nSeven."

    with OpenAIServer(reply) as server:
        team = Team(host=Host(model="openai:m"), specialists=[work], memory=memory)
        models = models_from_environment(server.base_url)
        graph = build_graph(team, models=models, checkpointer=InMemorySaver())
        result = await run(graph, "Which?", config={"configurable": {"thread_id": "t"}})
        assert server.calls["memory_summary"] == 1
    assert (result.outcome, result.text) == ("answered", "Seven.")
    (warning,) = result.warnings
    assert warning.startswith("No new summary of the conversation was written: ")
    assert why in warning
    assert "Check" not in warning

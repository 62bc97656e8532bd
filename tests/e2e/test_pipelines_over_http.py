"""A pipeline of a team file asks its model over HTTP, within the limits of the run."""

import pytest
from langchain_openai import ChatOpenAI

from replan import open_runtime, open_storage
from replan.pipelines import pipeline_agent, run_pipeline
from replan.sessions import AgentContext, AgentResult
from replan.state.pipeline.thread_rows import thread_from
from replan.storage.memory_threads import MemoryThreads
from replan.team.kinds.pipeline_kind import pipeline_named
from replan.testing import OpenAIServer, always
from scripts import END

TEAM = """\
host: {model: main}
specialists:
  - {name: writer, intended_use: Writes., pipeline: "tea_writing:TeaAgent", unit_model: main}
models:
  main: {model: big-one, base_url: URL}
prices:
  main: {input: 1.0, output: 2.0}
"""
MODULE = """\
from replan.pipelines import (
    BaseAgent,
    InteractionUnit,
    Response,
    StateHandler,
    SubThreadAgent,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
    require_sub_thread,
)


class AskingHandler(StateHandler):
    async def handle(self, task, thread, agent):
        own = require_sub_thread(thread, task.sub_thread_path)
        said = own.messages or thread.messages[:1]
        return Response(await agent.ai_adapter.chat(said, system_message=f"Do {self.phase}."))


class SigningHandler(StateHandler):
    async def handle(self, task, thread, agent):
        return Response("Signed by nobody.")


class TeaWritingAgent(SubThreadAgent):
    async def _initialize_interaction_units(self):
        handlers = (
            AskingHandler(phase="draft", next_phase="signature"),
            SigningHandler(phase="signature", next_phase="revision"),
            AskingHandler(phase="revision"),
        )
        self.interaction_units = {
            each.phase: await InteractionUnit.create(state_handler=each) for each in handlers
        }


class TeaExecutionHandler(SubThreadExecutionHandler):
    sub_thread_agent = TeaWritingAgent


class TeaAgent(BaseAgent):
    async def _initialize_state_handlers(self):
        both = (SubThreadPreparationHandler(), TeaExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}
"""
PLAN = {"plan": "- [ ] 1. Praise tea @writer\n"}


SCRIPT = {
    "unit draft": always("Tea is fine."),
    "unit revision": always("Tea is fine and warm."),
    "feedback": always(END),
}
SAID = ["Tea is fine.", "Continue.", "Signed by nobody.", "Continue.", "Tea is fine and warm."]
HEARD = ["Tea is fine.", "Signed by nobody.", "Tea is fine and warm."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tea")
    (folder / "tea_writing.py").write_text(MODULE)
    return folder


async def test_units_of_a_team_file_s_pipeline_count_and_stream_only_where_somebody_hears(folder):
    with OpenAIServer(SCRIPT) as server:
        (folder / "team.yaml").write_text(TEAM.replace("URL", server.base_url))
        async with (
            open_storage(folder / "runs.db") as storage,
            open_runtime(folder / "team.yaml", storage=storage) as runtime,
        ):
            for hears in (False, True):
                before = len(server.requests)
                run = await runtime.start(PLAN, tokens=hears)
                events = [each async for each in run.events(tokens=hears)]
                result = await run
                units = [each for each in server.requests[before:] if each.call.node == "unit"]
                assert [each.stream for each in units] == [hears, hears]
            thread = await storage.threads.get_thread(f"{run.run_id}/1.0/writer")
    assert result.results[1].text == "Tea is fine and warm."
    assert (result.results[1].usage.calls, result.usage.calls) == (2, 3)
    assert result.usage.cost
    calls = [each for each in events if each.type == "model_completed"]
    assert [each.specialist for each in calls] == ["writer"] * 2 + [""]
    sub_thread = thread.messages[1].meta["_thread"]
    assert [each.text for each in sub_thread.messages] == SAID
    assert _texts((each.type, getattr(each, "text", None)) for each in events) == HEARD


async def test_the_same_pipeline_in_a_session_and_alone_says_the_same(folder):
    agent = pipeline_named("tea_writing:TeaAgent", folder)
    context, repository = AgentContext(session_id="s"), MemoryThreads()
    with OpenAIServer(SCRIPT) as server:
        talking = pipeline_agent(agent, model="openai:big-one", base_url=server.base_url)
        whole = await talking.process("Praise tea", context)
        parts = [each async for each in talking.stream("Praise tea", context)]
        model = ChatOpenAI(model="big-one", base_url=server.base_url, api_key="x")
        await run_pipeline(agent, "Praise tea", repository=repository, model=model)
        assert [each.stream for each in server.requests] == [False, False, True, True, False, False]
    assert isinstance(parts[-1], AgentResult)
    assert _texts((each.type, getattr(each, "text", "")) for each in parts[:-1]) == HEARD
    for result in (whole, parts[-1]):
        rows = context.apply(result.context_updates).project_state["threads"]["s"]
        assert _said(thread_from(rows)) == ["Praise tea", "Tea is fine and warm.", SAID]
    assert _said(await repository.get_thread("main")) == _said(thread_from(rows))


def _said(thread):
    below = [_said(each) for _, each in thread.sub_threads()]
    return [*(each.text for each in thread.messages), *below]


def _texts(events):
    """The texts that were heard: a phase ends what was said before."""
    told = [""]
    for kind, text in events:
        if kind == "specialist_token":
            told[-1] += text
        elif kind == "phase_entered":
            told.append("")
    return [each for each in told if each]

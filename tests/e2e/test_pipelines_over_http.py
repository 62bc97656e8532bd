"""A pipeline of a team file asks its model over HTTP, within the limits of the run."""

from replan import open_runtime, open_storage
from replan.testing import OpenAIServer

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
from replan import (
    BaseAgent, InteractionUnit, Response, StateHandler, SubThreadAgent,
    SubThreadExecutionHandler, SubThreadPreparationHandler, require_sub_thread,
)


class AskingHandler(StateHandler):
    async def handle(self, task, thread, agent):
        own = require_sub_thread(thread, task.sub_thread_path)
        said = own.messages or thread.messages[:1]
        return Response(await agent.ai_adapter.chat(said, system_message=f"Do {self.phase}."))


class TeaWritingAgent(SubThreadAgent):
    async def _initialize_interaction_units(self):
        phases = ["draft", "critique", "revision", "completed"]
        self.interaction_units = {
            phase: await InteractionUnit.create(
                state_handler=AskingHandler(phase=phase, next_phase=following)
            )
            for phase, following in zip(phases, phases[1:])
        }


class TeaExecutionHandler(SubThreadExecutionHandler):
    sub_thread_agent = TeaWritingAgent


class TeaAgent(BaseAgent):
    async def _initialize_state_handlers(self):
        both = (SubThreadPreparationHandler(), TeaExecutionHandler())
        self.state_handlers = {each.phase: each for each in both}
"""
PLAN = {"plan": "- [ ] 1. Praise tea @writer\n"}
DONE = "---\nverdict: complete\n---\nThe end."


async def test_each_unit_of_a_team_file_s_pipeline_is_one_call_that_counts(tmp_path):
    script = {
        "unit draft": "Tea is fine.",
        "unit critique": "Too short.",
        "unit revision": "Tea is fine and warm.",
        "feedback": DONE,
    }
    (tmp_path / "tea_writing.py").write_text(MODULE)
    with OpenAIServer(script) as server:
        (tmp_path / "team.yaml").write_text(TEAM.replace("URL", server.base_url))
        async with (
            open_storage(tmp_path / "runs.db") as storage,
            open_runtime(tmp_path / "team.yaml", storage=storage) as runtime,
        ):
            run = await runtime.start(PLAN, tokens=True)
            result = await run
            events = [each async for each in run.events()]
            thread = await storage.threads.get_thread(f"{run.run_id}/1.0/writer")
    assert result.results[1].text == "Tea is fine and warm."
    assert (result.results[1].usage.calls, result.usage.calls) == (3, 4)
    assert result.usage.cost
    calls = [each for each in events if each.type == "model_answered"]
    assert [each.details["specialist"] for each in calls] == ["writer"] * 3 + [""]
    sub_thread = thread.messages[1].meta["_thread"]
    assert [each.text for each in sub_thread.messages] == [
        "Tea is fine.",
        "Continue.",
        "Too short.",
        "Continue.",
        "Tea is fine and warm.",
    ]

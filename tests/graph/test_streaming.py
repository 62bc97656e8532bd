"""What can be seen of a run while it goes on: answer tokens, events, callbacks, an early end."""

import asyncio
import threading

from langchain_core.callbacks import AsyncCallbackHandler

from replan import Limits, MultiAgentCallback, Specialist, run, stream
from replan.plan import sealed
from replan.testing import Reply, Reset, ScriptedModel
from scripts import DONE

SIMPLE = "---\ncomplexity: simple\n---\nThe capital is Paris."


async def test_the_answer_comes_in_pieces_without_front_matter(team, script):
    with ScriptedModel(script) as model:
        events = [event async for event in stream(team(model), "Compare.")]
    tokens = [event.text for event in events if event.type == "answer_token"]
    assert len(tokens) > 1
    assert "".join(tokens) == "The final answer."


async def test_langgraphs_messages_mode_shows_the_answer_and_no_host_call(team, script):
    shown = {}
    with ScriptedModel(script) as model:
        async for message, metadata in team(model).astream(
            {"messages": [("user", "Compare.")]}, stream_mode="messages"
        ):
            node = metadata["langgraph_node"]
            shown[node] = shown.get(node, "") + message.text
    assert shown["feedback"] == "The final answer."
    # The whole message is not shown again after its pieces.
    assert "final_answer" not in shown
    assert "think" not in shown
    assert shown["specialist_analyst"] == "They differ."


async def test_a_simple_answer_streams_from_thinking(team):
    with ScriptedModel({"think": SIMPLE}) as model:
        parts = [
            (message.text, metadata["langgraph_node"])
            async for message, metadata in team(model).astream(
                {"messages": [("user", "Capital?")]}, stream_mode="messages"
            )
        ]
    assert "".join(text for text, _ in parts) == "The capital is Paris."
    assert {node for _, node in parts} == {"think"}


async def test_an_answer_that_breaks_off_is_announced_and_begun_again(team):
    chunks = ["---\ncomplexity: simple\n---\n", "The cap", "ital is Paris."]
    broken = Reply(SIMPLE, chunks=chunks, fault=Reset(after=2))
    with ScriptedModel({"think": [broken, SIMPLE]}) as model:
        events = [event async for event in stream(team(model), "Capital?")]
    said = [
        event.text if event.type == "answer_token" else event.type
        for event in events
        if event.type.startswith("answer")
    ]
    restart = said.index("answer_reset")
    assert "".join(said[:restart]) == "The cap"
    assert "".join(said[restart + 1 :]) == "The capital is Paris."
    assert events[-1].answer.text == "The capital is Paris."


async def test_the_same_events_stand_in_langgraphs_custom_mode(team, script):
    with ScriptedModel(script) as model:
        ours = [event.type async for event in stream(team(model), "Compare.")]
    with ScriptedModel(script) as model:
        theirs = [
            event.type
            async for event in team(model).astream(
                {"messages": [("user", "Compare.")]}, stream_mode="custom"
            )
        ]
    assert sorted(ours) == sorted(theirs)


class Recorder(MultiAgentCallback):
    def __init__(self):
        self.seen = []

    async def on_thinking_start(self, info):
        self.seen.append(info.type)

    async def on_thinking_complete(self, info):
        self.seen.append(info.type)

    def on_plan_created(self, info):
        self.seen.append(info.type)

    async def on_plan_updated(self, info):
        self.seen.append(info.type)

    async def on_specialist_invoke(self, info):
        self.seen.append(f"{info.type} {info.step_id}")

    async def on_specialist_complete(self, info):
        self.seen.append(f"{info.type} {info.step_id}")

    async def on_feedback_generated(self, info):
        self.seen.append(info.type)

    async def on_task_complete(self, info):
        self.seen.append(info.type)


async def test_eight_hooks_are_called_in_the_order_of_events(team, script):
    recorder = Recorder()
    with ScriptedModel(script) as model:
        await run(team(model, callbacks=[recorder]), "Compare.")
    assert recorder.seen[:3] == ["thinking_started", "thinking_completed", "plan_created"]
    assert recorder.seen[-2:] == ["feedback_generated", "task_completed"]
    assert {"specialist_invoked 3", "specialist_completed 3"} <= set(recorder.seen)


async def test_a_callback_that_raises_is_logged_and_harmless(team, script, caplog):
    class Broken:
        def on_plan_created(self, info):
            raise RuntimeError("broken hook")

    recorder = Recorder()
    with ScriptedModel(script) as model:
        state = (await run(team(model, callbacks=[Broken(), recorder]), "Compare.")).state
    assert state["outcome"] == "completed"
    assert "plan_created" in recorder.seen
    assert "callback failed" in caplog.text


async def test_closing_the_stream_early_cancels_the_work_and_leaves_no_task(team, script):
    stopped = []

    async def hangs(messages):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    before = asyncio.all_tasks()
    model = ScriptedModel({**script, "step 1": hangs})
    events = stream(team(model), "Compare.")
    async for event in events:
        if event.type == "specialist_completed":
            break
    await events.aclose()
    assert stopped == [True]
    assert asyncio.all_tasks() == before


async def test_the_callers_callbacks_reach_every_model_call(team, script):
    seen = []

    class Seen(AsyncCallbackHandler):
        async def on_chat_model_start(self, serialized, messages, *, tags=None, metadata=None, **_):
            seen.append((tuple(tags or ()), (metadata or {}).get("tenant")))

    with ScriptedModel(script) as model:
        config = {"callbacks": [Seen()], "tags": ["mine"], "metadata": {"tenant": "t1"}}
        await run(team(model), "Compare.", config=config)
    assert len(seen) == 5
    assert all("mine" in tags and tenant == "t1" for tags, tenant in seen)


async def test_the_events_of_a_run_fold_into_its_final_plan_and_results(team, script):
    with ScriptedModel(script) as model:
        graph = team(model)
        parts = [
            part
            async for part in graph.astream(
                {"messages": [("user", "Compare.")]}, stream_mode=["custom", "values"]
            )
        ]
    state = [part for mode, part in parts if mode == "values"][-1]
    events = [part for mode, part in parts if mode == "custom"]
    results = {e.result.key: e.result for e in events if e.type == "specialist_completed"}
    assert results == state["current_specialist_results"]
    plan = [e.plan for e in events if e.type in ("plan_created", "plan_updated")][-1]
    assert sealed(plan, state["run_id"]) == state["current_plan"]


PLAN_OF_TEN = "# Ten\n\n" + "".join(f"- [ ] {i}. Step {i} @a\n" for i in range(1, 11))


async def test_a_slow_plain_hook_counts_in_no_steps_time_and_holds_no_place(team):
    gate, done = threading.Event(), []

    class Slow:
        def on_specialist_invoke(self, info):
            # Goes on only after the work of all ten steps, which have two places.
            assert gate.wait(20)

    async def work(context):
        done.append(context.plan_step.id)
        if len(done) == 10:
            gate.set()
        return "ok"

    limits = Limits(step_timeout=5, step_retries=0, max_parallel_steps=2)
    with ScriptedModel({"feedback": DONE}) as model:
        graph = team(
            model,
            specialists=[Specialist(name="a", intended_use="A.", run=work)],
            callbacks=[Slow()],
            limits=limits,
            hook_timeout=20,
        )
        state = (await run(graph, {"plan": PLAN_OF_TEN})).state
    assert state["outcome"] == "completed"
    assert all(result.duration < 5 for result in state["current_specialist_results"].values())


async def test_a_callback_with_on_event_hears_tokens_unless_it_says_otherwise(team, script):
    class Listener(MultiAgentCallback):
        def __init__(self, *, hears_tokens=True):
            self.hears_tokens = hears_tokens
            self.heard = []

        async def on_event(self, event):
            self.heard.append(event.type)

    all_of_it, no_tokens = Listener(), Listener(hears_tokens=False)
    with ScriptedModel(script) as model:
        await run(team(model, callbacks=[all_of_it]), "Compare.")
    assert all_of_it.heard.count("answer_token") > 1
    assert "specialist_token" in all_of_it.heard
    with ScriptedModel(script) as model:
        await run(team(model, callbacks=[no_tokens]), "Compare.")
    assert [kind for kind in all_of_it.heard if not kind.endswith("_token")] == no_tokens.heard
    assert no_tokens.heard[-1] == "task_completed"

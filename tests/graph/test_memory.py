"""Conversations of any length: what models see of them, and the summary behind the answer."""

import asyncio

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from replan import (
    Host,
    InputError,
    MemoryOptions,
    ModelCallError,
    RunSettings,
    Specialist,
    Team,
    Traces,
    build_graph,
    open_runtime,
    open_storage,
    run,
    stream,
)
from replan.errors import ThreadBusyError
from replan.memory import Summary, read_summary, reset_summary, summarise
from replan.runs.reports import read_report, with_texts
from replan.testing import HttpFault, Reply, ScriptedModel, always
from replan.views.run.attempts import attempts_lines
from replan.views.run.history import history_lines
from scripts import COMPLEX, DONE, THREAD
from states import read_until_the_answer

SIMPLE = "---\ncomplexity: simple\n---\nParis."
PLAN = "# Look\n\n- [ ] 1. Look it up @clerk\n"
TALK = "They talk of Paris."
SMALL = MemoryOptions(mode="summary", history_limit=2, summary_trigger_messages=4)


def graph_of(model, memory=SMALL, **options):
    clerk = Specialist("clerk", "Looks up.", **options.pop("clerk", {"chat_model": model}))
    saver = options.pop("checkpointer", None) or InMemorySaver()
    host = options.pop("host", None) or Host(model)
    team = Team(host, [clerk], memory=memory, **options)
    return build_graph(team, checkpointer=saver)


async def talked(graph, turns, config=THREAD, **options):
    return [await run(graph, f"question {turn}", config=config, **options) for turn in turns]


async def events_of(graph, text="one more", config=THREAD):
    return [event async for event in stream(graph, text, config=config)]


async def test_with_nothing_configured_a_long_conversation_takes_the_calls_and_tokens_of_a_window():
    used = []
    for memory in (MemoryOptions(), MemoryOptions(mode="window", history_limit=10)):
        with ScriptedModel({"think": always(SIMPLE)}) as model:
            graph = graph_of(model, memory)
            results = await talked(graph, range(20))
        assert len(model.calls) == 20
        assert results[-1].state.get("memory_summary") is None
        said = [message.text for message in model.calls[-1].messages if message.type != "system"]
        expected = [text for turn in range(15, 19) for text in (f"question {turn}", "Paris.")]
        assert said == [*expected, "question 19"]
        used.append(model.usage)
    assert used[0] == used[1]


async def test_a_reader_who_leaves_after_the_answer_pays_for_no_summary():
    with ScriptedModel({"think": always(SIMPLE)}) as model:
        graph = graph_of(model)
        await talked(graph, range(1))
        await read_until_the_answer(stream(graph, "one more", config=THREAD))
    assert [call.node for call in model.calls] == ["think", "think"]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        HttpFault(500),
        HttpFault(400),
        AIMessage("", additional_kwargs={"refusal": "I will not."}),
        Reply(text="half of", finish_reason="content_filter"),
    ],
    ids=["empty", "blank", "down", "refused call", "refusal", "filtered"],
)
async def test_a_summary_that_fails_changes_nothing_and_is_tried_again(reply):
    script = {"think": always(SIMPLE), "memory_summary": [TALK, reply, "All of it."]}
    with ScriptedModel(script) as model:
        graph = graph_of(model)
        await talked(graph, range(3))
        before = await read_summary(graph, THREAD)
        events = await events_of(graph)
        assert await read_summary(graph, THREAD) == before
        assert before.text == TALK
        assert events[-1].type == "memory_summary"
        assert events[-1].error
        assert events[-2].outcome == "answered"
        told = (await graph.aget_state(THREAD)).values["warnings"]
        assert told == [f"No new summary of the conversation was written: {events[-1].error}"]
        # Advice is for those who ask for a summary, or for an answer.
        assert "Check" not in told[0]
        seen = [message.id for message in (await graph.aget_state(THREAD)).values["messages"]]
        await talked(graph, range(1))
        after = await read_summary(graph, THREAD)
        assert after.text == "All of it."
        assert after.last_covered_id == seen[after.covered - 1]


async def test_another_model_may_write_the_summaries():
    class Models:
        def chat_model(self, name):
            return {"main": main, "cheap": cheap}[name]

    main, cheap = ScriptedModel({"think": always(SIMPLE)}), ScriptedModel({"memory_summary": TALK})
    with main, cheap:
        team = Team(
            "main",
            [Specialist("a", "Works.", run=lambda context: "done")],
            memory=SMALL.replace(summary_model_id="cheap"),
        )
        graph = build_graph(team, checkpointer=InMemorySaver(), models=Models())
        await talked(graph, range(2))
    assert len(cheap.calls) == 1


WITH_OPTIONS = """\
- [ ] 1. One @clerk

  ```yaml
  item: lamp
  memory_mode: {mode}
  memory_history_limit: 2
  ```
"""


@pytest.mark.parametrize(("author", "count"), [("person", 2), ("model", 9)])
async def test_a_step_says_what_it_sees_and_a_model_only_its_mode(author, count):
    seen = []

    def work(context):
        seen.append((len(context.messages), context.parameters, context.plan_step.parameters))
        return "Found."

    plan = WITH_OPTIONS.format(mode="window")
    script = {"think": always(SIMPLE)}
    if author == "model":
        script["think"] = [*[SIMPLE] * 6, COMPLEX + plan]
    with ScriptedModel(script | {"feedback": DONE}) as model:
        graph = graph_of(model, MemoryOptions(), clerk={"run": work})
        await talked(graph, range(6))
        given = {"messages": [("user", "all of it")]}
        given |= {"plan": plan} if author == "person" else {}
        await run(graph, given, config=THREAD)
    assert seen == [(count, {"item": "lamp"}, {"item": "lamp"})]


async def test_a_summary_outlives_its_process_and_one_that_was_cut_off_is_written_later(tmp_path):
    where = tmp_path / "runs.db"
    script = {"think": always(SIMPLE)}
    with ScriptedModel(script) as model:
        async with open_storage(where) as storage:
            team = Team(model, [Specialist("a", "Works.", run=len)], memory=SMALL)
            graph = build_graph(team, storage=storage)
            await talked(graph, range(1))
            await read_until_the_answer(stream(graph, "one more", config=THREAD))
    with ScriptedModel({"memory_summary": TALK}) as model:
        async with open_storage(where) as storage:
            team = Team(model, [Specialist("a", "Works.", run=len)], memory=SMALL)
            graph = build_graph(team, storage=storage)
            result = await run(graph, None, config=THREAD)
            assert result.outcome == "answered"
        async with open_storage(where) as storage:
            graph = build_graph(team, storage=storage)
            summary = await read_summary(graph, THREAD)
    assert summary == Summary(text=TALK, covered=2, last_covered_id=result.state["messages"][1].id)


async def test_a_new_message_overtakes_a_summary_that_is_due_and_nothing_is_lost():
    script = {"think": always(SIMPLE), "memory_summary": [TALK]}
    with ScriptedModel(script) as model:
        graph = graph_of(model)
        await talked(graph, range(1))
        await read_until_the_answer(stream(graph, "question 1", config=THREAD))
        await run(graph, "question 2", config=THREAD)
        # Who left with the answer of the second question has had it.
        assert (await read_summary(graph, THREAD)).covered == 4
    covered = model.calls[-1].messages[-1].text
    assert [covered.count(f"question {turn}") for turn in range(3)] == [1, 1, 0]
    assert covered.count("Paris.") == 2


async def test_a_summary_is_written_read_and_taken_away_between_runs():
    script = {"think": always(SIMPLE), "memory_summary": [TALK]}
    with ScriptedModel(script) as model:
        graph = graph_of(model, SMALL.replace(summary_enabled=False))
        assert await read_summary(graph, THREAD) is None
        await talked(graph, range(4))
        summary = await summarise(graph, THREAD)
        assert (summary.text, summary.covered) == (TALK, 6)
        assert await summarise(graph, THREAD) == summary == await read_summary(graph, THREAD)
        values = (await graph.aget_state(THREAD)).values
        assert values["usage"].by["memory_summary"].calls == 1
        assert values["outcome"] == "answered"
        await talked(graph, [4])
        assert TALK in model.calls[-1].messages[-1].text
        await reset_summary(graph, THREAD)
        assert await read_summary(graph, THREAD) is None
        await talked(graph, [5])
    text = "".join(message.text for message in model.calls[-1].messages)
    assert all(f"question {turn}" in text for turn in range(6))


async def test_a_summary_between_runs_needs_a_thread_at_rest_in_the_right_mode(tmp_path):
    with ScriptedModel({"think": always(SIMPLE), "memory_summary": [""]}) as model:
        graph = graph_of(model, MemoryOptions())
        await talked(graph, range(2))
        with pytest.raises(InputError, match="mode 'window'"):
            await summarise(graph, THREAD)
        await talked(graph, [2], settings=RunSettings(memory=SMALL.replace(summary_enabled=False)))
        with pytest.raises(ModelCallError, match="empty"):
            await summarise(graph, THREAD)
        assert await read_summary(graph, THREAD) is None
        bare = build_graph(Team(model, [Specialist("a", "Works.", run=len)]))
        with pytest.raises(InputError, match="keeps no threads"):
            await summarise(bare, THREAD)


async def test_nobody_writes_a_summary_while_a_run_has_the_thread(tmp_path):
    begun, go = asyncio.Event(), asyncio.Event()

    async def work(context):
        begun.set()
        await go.wait()
        return "Found."

    script = {"think": COMPLEX + PLAN, "feedback": DONE}
    async with open_storage(tmp_path / "runs.db") as storage:
        with ScriptedModel(script) as model:
            team = Team(model, [Specialist("clerk", "Looks up.", run=work)], memory=SMALL)
            graph = build_graph(team, storage=storage)
            running = asyncio.create_task(run(graph, "go", config=THREAD))
            await begun.wait()
            for door in (summarise, reset_summary):
                with pytest.raises(ThreadBusyError):
                    await door(graph, THREAD)
            go.set()
            await running


async def test_a_stop_after_the_answer_leaves_the_run_as_it_ended(tmp_path):
    stop = asyncio.Event()

    def heard(event):
        if event.type == "task_completed":
            stop.set()

    with ScriptedModel({"think": always(SIMPLE), "memory_summary": [TALK]}) as model:
        team = Team(model, [Specialist("a", "Works.", run=len)], memory=SMALL)
        async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
            first = await (await runtime.start("question 0", thread_id="t")).result()
            assert first.outcome == "answered"
            begun = await runtime.start("question 1", thread_id="t", on_event=heard, stop=stop)
            assert (await begun.result()).outcome == "answered"
            assert (await runtime.get(begun.run_id)).outcome == "answered"
            result = await runtime.resume(begun.run_id)
            assert result.state["memory_summary"].text == TALK


async def test_the_prompt_and_the_reply_of_a_summary_are_kept_beside_its_event(tmp_path):
    with ScriptedModel({"think": always(SIMPLE), "memory_summary": [TALK]}) as model:
        team = Team(model, [Specialist("a", "Works.", run=len)], memory=SMALL)
        async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
            await (await runtime.start("question 0", thread_id="t")).result()
            begun = await runtime.start("question 1", thread_id="t")
            await begun.result()
            events = [event async for event in runtime.events(begun.run_id)]
            told = events[-1]
            assert told.type == "memory_summary"
            reply = await runtime.text(begun.run_id, told.reply.ref)
            asked = await runtime.text(begun.run_id, told.prompt[1].ref)
    assert reply == TALK
    assert "question 0" in asked
    assert "question 1" not in asked


async def test_a_trace_has_the_call_of_a_summary_and_what_is_not_seen():
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    kept, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    with ScriptedModel({"think": always(SIMPLE), "memory_summary": [TALK]}) as model:
        await talked(graph_of(model, traces=Traces(tracer_provider=provider)), range(3))
    spans = kept.get_finished_spans()
    nodes = [span.attributes.get("replan.node") for span in spans if span.name.startswith("chat")]
    assert nodes == ["think", "think", "memory_summary", "think"]
    marks = [(mark.name, dict(mark.attributes)) for span in spans for mark in span.events]
    assert marks[0] == ("replan.memory_summary", {"replan.memory.summarised": 2})
    assert marks[1][0] == "replan.memory_applied"
    assert marks[1][1]["replan.memory.summarised"] == 2
    assert TALK not in str([span.attributes for span in spans])


async def test_a_run_that_is_shown_has_the_call_of_its_summary(tmp_path):
    with ScriptedModel({"think": always(SIMPLE), "memory_summary": [TALK]}) as model:
        team = Team(model, [Specialist("a", "Works.", run=len)], memory=SMALL)
        async with open_storage(tmp_path / "runs.db") as storage:
            async with open_runtime(team, storage=storage) as runtime:
                for turn in range(2):
                    begun = await runtime.start(f"question {turn}", thread_id="t")
                    await begun.result()
            graph = build_graph(team, storage=storage)
            record = await storage.runs.get(begun.run_id)
            shown = await read_report(graph, storage, record, record.updated_at)
            shown = await with_texts(shown, storage, shown.events)
    assert shown.calls.calls == 2
    lines = attempts_lines(shown, (), (), has_host=True, has_prompts=True)
    assert lines[-1].strip() == TALK
    assert "a summary covers 2 messages" in "\n".join(history_lines(shown))

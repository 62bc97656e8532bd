"""What a step was given of the knowledge and of the conversation is seen afterwards."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from replan import (
    MemoryOptions,
    RAGOptions,
    Specialist,
    Team,
    build_graph,
    open_runtime,
    open_storage,
    run,
    stream,
)
from replan.cli.main import app
from replan.testing import ScriptedModel, always
from scripts import DONE
from seen_spans import Seen

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. When are refunds paid? @clerk\n"
FOUND = [
    {"content": f"Text {n}.", "source": f"{n}.md", "line": 1, "score": 1 - n / 10} for n in range(3)
]


class Given:
    def search(self, request):
        return {"chunks": FOUND, "skipped": ["x.bin is left out: it is not text."]}


class Gone:
    def search(self, request):
        raise OSError("the disk is gone")


def notes():
    def read(messages):
        text = messages[-1].text
        if "Text 1." in text:
            raise ValueError("no such chunk")
        return "none" if "Text 2." in text else "It is so [[0.md:1]]."

    return always(read)


def team_of(model, retriever, **options):
    clerk = Specialist(
        "clerk",
        "Looks up.",
        run=lambda context: "Done.",
        rag=RAGOptions(mode="map_reduce"),
        memory=MemoryOptions(history_limit=1),
    )
    return Team(model, [clerk], knowledge=retriever, **options)


@pytest.mark.parametrize("content", [False, True])
async def test_a_search_is_a_span_of_its_own(content):
    seen = Seen(content=content)
    with ScriptedModel({"think": PLAN, "knowledge": notes(), "feedback": DONE}) as model:
        graph = build_graph(team_of(model, Given(), traces=seen.traces))
        events = [each async for each in stream(graph, "Refunds?")]
    host, step = seen.named("retrieval")
    told = [each for each in events if each.type == "knowledge_retrieved"]
    (attempt,) = seen.named("invoke_agent")
    assert step.parent.span_id == attempt.context.span_id
    assert host.parent.span_id == seen.named("invoke_workflow")[0].context.span_id
    about = dict(step.attributes)
    documents = about.pop("gen_ai.retrieval.documents", None)
    assert about == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.agent.name": "clerk",
        "replan.node": "specialist",
        "replan.step.id": 1,
        "replan.knowledge.mode": "map_reduce",
        "replan.knowledge.sources": 1,
        "replan.knowledge.skipped": 1,
        "replan.knowledge.unused": 1,
        "replan.knowledge.failed": 1,
    }
    assert (documents is not None) is content
    if content:
        assert json.loads(documents) == [{"id": "0.md:1", "score": 1.0}]
    lasted = (step.end_time - step.start_time) / 1e9
    assert lasted == pytest.approx(told[1].seconds, abs=0.05)
    assert attempt.start_time <= step.start_time


async def test_a_search_that_failed_is_a_span_with_its_error():
    seen = Seen()
    with ScriptedModel({"think": PLAN, "feedback": DONE}) as model:
        await run(build_graph(team_of(model, Gone(), traces=seen.traces)), "Refunds?")
    for span in seen.named("retrieval"):
        assert (span.status.status_code.name, span.attributes["error.type"]) == ("ERROR", "OSError")
        assert "disk" not in str(span.to_json())


async def made(where):
    with ScriptedModel({"think": PLAN, "knowledge": notes(), "feedback": DONE}) as model:
        team = team_of(model, Given(), memory=MemoryOptions(history_limit=3))
        async with open_storage(where) as storage, open_runtime(team, storage=storage) as runtime:
            said = [("user", "Hello."), ("ai", "Hello."), ("user", "More."), ("ai", "Yes.")]
            await runtime.run({"messages": [*said, ("user", "Refunds?")]})


def test_a_run_shows_what_was_given_and_what_was_not(tmp_path):
    where = str(tmp_path / "runs.db")
    asyncio.run(made(where))

    def shown(*options):
        ran = CliRunner().invoke(app, ["show", "last", "--storage", where, *options])
        assert ran.exit_code == 0, ran.output
        return ran.output

    exported = str(tmp_path / "run.json")
    command = ["export", "last", "--storage", where, "-o", exported]
    assert CliRunner().invoke(app, command).exit_code == 0
    whole, step = shown(), shown("--step", "1")
    assert CliRunner().invoke(app, ["show", exported, "--step", "1"]).output == step
    record = json.loads(shown("--step", "1", "--json"))
    assert "host sees 3 messages of the conversation: 0 summarised, 2 left out, 0 cut" in whole
    assert "host is given knowledge: 0.md:1, 1.md:1, 2.md:1; 1 left out" in whole
    assert "step 1 clerk is given knowledge: 0.md:1; 1 left out, 1 not used, 1 failed" in whole
    assert "step 1 clerk sees 1 message of the conversation: 0 summarised, 4 left out" in whole
    assert "step 1 clerk is given knowledge: 0.md:1" in step
    assert "step 1 clerk sees 1 message of the conversation" in step
    for each in (
        "x.bin is left out: it is not text.",
        "2.md:1 is not used: nothing in it helps.",
        "1.md:1 is left out: ValueError: no such chunk.",
    ):
        assert each in step
    assert step.count("reads knowledge") == 3
    assert [each["type"] for each in record["inputs"]] == ["memory_applied", "knowledge_retrieved"]
    assert record["inputs"][1]["sources"][0]["source"] == "0.md"

"""LangGraph Studio's server, driven through its SDK."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client

from forms import unnamed_in

ROOT = Path(__file__).parents[2]
TASK = (
    "total revenue by region from sales.csv; total refund by region from returns.csv; write report"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, serve_studio) -> str:
    """The address of a server on the project's own langgraph.json."""
    folder = tmp_path_factory.mktemp("studio")
    data, out = ROOT / "examples" / "data", folder / "out"
    return serve_studio(folder, {"REPLAN_DIR": str(data), "REPLAN_OUT": str(out)})


async def test_the_drawing_shows_every_node_and_specialist(url):
    async with get_client(url=url) as client:
        (assistant,) = await client.assistants.search()
        assert assistant["graph_id"] == "replan"
        drawing = await client.assistants.get_graph(assistant["assistant_id"])
        names = {node["id"] for node in drawing["nodes"]}
        assert {"think", "plan_execution", "result_collector", "feedback", "plan_update"} <= names
        edges = {(edge["source"], edge["target"]) for edge in drawing["edges"]}
        assert {("direct_answer", "summarise"), ("final_answer", "summarise")} <= edges
        assert {("direct_answer", "__end__"), ("summarise", "__end__")} <= edges
        assert {"specialist_data_analyst", "specialist_librarian", "specialist_writer"} <= names


@pytest.mark.parametrize(
    ("origin", "status"), [("https://smith.langchain.com", 200), ("http://evil.example", 400)]
)
async def test_only_pages_of_studio_may_call_the_server_from_a_browser(url, origin, status):
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    async with httpx.AsyncClient(base_url=url) as client:
        answer = await client.options("/threads", headers=asked)
    assert answer.status_code == status
    allowed = answer.headers.get("access-control-allow-origin")
    assert allowed == (origin if status == 200 else None)


async def test_the_schemas_are_the_states_and_the_settings_are_a_form(url):
    async with get_client(url=url) as client:
        (assistant,) = await client.assistants.search()
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
        assert set(schemas["input_schema"]["properties"]) == {
            "messages",
            "plan",
            "plan_by",
            "answers",
        }
        assert "current_plan" in schemas["state_schema"]["properties"]
        assert {"limits", "round_scope", "approval", "memory"} <= set(
            schemas["context_schema"]["properties"]
        )
        forms = ["input_schema", "output_schema", "state_schema", "context_schema", "config_schema"]
        assert [unnamed_in(schemas[form]) for form in forms] == [[]] * len(forms)


async def test_a_run_streams_its_state_can_be_edited_and_the_thread_goes_on(url):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        seen: dict[str, list[Any]] = {}
        async for part in client.runs.stream(
            thread,
            "replan",
            input={"messages": [{"role": "user", "content": TASK}]},
            stream_mode=["custom", "updates", "messages-tuple"],
        ):
            seen.setdefault(part.event, []).append(part.data)
        assert "error" not in seen
        assert seen["custom"][-1]["type"] == "task_completed"
        assert seen["custom"][-1]["outcome"] == "completed"
        nodes = {name for update in seen["updates"] for name in update}
        assert {"think", "specialist_data_analyst", "final_answer"} <= nodes
        assert seen["messages"]

        with pytest.raises(Exception, match="current_plan"):
            await client.threads.update_state(thread, {"current_plan": {"title": 5}})
        edited = {"title": "Edited", "steps": [{"id": 1, "description": "One"}]}
        await client.threads.update_state(thread, {"current_plan": edited})
        state = await client.threads.get_state(thread)
        assert state["values"]["current_plan"]["title"] == "Edited"

        answer = await client.runs.wait(
            thread, "replan", input={"messages": [{"role": "user", "content": "calculate 2 + 2"}]}
        )
        assert answer["outcome"] == "answered"
        assert "4" in answer["messages"][-1]["content"]
        assert len(answer["thinking_history"]) == 2

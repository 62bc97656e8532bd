"""What the keyless team can do, in the hands of a model that is asked over HTTP."""

import os
import re
from pathlib import Path

import pytest
from langchain_core.messages import ToolCall

import warm
from replan import build_graph, run
from replan.team.team_file import read_team_file
from replan.testing import Reply
from terminals import REPLAN

ROOT = Path(__file__).parents[2]
TEAM = """\
host: {model: "openai:scripted"}
specialists:
  - name: analyst
    intended_use: Answers questions about tables and notes.
    chat_model: openai:scripted
    tools:
      - replan_local:query_tables
      - replan_local:search_notes
      - replan_local:calculate
      - replan_local:write_report
"""
PLAN = """\
---
complexity: complex
next_action: create_plan
---
# Returns by region

- [ ] 1. total revenue by region from sales.csv @data_analyst
- [ ] 2. total refund by reigon from returns.csv @data_analyst
- [ ] 3. search notes for returns @librarian
- [ ] 4. compare step 1 and step 2 by region @data_analyst (after 1, 2)
- [ ] 5. write report @writer (after 3, 4)
"""
REVISED = """\
---
verdict: continue
suggested_action: update_plan
---
# Returns by region

- [x] 1. total revenue by region from sales.csv @data_analyst
- [ ] 2. total refund by region from returns.csv @data_analyst
- [x] 3. search notes for returns @librarian
- [ ] 4. compare step 1 and step 2 by region @data_analyst (after 1, 2)
- [ ] 5. write report @writer (after 3, 4)
"""
DONE = "---\nverdict: complete\n---\nEast returns the most for its revenue."


def calls(**arguments):
    """A reply that calls one tool."""
    ((name, given),) = arguments.items()
    return Reply(
        tool_calls=[
            ToolCall(
                name=name, args=given, id=f"call-{name}-{len(given)}-{given.get('sql', '')[:9]}"
            )
        ]
    )


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "sales.csv").write_text("region,revenue\nNorth,3\nEast,4\nNorth,5\n")
    (tmp_path / "rules.md").write_text("# Rules\n\nReturns take two weeks.\n")
    (tmp_path / "team.yaml").write_text(TEAM)
    return tmp_path


async def test_a_model_works_with_the_tools_in_the_folders_of_its_step(
    shop, tmp_path, openai_server
):
    table = "**Revenue**\n\n| region | revenue |\n| --- | ---: |\n| North | 8 |\n| East | 4 |"
    server = openai_server(
        {
            "step 1/analyst": [
                calls(query_tables={}),
                calls(query_tables={"sql": "SELECT sum(revenue) AS whole FROM sales"}),
                calls(query_tables={"sql": "SELECT * FROM read_text('/etc/passwd')"}),
                calls(search_notes={"query": "returns"}),
                calls(calculate={"expression": "8 / 12 * 100"}),
                calls(write_report={"title": "Shop", "text": table}),
                "North has two thirds.",
            ],
            "feedback": DONE,
        }
    )
    team = read_team_file(
        shop / "team.yaml",
        {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"},
        out=tmp_path / "out",
    )
    graph = build_graph(team.config, models=team.models)
    state = (await run(graph, {"plan": "- [ ] 1. Look into it @analyst\n"})).state
    assert state["outcome"] == "completed"
    told = "\n".join(str(request.messages) for request in server.requests)
    for text in (
        "sales.csv, in SQL sales: region (varchar), revenue (bigint)",
        "| 12 |",
        "rules.md:3",
        "8 / 12 * 100 = 66.6666666667 (rounded)",
        "**Shop**: written to",
    ):
        assert text in told
    assert "root:" not in told
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".md"]


async def test_a_host_answers_with_the_tools_in_the_folder_of_its_team(shop, openai_server):
    tools = "host: {model: 'openai:scripted', tools: ['replan_local:query_tables']}"
    (shop / "team.yaml").write_text(TEAM.replace(TEAM.partition("\n")[0], tools))
    simple = "---\ncomplexity: simple\nnext_action: direct_answer\n---\n"
    server = openai_server({"think": simple, "direct_answer": [calls(query_tables={}), "One."]})
    environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-none"}
    team = read_team_file(shop / "team.yaml", environment)
    await run(build_graph(team.config, models=team.models), "How many tables are there?")
    assert "The tables are: sales.csv." in str(server.requests[-1].messages)


def test_the_demo_runs_with_a_model_as_it_does_without(tmp_path, openai_server):
    server = openai_server({"think": PLAN, "feedback": [REVISED, DONE]})
    task = re.search(r"^DEMO_TASK := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    done = warm.run(
        *REPLAN,
        *("run", task, "--dir", ROOT / "examples" / "data", "--out", tmp_path / "out"),
        *("--model", "openai:scripted", "--base-url", server.base_url),
        env={**os.environ, "REPLAN_STORAGE": str(tmp_path / "runs.db")},
    )
    assert done.returncode == 0, done.stderr
    assert "[!] step 2 data_analyst: No column 'reigon' in returns.csv." in done.stdout
    assert "plan revised (version 2, by model)" in done.stdout
    assert "[x] step 5 writer" in done.stdout
    assert "East returns the most for its revenue." in done.stdout
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".md"}

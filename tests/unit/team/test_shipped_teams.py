"""The starter and the examples are read as they stand, and do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from langgraph.store.memory import InMemoryStore

from replan.assembly.graphs import build_graph
from replan.team.file_team import SCHEMA_NAME, starter_team, team_schema
from replan.team.team_file import read_team_file

EXAMPLES = Path(__file__).parents[3] / "examples" / "teams"
ENVIRONMENT = {"OPENAI_API_KEY": "not-used"}
TOOLS = """\
def word_count(text: str) -> int:
    "Count the words of a text."
    return len(text.split())

def opening_hours(context):
    return "9 to 5"
"""
SHIPPED = sorted(EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_an_example_is_read_fits_the_schema_and_makes_a_graph(path):
    team = read_team_file(path, ENVIRONMENT)
    graph = build_graph(team.config, models=team.models, store=InMemoryStore())

    assert {f"specialist_{each.name}" for each in team.config.specialists} <= graph.nodes.keys()
    content = yaml.safe_load(path.read_text())
    assert list(Draft202012Validator(team_schema()).iter_errors(content)) == []


@pytest.fixture
def starter(tmp_path):
    path = tmp_path / "team.yaml"
    path.write_text(starter_team())
    return path


def test_the_starter_tells_editors_where_its_schema_is():
    first = starter_team().partition("\n")[0]

    assert first == f"# yaml-language-server: $schema=./{SCHEMA_NAME}"


def test_the_starter_fits_the_schema():
    content = yaml.safe_load(starter_team())

    assert list(Draft202012Validator(team_schema()).iter_errors(content)) == []


def test_what_the_starter_shows_in_comments_works_too(starter, write, module):
    module("my_tools", TOOLS)
    write("Plan.", "prompts/planning.md")
    text = re.sub(r"^( *)#(?=\S)", r"\1", starter_team(), flags=re.MULTILINE)
    starter.write_text(text.replace("model: offline", "model: smart"))

    team = read_team_file(starter, ENVIRONMENT)

    assert build_graph(team.config, models=team.models)
    assert team.config.host.planning_prompt == "Plan."
    assert [each.name for each in team.config.specialists][-2:] == ["editor", "opening_hours"]
    assert set(team.models.named) == {"smart", "llama"}


def test_the_starter_and_the_schema_load_no_framework():
    code = (
        "import sys; import replan.team.file_team as a, replan.team.file_team as b; "
        "a.team_schema(); b.starter_team(); "
        "sys.exit(any(name.startswith(('langchain', 'langgraph')) for name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0

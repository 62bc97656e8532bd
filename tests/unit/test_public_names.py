"""The names that the outside may rely on, and what it costs to import them."""

import inspect
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import replan
import replan.assembly
import replan.base.errors
import replan.log.events.types
from cases import read_page
from replan.base.public_names import PACKAGES
from replan.team.file_team import DEFAULT_TEAM

NAMES = read_page(Path(__file__).with_name("public_names.yaml"))

HEAVY = {
    *("psycopg", "sqlite3", "replan.storage.opening", "replan.runs.travel"),
    *("aiohttp", "duckdb", "filelock", "mcp", "replan.jobs", "replan.sessions"),
    *("langchain", "langchain_openai", "openai"),
    *("markdown_it", "yaml"),
}
"""What building and running a team without storage, tools and models by name does without."""


def test_the_public_names_are_these():
    assert {package: import_module(package).__all__ for package in PACKAGES} == NAMES
    assert all(names == sorted(names) for names in NAMES.values())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_name_can_be_imported_and_says_what_it_is(package):
    assert set(NAMES[package]) - set(dir(import_module(package))) == set()
    for name in NAMES[package]:
        value = getattr(import_module(package), name)
        assert value.__name__ == name
        assert value.__doc__, name
        assert value.__module__.startswith("replan."), name


@pytest.mark.parametrize("package", PACKAGES)
def test_what_can_be_called_on_a_public_class_says_what_it_does(package):
    assert [
        f"{name}.{each}"
        for name in NAMES[package]
        for each, member in vars(getattr(import_module(package), name)).items()
        if not each.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and not member.__doc__
    ] == []


@pytest.mark.parametrize("room", ["errors", "events"])
def test_every_event_and_every_error_has_a_public_name(room):
    public = import_module(f"replan.{room}")
    for name in public.__all__:
        assert getattr(public, name) is not None
    inner = {"errors": replan.base.errors, "events": replan.log.events.types}[room]
    classes = {
        name
        for name, value in vars(inner).items()
        if inspect.isclass(value) and value.__module__ in {inner.__name__, public.__name__}
    }
    assert {each for each in classes if not each.startswith("_")} == set(public.__all__) - {"Event"}


def test_the_version_is_that_of_the_installed_package(tmp_path, monkeypatch):
    installed = tmp_path / "replan-9.8.7.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: replan\nVersion: 9.8.7\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert replan.__version__ == "9.8.7"


@pytest.mark.parametrize("room", [replan, replan.assembly])
def test_another_name_is_an_attribute_error(room):
    with pytest.raises(AttributeError, match="no attribute 'build_grpah'"):
        _ = room.build_grpah


def test_what_makes_a_graph_is_found_where_the_guides_name_it():
    assert replan.assembly.build_graph is replan.build_graph
    assert replan.assembly.team_graph(DEFAULT_TEAM, environment={}).name == "replan"


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import replan", {"langchain_core", "langgraph", "openai", "pydantic", "yaml"}),
        ("from replan import ReplanError", {"langchain_core", "langgraph", "openai", "pydantic"}),
        ("from replan.plan import TaskPlan", {"langchain_core", "langgraph", "openai"}),
        ("from replan import PlanDocument", {"langchain_core", "langgraph", "openai"}),
        ("from replan import Limits", {"langchain_core", "langgraph", "openai"}),
        ("import replan.testing.fixtures", {"langchain_core", "langgraph", "openai", "aiohttp"}),
        ("from replan import Traces, open_traces", {"langchain_core", "opentelemetry"}),
        ("from replan import Team, build_graph, run_sync", HEAVY),
    ],
)
def test_an_import_loads_no_more_than_it_needs(code, unwanted):
    script = f"{code}\nimport json, sys; print(json.dumps(list(sys.modules)))"
    # What measures coverage imports more; it is not asked for in this process.
    environment = {name: each for name, each in os.environ.items() if "COVERAGE" not in name}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )
    assert unwanted & set(json.loads(ended.stdout)) == set()

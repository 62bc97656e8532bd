"""`replan init`, `replan schema` and `replan graph`."""

import importlib
import importlib.util
import re

import pytest
from typer.testing import CliRunner

import warm
from cases import cases_of
from replan.cli.main import app
from replan.team.kinds.pipeline_kind import pipeline_named

CASES = cases_of(__file__)


def replan(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_starter_team_is_written_and_its_plan_runs(tmp_path):
    folder = tmp_path / "new"
    result = replan("init", folder)
    assert result.exit_code == 0, result.output
    names = {"plan.md", "team.schema.json", "team.yaml", "test_team.py"}
    assert {path.name for path in folder.iterdir()} == names
    command = result.stdout.splitlines()[-1].removeprefix("Now try: replan ").split()
    assert replan("check", folder / "plan.md", "--team", folder / "team.yaml").exit_code == 0
    result = replan(*command, "--plan-out", folder / "plan.md")
    assert result.exit_code == 0, result.output
    assert "[ ] " not in (folder / "plan.md").read_text().partition("\n- ")[2]


def test_the_starter_s_own_test_passes(tmp_path, monkeypatch):
    assert replan("init", tmp_path).exit_code == 0
    monkeypatch.chdir(tmp_path)
    done = warm.run("-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_the_package_of_a_new_pipeline_has_a_test_that_passes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, options in (("tea_praise", []), ("deep_tea", ["--nested"])):
        result = replan("new", "pipeline", name, "--dir", tmp_path, *options)
        assert result.exit_code == 0, result.output
        tests = importlib.import_module(f"{name}.tests.test_{name}")
        tests.test_the_pipeline_writes_a_text()
        tests.test_the_package_keeps_the_rules()
        assert (tmp_path / name / "writing" / "revision").is_dir() == bool(options)
        main = re.findall(r"--pipeline (\S+)", result.stdout)[0]
        assert pipeline_named(main, tmp_path) is getattr(tests, main.partition(":")[2])
    for wrong, problem in (("deep_tea", "exists already"), ("Tea", "cannot be the name")):
        refused = replan("new", "pipeline", wrong, "--dir", tmp_path)
        assert (refused.exit_code, problem in " ".join(refused.stderr.split())) == (2, True)


@pytest.mark.parametrize(
    ("name", "problem"),
    CASES["names"],
)
def test_a_new_package_hides_no_module_and_has_a_name_that_can_be_written(tmp_path, name, problem):
    refused = replan("new", "pipeline", name, "--dir", tmp_path)
    assert (refused.exit_code, [*tmp_path.iterdir()]) == (2, [])
    assert f"NAME: {problem}" in refused.output
    assert re.search(r"Choose a(nother|\ shorter) name", refused.output)


@pytest.mark.parametrize("words", [["init"], ["check"], ["new", "pipeline", "tea", "--dir"]])
def test_a_path_that_is_too_long_is_one_message(tmp_path, words):
    refused = replan(*words, tmp_path / ("a" * 300))
    assert refused.exit_code == 2
    assert "is too long for the file system. Choose shorter names." in refused.output


def test_a_team_whose_models_call_tools_is_drawn_without_a_key(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (file := tmp_path / "team.yaml").write_text(
        'host: {model: "openai:gpt"}\n'
        "specialists: [{name: reader, intended_use: Reads., chat_model: 'openai:gpt',"
        " tools: ['replan_local:search_notes']}]\n"
    )
    drawn = replan("graph", "--team", file)
    assert drawn.exit_code == 0, drawn.stderr
    assert "specialist_reader" in drawn.stdout


@pytest.mark.skipif(importlib.util.find_spec("grandalf") is not None, reason="it is installed")
def test_ascii_without_its_package_names_the_package():
    result = replan("graph", "--format", "ascii")
    assert result.exit_code == 2
    assert 'pip install "replan[drawing]"' in " ".join(result.stderr.split())


@pytest.mark.skipif(importlib.util.find_spec("grandalf") is None, reason="grandalf is missing")
def test_ascii_draws_the_nodes():
    assert "| think |" in replan("graph", "--format", "ascii").stdout

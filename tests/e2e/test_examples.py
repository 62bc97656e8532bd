"""Every program in `examples` runs as it stands, and prints what it is there to show."""

import ast
import runpy
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

import warm
from replan.testing import ChatRequest, OpenAIServer

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
LONGEST = 120

SHOWN = tomllib.loads(Path(__file__).with_name("shown_by_examples.toml").read_text("utf-8"))


def run_program(name: str) -> None:
    """Run a program as `python examples/NAME` does; it may end with the exit code 0."""
    try:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise


def forked(words: list[str], *, input: str, text: bool, env: dict[str, str]) -> str:  # noqa: A002
    """What `subprocess.check_output` does, by a process that need not import anything."""
    with tempfile.TemporaryFile("w+") as told:
        told.write(input)
        told.seek(0)
        ended = warm.run(*words[1:], stdin=told.fileno(), env=env)
    assert (ended.returncode, text) == (0, True), ended.stderr
    return ended.stdout


@pytest.fixture(autouse=True)
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another folder, no arguments, and none of the settings that somebody may have made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["example"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(subprocess, "check_output", forked)
    for name in ("REPLAN_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_is_there_to_show(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_program(name)
    printed = capsys.readouterr().out
    place = 0
    for text in SHOWN[name]:
        assert text in printed[place:], printed
        place = printed.index(text, place)
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_the_pipeline_of_the_article_finds_the_wrong_figure(capsys: pytest.CaptureFixture[str]):
    run_program("article")
    printed = capsys.readouterr().out
    assert "draft_writing: Customers may return anything within 40 days of delivery." in printed
    assert "  figure_check: wrong: 40 is 30\n" in printed
    assert "---\nCustomers may return anything within 30 days of delivery." in printed


@pytest.mark.parametrize("name", [*PROGRAMS, "article"])
def test_a_program_asks_the_model_that_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with OpenAIServer(answered_by_a_model) as server:
        monkeypatch.setenv("REPLAN_MODEL", "openai:some-model")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run_program(name)
    assert {request.model for request in server.requests} == {"some-model"}
    assert capsys.readouterr().out


def test_the_article_takes_the_model_and_its_server_as_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with OpenAIServer(answered_by_a_model) as server:
        options = ["--model", "openai:some-model", "--base-url", server.base_url]
        monkeypatch.setattr(sys, "argv", ["article", *options])
        run_program("article")
    phases = [each.call.phase for each in server.requests if each.call and each.call.phase]
    assert phases[:2] == ["outline_writing", "draft_writing"]
    assert phases[-1] == "draft_correction"
    assert capsys.readouterr().out


def answered_by_a_model(request: ChatRequest) -> str:
    """Answer in few words whatever is asked, as some model may."""
    node = request.call.node if request.call else ""
    if node == "think":
        return "---\ncomplexity: simple\n---\nThat is as you like it."
    if node == "feedback":
        return "---\nverdict: complete\n---\nThat is done."
    return "Yes."


def test_a_program_is_short_and_says_what_it_shows_and_how_to_run_it():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in PROGRAMS:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        told = ast.get_docstring(ast.parse(text)) or ""
        assert len(text.splitlines()) <= LONGEST, name
        assert f"python examples/{name}" in told
        assert "REPLAN_MODEL" in told, name
        assert ("ScriptedModel" in told) == ("ScriptedModel" in text), name
        assert f"| [`{name}`]({name}) |" in listed


def test_a_question_that_cannot_be_answered_is_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["example", "total miles by region from sales.csv"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / "run_sync_script.py"), run_name="__main__")
    assert ended.value.code == 1
    assert "No column 'miles'" in capsys.readouterr().out

"""The tutorial, followed word by word: each command runs, and shows what the page says."""

import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import warm
from replan.cli.main import app
from replan.testing import OpenAIServer

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"<!-- from: (\S+) -->\n\n```\w+\n(.*?)\n```", re.DOTALL)
MODULES = ("offline", "shop")


class Reader:
    """Somebody who types the commands of a page, where the page before it left him."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.code = 0

    def output(self, command: str, capsys: pytest.CaptureFixture[str]) -> str:
        match shlex.split(command.removesuffix(" < /dev/null")):
            case ["cd", step]:
                self.folder = (self.folder / step).resolve(strict=True)
                self.monkeypatch.chdir(self.folder)
                return ""
            case ["echo", "$?"]:
                return f"{self.code}\n"
            case ["python", program]:
                run_program(self.folder / program, self.monkeypatch)
                return capsys.readouterr().out
            case ["replan", *words]:
                forget_modules()
                ended = CliRunner().invoke(app, words)
                self.code = ended.exit_code
                assert self.code in (0, 3), ended.output
                return ended.output
        raise AssertionError(f"Nobody knows how to type: {command}")


def forget_modules() -> None:
    """Let the next program or command load the modules of its own folder."""
    for name in MODULES:
        sys.modules.pop(name, None)


def run_program(program: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a program as Python does: its folder is where it imports from."""
    forget_modules()
    with monkeypatch.context() as during:
        during.syspath_prepend(str(program.parent))
        return runpy.run_path(str(program), run_name="__main__")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    shutil.copytree(ROOT / "examples" / "tutorial", tmp_path / "tutorial")
    for name in ("REPLAN_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Reader(tmp_path / "tutorial", monkeypatch)
    forget_modules()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_commands_of_a_step_show_what_its_page_says(
    page: Path, reader: Reader, capsys: pytest.CaptureFixture[str]
):
    number = page.stem.removeprefix("step_")
    if number.isdigit() and number != "1":
        reader.folder /= f"step_{int(number) - 1}"
    for block in CONSOLE.findall(page.read_text("utf-8")):
        for typed in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
            command, _, told = typed.partition("\n")
            shown = reader.output(command.removeprefix("$ "), capsys)
            lines = "\n".join(each.rstrip() for each in shown.strip().splitlines())
            parts = (re.escape(part) for part in told.strip().split("..."))
            pattern = ".*?".join(parts)
            assert re.fullmatch(pattern, lines, re.DOTALL), f"{command} shows\n{shown}"


def test_the_code_on_the_pages_is_that_of_the_steps():
    pieces = [found for page in PAGES for found in SHOWN.findall(page.read_text("utf-8"))]
    assert {name.partition("/")[0] for name, _ in pieces} == {f"step_{n}" for n in range(1, 9)}
    for name, code in pieces:
        assert code in (ROOT / "examples" / "tutorial" / name).read_text("utf-8"), name


def test_a_worker_of_the_last_step_does_what_another_process_puts_into_the_queue(
    reader: Reader,
    empty_database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("REPLAN_STORAGE", empty_database)
    reader.output("cd step_8", capsys)
    told = PAGES[-1].read_text("utf-8")
    published = reader.output("replan team publish team.yaml", capsys)
    assert f"$ replan team publish team.yaml\n{published}$ replan worker" in told
    worker = warm.Process(["-m", "replan", "worker", "--team", "team.yaml"])
    try:
        shown = reader.output("python enqueue.py", capsys)
    finally:
        worker.close()
    assert f"$ python enqueue.py\n{shown}$ kill" in told


@pytest.mark.parametrize("step", ["step_1", "step_2", "step_3", "step_4", "step_5"])
def test_a_step_asks_the_model_that_is_named(
    step: str,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """The same words come from a model behind HTTP as from the script, so does the output."""
    folder = reader.folder / step
    run_program(folder / "ask.py", monkeypatch)
    offline = capsys.readouterr().out
    script = runpy.run_path(str(folder / "offline.py"))["SCRIPT"]
    with OpenAIServer(script) as server:
        monkeypatch.setenv("REPLAN_MODEL", "openai:some-model")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run_program(folder / "ask.py", monkeypatch)
    assert {request.model for request in server.requests} == {"some-model"}
    assert capsys.readouterr().out == offline
